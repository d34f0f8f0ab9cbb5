package rules

import (
	patterns "regexp/syntax"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Searchers returns functions that search for one argument in another, so that their cost grows with the product of the two lengths. Each
// entry computes the number of steps.
func Searchers() map[string]func(args []ref.Val) int64 {
	return map[string]func(args []ref.Val) int64{
		"matches": patternSteps, "find": patternSteps, "findAll": findAllSteps, "indexOf": indexSteps, "lastIndexOf": indexSteps,
	}
}

// patternSteps returns the steps to compile a pattern and to run it over a text once. Each character visits all states of the pattern. CEL
// counts four states as one step.
func patternSteps(args []ref.Val) int64 {
	pattern, _ := args[1].(types.String)
	states := statesOf(string(pattern))
	return states + Walked(args[0], mostMade)*(states/4+1)
}

// findAllSteps returns the steps to find every match. The text after a match is searched again if the pattern may look beyond the end of
// the match. For example, a.*b|a does this in a text that consists of a only.
func findAllSteps(args []ref.Val) int64 {
	pattern, _ := args[1].(types.String)
	times := int64(1)
	if looksFurther(string(pattern)) {
		times = max(lengthOf(args[0]), 1)
	}
	if len(args) > 2 {
		if n, _ := args[2].(types.Int); n >= 0 {
			times = min(times, max(int64(n), 1))
		}
	}
	return times * patternSteps(args)
}

func looksFurther(pattern string) bool { return strings.ContainsAny(pattern, "|*?{") }

// statesOf returns the size of a pattern with its repetitions written out.
func statesOf(pattern string) int64 {
	if !strings.Contains(pattern, "{") {
		return int64(len(pattern))
	}
	p, err := patterns.Parse(pattern, patterns.Perl)
	if err != nil {
		return int64(len(pattern)) // the pattern is invalid, which its compiler reports
	}
	return statesIn(p)
}

func statesIn(p *patterns.Regexp) int64 {
	sum := int64(1 + len(p.Rune))
	for _, x := range p.Sub {
		sum += statesIn(x)
	}
	if p.Op == patterns.OpRepeat {
		sum *= int64(max(p.Min, p.Max, 1))
	}
	return sum
}

// indexSteps returns the steps to search for a text at each position of another text, or for an element in a list.
func indexSteps(args []ref.Val) int64 {
	if _, ok := args[0].(types.String); !ok {
		return Walked(args[0], mostMade)
	}
	return Walked(args[0], mostMade) + lengthOf(args[0])*lengthOf(args[1])/charsPerStep
}

// multiplies reports whether the cost of a call grows with a product of lengths that are not literals.
func multiplies(e ast.Expr) bool {
	c, args := e.AsCall(), ArgumentsOf(e.AsCall())
	switch name := c.FunctionName(); {
	case name == "findAll" && len(args) > 1:
		return looksFurther(StringLiteral(args[1])) || !writtenOut(args[1])
	case name == "matches" || name == "find":
		return len(args) > 1 && !writtenOut(args[1])
	default:
		return Walkers()[name] == Quadratic && (len(args) == 1 || !slices.ContainsFunc(args[:2], writtenOut))
	}
}

// writtenOut reports whether a value is a literal.
func writtenOut(e ast.Expr) bool {
	switch e.Kind() {
	case ast.LiteralKind:
		return true
	case ast.ListKind:
		return !slices.ContainsFunc(e.AsList().Elements(), func(x ast.Expr) bool { return !writtenOut(x) })
	default:
		return false
	}
}
