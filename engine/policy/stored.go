package policy

import (
	"fmt"

	"github.com/celsius-scheduler/celsius/engine/policy/parts"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// LoadStored compiles a SchedulingPolicy as an API server gives it, in JSON. The issues are those of
// Load, with their places inside each field's text, since the author's file is not known. Whatever
// the data holds, it answers: a panic of the compiler is an issue too, for what calls this must not
// fall with one policy.
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
