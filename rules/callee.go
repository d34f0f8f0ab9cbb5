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

// Callee is a function of CEL's or of the vocabulary as it is called.
type Callee struct {
	Name string
	// F is the Go function behind it.
	F *functions.Overload
}

// Wrong says that the first argument has not the trait that the function wants.
func (c Callee) Wrong(first ref.Val) bool {
	return c.F.OperandTrait != 0 && !first.Type().HasTrait(c.F.OperandTrait)
}

// NoOverload is the error of a call whose arguments the function does not take.
func (c Callee) NoOverload() ref.Val { return types.NewErr("no such overload: %s", c.Name) }

// Callee finds the function behind a call: that of the overload, where the checker found one alone, or the one
// that looks at its arguments. An error says what leaves the call to cel-go.
func (s *Scope) Callee(name string, r *ast.ReferenceInfo) (Callee, error) {
	f, err := implementation(s.lang.decls, name, r) // a scope adds variables, but no functions
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

// Overload is that of the vocabulary which a call has, nil where it is not of the vocabulary or there are several.
func (s *Scope) Overload(r *ast.ReferenceInfo) *Overload {
	if r == nil || len(r.OverloadIDs) != 1 {
		return nil
	}
	return s.lang.overloads[r.OverloadIDs[0]]
}
