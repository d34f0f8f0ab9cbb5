package rules

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Callee is a called function, either CEL's own or one of the vocabulary.
type Callee struct {
	Name string
	// F is the Go function that implements it.
	F *functions.Overload
}

// Wrong reports whether the first argument lacks the trait that the function requires.
func (c Callee) Wrong(first ref.Val) bool {
	return c.F.OperandTrait != 0 && !first.Type().HasTrait(c.F.OperandTrait)
}

// NoOverload returns the error for a call with arguments that the function does not accept.
func (c Callee) NoOverload() ref.Val { return types.NewErr("no such overload: %s", c.Name) }

// Callee returns the Go function that implements a call. If the checker found exactly one overload, it is the function of that overload.
// Otherwise it is the function that inspects its arguments. An error means that the call must be left to cel-go.
func (s *Scope) Callee(name string, r *ast.ReferenceInfo) (Callee, error) {
	f, err := implementation(s.lang.decls, name, r) // a scope adds variables, never functions
	return Callee{name, f}, err
}

func implementation(declared map[string]*decls.FunctionDecl, name string, r *ast.ReferenceInfo) (*functions.Overload, error) {
	if r == nil {
		return nil, errors.New("the function " + name)
	}
	decl := declared[name]
	if decl == nil {
		return nil, errors.New("the function " + name)
	}
	bindings, err := decl.Bindings()
	if err != nil {
		return nil, fmt.Errorf("function %s: %w", name, err)
	}
	found, err := bindingOf(name, r.OverloadIDs, bindings)
	if err != nil {
		return nil, err
	}
	if over := bounds(name); over != nil {
		return bounded(found, over), nil
	}
	return found, nil
}

func bindingOf(name string, overloads []string, bindings []*functions.Overload) (*functions.Overload, error) {
	var general *functions.Overload
	for _, b := range bindings {
		if b.NonStrict {
			return nil, errors.New("the function " + name + ", which takes errors")
		}
		if len(overloads) == 1 && b.Operator == overloads[0] {
			return b, nil
		}
		if b.Operator == name {
			general = b
		}
	}
	if general == nil {
		return nil, errors.New("the function " + name)
	}
	return general, nil
}

// Overload returns the overload of the vocabulary that a call uses. It returns nil if the call has several overloads or none of the
// vocabulary.
func (s *Scope) Overload(r *ast.ReferenceInfo) *Overload {
	if r == nil || len(r.OverloadIDs) != 1 {
		return nil
	}
	return s.lang.overloads[r.OverloadIDs[0]]
}
