package rules

import (
	"regexp"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// mostPrecision is the maximum number of digits that a format may request.
const mostPrecision = 100

// mostMade is the maximum length of a string, and the maximum number of elements of a list, that a function may create. The limit does not
// depend on the arguments, because expressions read strings of any length.
const mostMade = 1 << 20

const listsRange = "lists.range"

// makers returns functions whose results can be larger than all their arguments together. For each it computes the size of the result.
func makers() map[string]func(args []ref.Val) int64 {
	return map[string]func(args []ref.Val) int64{
		"join": joinedLength, "replace": replacedLength,
		"format": func(args []ref.Val) int64 {
			format, _ := args[0].(types.String)
			return int64(len(format)) + mostPrecision*int64(strings.Count(string(format), "%.")) + charsPerStep*Walked(args[1], mostMade)
		},
		"flatten": func(args []ref.Val) int64 { return Walked(args[0], mostMade) },
		listsRange: func(args []ref.Val) int64 {
			n, _ := args[0].(types.Int)
			return int64(n)
		},
	}
}

// tooLarge returns the error for a result that would be too large, or nil.
func tooLarge(function string, size int64) ref.Val {
	if size <= mostMade {
		return nil
	}
	return OverBudget("%d characters or elements in one value: %s would make more", mostMade, function)
}

// bounds returns a check of a function's arguments. The check returns an error if the call would create too much or take too long. bounds
// returns nil if the function can do neither.
func bounds(function string) func(args []ref.Val) ref.Val {
	if size := makers()[function]; size != nil {
		return func(args []ref.Val) ref.Val { return tooLarge(function, size(args)) }
	}
	steps := Searchers()[function]
	if steps == nil {
		return nil
	}
	return func(args []ref.Val) ref.Val {
		if steps(args) <= mostMade {
			return nil
		}
		return OverBudget("%d steps in one call: %s would take more, as what it is given is long", mostMade, function)
	}
}

func joinedLength(args []ref.Val) int64 {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return 0
	}
	sum := int64(0)
	for it := list.Iterator(); sum <= mostMade && it.HasNext() == types.True; {
		s, _ := it.Next().(types.String)
		sum += int64(len(s))
	}
	if len(args) > 1 {
		separator, _ := args[1].(types.String)
		sum += SizeOf(list) * int64(len(separator))
	}
	return sum
}

func replacedLength(args []ref.Val) int64 {
	var texts [3]string
	for i := range texts {
		s, _ := args[i].(types.String)
		texts[i] = string(s)
	}
	times := int64(strings.Count(texts[0], texts[1]))
	if len(args) > 3 {
		if n, _ := args[3].(types.Int); n >= 0 {
			times = min(times, int64(n))
		}
	}
	return int64(len(texts[0])) + times*int64(len(texts[2])-len(texts[1]))
}

// bounded wraps a function so that its arguments are checked before each call.
func bounded(f *functions.Overload, bounds func(args []ref.Val) ref.Val) *functions.Overload {
	call := func(args ...ref.Val) ref.Val {
		if err := bounds(args); err != nil {
			return err
		}
		return Apply(f, args)
	}
	return &functions.Overload{Operator: f.Operator, OperandTrait: f.OperandTrait, Function: call}
}

// boundedCalls makes cel-go perform the same check.
type boundedCalls struct{ lang *Language }

// CompileOptions implements cel.Library.
func (boundedCalls) CompileOptions() []cel.EnvOption { return nil }

// ProgramOptions implements cel.Library.
func (b boundedCalls) ProgramOptions() []cel.ProgramOption {
	// The cost of findAll depends on the text, even if the pattern is constant.
	asItIs := &interpreter.RegexOptimization{Function: "findAll", RegexIndex: 1, Factory: func(call interpreter.InterpretableCall,
		pattern string,
	) (interpreter.InterpretableCall, error) {
		_, err := regexp.Compile(pattern)
		return call, err //nolint:wrapcheck // it is shown as it is, at its place
	}}
	return []cel.ProgramOption{
		cel.OptimizeRegex(asItIs),
		cel.CustomDecoratorV2(func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
			call, ok := i.(interpreter.InterpretableCall)
			if !ok || bounds(call.Function()) == nil {
				return i, nil
			}
			f, err := implementation(b.lang.decls, call.Function(), &ast.ReferenceInfo{OverloadIDs: []string{call.OverloadID()}})
			if err != nil {
				return nil, err
			}
			return &boundedCall{call, Callee{call.Function(), f}}, nil
		}),
	}
}

// boundedCall is a call with this check, in the form that cel-go runs.
type boundedCall struct {
	interpreter.InterpretableCall
	c Callee
}

// Eval implements interpreter.Interpretable.
func (b *boundedCall) Eval(vars interpreter.Activation) ref.Val {
	return b.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (b *boundedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	values := make([]ref.Val, len(b.Args()))
	for i, arg := range b.Args() {
		if values[i] = arg.Exec(frame); types.IsUnknownOrError(values[i]) {
			return values[i]
		}
	}
	if b.c.Wrong(values[0]) {
		return b.c.NoOverload()
	}
	return b.c.F.Function(values...)
}

// exceeds is the prefix of every error about an exceeded budget.
const exceeds = "exceeded its budget of "

// OverBudget returns the error for an evaluation that exceeds its budget, or would exceed it.
func OverBudget(format string, args ...any) ref.Val { return types.NewErr(exceeds+format, args...) }

// Exceeded reports whether an error states that a budget was exceeded.
func Exceeded(err ref.Val) bool {
	e, ok := err.(*types.Err)
	return ok && len(e.String()) > len(exceeds) && e.String()[:len(exceeds)] == exceeds
}

// panicked is the prefix of every error that was a panic. cel-go uses the same words.
const panicked = "internal error: "

// Panic converts the recovered panic of an evaluation into an error.
func Panic(failure any) ref.Val { return types.NewErr(panicked+"%v", failure) }

// Panicked reports whether an error is a recovered panic.
func Panicked(err ref.Val) bool {
	e, ok := err.(*types.Err)
	return ok && strings.HasPrefix(e.String(), panicked)
}

// Apply calls a function through whichever of its forms is set.
func Apply(f *functions.Overload, args []ref.Val) ref.Val {
	switch {
	case len(args) == 1 && f.Unary != nil:
		return f.Unary(args[0])
	case len(args) == 2 && f.Binary != nil:
		return f.Binary(args[0], args[1])
	}
	return f.Function(args...)
}
