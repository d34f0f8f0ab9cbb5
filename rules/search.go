package rules

import (
	patterns "regexp/syntax"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Searchers say how many steps functions take that look for one of their arguments in another, so that it goes by the product of
// their lengths.
func Searchers() map[string]func(args []ref.Val) int64 {
	return map[string]func(args []ref.Val) int64{
		"matches": patternSteps, "find": patternSteps, "findAll": findAllSteps, "indexOf": indexSteps, "lastIndexOf": indexSteps,
	}
}

// patternSteps are those of making a pattern, and of going through a text with it once: with all of its states, of which CEL takes
// four to be one step.
func patternSteps(args []ref.Val) int64 {
	pattern, _ := args[1].(types.String)
	states := statesOf(string(pattern))
	return states + Walked(args[0], mostMade)*(states/4+1)
}

// findAllSteps are those of finding each match. The text behind a match is gone through again where the pattern may have looked
// further than the match goes: a.*b|a does in a text of a alone.
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

// statesOf is how large a pattern is with its repetitions written out.
func statesOf(pattern string) int64 {
	if !strings.Contains(pattern, "{") {
		return int64(len(pattern))
	}
	p, err := patterns.Parse(pattern, patterns.Perl)
	if err != nil {
		return int64(len(pattern)) // it is none, which whoever makes it says
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

// indexSteps are those of looking for a text at each place of another, or for an element in a list.
func indexSteps(args []ref.Val) int64 {
	if _, ok := args[0].(types.String); !ok {
		return Walked(args[0], mostMade)
	}
	return Walked(args[0], mostMade) + lengthOf(args[0])*lengthOf(args[1])/charsPerStep
}

// multiplies says that what a call takes goes by the product of lengths of which none is written out.
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

// writtenOut says that a value is written out.
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
