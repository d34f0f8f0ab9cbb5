package rules

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// Check parses text and checks that its type is the wanted kind.
func (s *Scope) Check(text source.Text, want Kind) (*cel.Ast, source.Issues) {
	if strings.TrimSpace(text.Value) == "" {
		return nil, source.Issues{text.Issue(0, 1, "the expression is empty", "write a CEL expression that gives "+want.Name)}
	}
	checked, iss := s.env.Compile(text.Value)
	if iss.Err() != nil {
		return nil, s.issues(text, iss)
	}
	if t := checked.OutputType(); !want.Accepts(t) {
		return nil, source.Issues{text.Issue(0, len([]rune(strings.TrimRight(text.Value, " \n"))),
			fmt.Sprintf("gives %s, but this place wants %s", TypeName(t), want.Name), "")}
	}
	if issues := s.optionalFields(text, checked.NativeRep()); issues != nil {
		return nil, issues
	}
	return checked, nil
}

// Program lets cel-go plan a checked expression.
func (s *Scope) Program(a *ast.AST, options ...cel.ProgramOption) (cel.Program, error) {
	return s.env.PlanProgram(a, options...) //nolint:wrapcheck // it is shown as it is, at its place
}
