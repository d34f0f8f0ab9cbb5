package eval

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// rooted returns a scope with a function whose first argument is a depot that the author does not write. The result of the function tells
// which overload was called, with which arguments.
func rooted(t *testing.T) *rules.Scope {
	t.Helper()
	v := testVocabulary()
	names := func(args []ref.Val) string {
		var out []string
		for _, a := range args {
			if l, ok := a.(traits.Lister); ok {
				for it := l.Iterator(); it.HasNext() == types.True; {
					out = append(out, string(it.Next().(types.String)))
				}
				continue
			}
			out = append(out, string(a.(types.String)))
		}
		return strings.Join(out, " ")
	}
	overload := func(id string, spread bool, args ...*cel.Type) rules.Overload {
		return rules.Overload{
			ID: id, Args: append([]*cel.Type{depotType()}, args...), Result: cel.StringType, Reads: []string{"{0}.places"}, Spread: spread,
			Eval: func(args ...ref.Val) ref.Val {
				return types.String(id + " of " + string(args[0].(*thing).fields["name"].(types.String)) + ": " + names(args[1:]))
			},
		}
	}
	text, texts := cel.StringType, cel.ListType(cel.StringType)
	v.Functions = append(v.Functions, &rules.Function{Name: "called", Doc: "tests roots", Root: "depot", Overloads: []rules.Overload{
		overload("made", false, texts), overload("one", true, text), overload("two", true, text, text), overload("before", false, text, texts),
	}})
	l, err := rules.NewLanguage(v)
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Scope(map[string]*cel.Type{"depot": depotType(), "crate": crateType()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRootOfAFunction checks two features of functions. A function can take a root that the author does not write. A function can also take
// the elements of a written list as separate arguments.
func TestRootOfAFunction(t *testing.T) {
	s := rooted(t)
	depot := &thing{depotType(), map[string]ref.Val{"name": types.String("north")}}
	crate := &thing{crateType(), map[string]ref.Val{"name": types.String("c1")}}
	vars, err := cel.NewActivation(map[string]any{"depot": depot, "crate": crate})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		text, want string
		reads      []string
	}{
		{"called(['a'])", "one of north: a", []string{"depot.places"}},
		{"called([crate.name, 'b'])", "two of north: c1 b", []string{"crate.name", "depot.places"}},
		{"called(['a', 'b', 'c'])", "made of north: a b c", []string{"depot.places"}},
		{"called([])", "made of north: ", []string{"depot.places"}},
		{"called(['a', 'b'].map(x, x + crate.name))", "made of north: ac1 bc1", []string{"crate.name", "depot.places"}},
		{"called([?optional.of('a')])", "made of north: a", []string{"depot.places"}},
		{"called('x', ['a', 'b', 'c'])", "before of north: x a b c", []string{"depot.places"}},
	} {
		e, issues := Compile(s, source.NewText(test.text), rules.Anything())
		if issues.Err() != nil {
			t.Errorf("%s: %v", test.text, issues)
			continue
		}
		if got := e.Eval(vars); got != types.String(test.want) {
			t.Errorf("%s: got %v, want %s", test.text, got, test.want)
		}
		if diff := cmp.Diff(test.reads, e.Reads.Strings()); diff != "" {
			t.Errorf("%s reads (-want +got)\n%s", test.text, diff)
		}
	}
	for _, wrong := range []string{"called(1)", "called()", "called([1])"} {
		if _, issues := Compile(s, source.NewText(wrong), rules.Anything()); issues.Err() == nil {
			t.Errorf("%s compiles", wrong)
		}
	}
}
