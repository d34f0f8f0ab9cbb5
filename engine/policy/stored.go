package policy

import (
	"fmt"

	"github.com/celsius-scheduler/celsius/engine/policy/parts"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// LoadStored compiles a SchedulingPolicy in JSON, as an API server stores it. It returns the issues of Load, with places relative to each
// field's text, because the author's file is unknown. A panic of the compiler becomes an issue, because one policy must not end the
// caller's process.
func LoadStored(data []byte) (p *Policy, issues source.Issues) {
	defer func() {
		if r := recover(); r != nil {
			p, issues = nil, source.Issues{{
				Path: "spec", Message: fmt.Sprintf("the compiler failed: %v", r),
				Hint: "this is a defect of celsius; please report it with the policy",
			}}
		}
	}()
	doc, issues := source.ParseStored(data)
	if doc == nil {
		return nil, issues
	}
	p, found := LoadIn(doc, Verbs(), Vocabulary(), AccountingFunctions(), parts.Key)
	issues = doc.Within(append(issues, found...))
	if issues.Err() != nil {
		return nil, issues
	}
	return p, issues
}
