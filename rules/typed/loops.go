package typed

import (
	"fmt"
	"maps"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Loop is one list of a row's forEach. The row is evaluated for each element.
type Loop struct {
	item, index string
	in          *eval.Expr
}

// Names returns the names of the element and of its index; "" for a missing name.
func (l Loop) Names() (item, index string) { return l.item, l.index }

// In returns the expression of the list.
func (l Loop) In() *eval.Expr { return l.in }

// Compile compiles an expression that may read extra in addition to the variables of all rows. It returns nil after it has reported a
// mistake.
type Compile func(t source.Text, extra map[string]*cel.Type, want rules.Kind) *eval.Expr

const loopPart = "loop"

// Loops returns the keys of an entry of forEach.
func Loops() rules.Part {
	return rules.Part{Name: loopPart, Doc: "An entry of forEach.", Keys: []rules.Key{
		{Name: "item", Value: "name", Doc: "What the row calls the element."},
		{Name: "index", Value: "name", Doc: "What the row calls its number, from 0."},
		{Name: "in", Value: "CEL", Doc: "The list."},
	}}
}

// ReadLoops reads forEach. Each list may read the elements of earlier lists. extra contains the variables that the loops define. taken are
// the names of other variables. ok is false if a list could not be compiled. Then the elements have no known type.
func ReadLoops(v source.Value, compile Compile, taken map[string]*cel.Type, issues *source.Issues) (
	loops []Loop, extra map[string]*cel.Type, ok bool,
) {
	extra = map[string]*cel.Type{}
	for _, item := range v.Items(issues) {
		item.Fields(rules.KeysOf([]rules.Part{Loops()}, loopPart), issues)
		for _, key := range []string{"item", "in"} {
			if !item.Get(key).Exists() && item.Kind() == source.Map {
				*issues = append(*issues, item.Issuef("add "+key, "%s is missing", key))
			}
		}
		l := Loop{item: item.Get("item").String(issues), index: item.Get("index").String(issues)}
		l.in = compile(item.Get("in").Text(issues), extra, rules.Kind{
			Name: "a list", Accepts: func(t *cel.Type) bool { return t.Kind() == types.ListKind },
		})
		if l.in == nil {
			return nil, nil, false
		}
		for name, t := range map[string]*cel.Type{l.item: l.in.Type.Parameters()[0], l.index: cel.IntType} {
			if _, taken := taken[name]; taken {
				*issues = append(*issues, item.Issuef("use another name", "%q is the name of something that all rows see", name))
				continue
			}
			if name != "" {
				extra[name] = t
			}
		}
		loops = append(loops, l)
	}
	return loops, extra, true
}

// Each calls do for each combination of elements of the lists, or once if there are no lists.
func Each(loops []Loop, in cel.Activation, do func(in cel.Activation) error) error {
	if len(loops) == 0 {
		return do(in)
	}
	l := loops[0]
	got := l.in.Eval(in)
	list, ok := got.(traits.Lister)
	if err, failed := got.(*types.Err); failed {
		return err
	} else if !ok {
		return fmt.Errorf("%s gave a %s", l.in.Text.Value, got.Type().TypeName())
	}
	at := within{items: Roots{}, in: in}
	if below, ok := in.(within); ok {
		at = within{items: maps.Clone(below.items), in: below.in}
	}
	index := types.Int(0)
	for it := list.Iterator(); it.HasNext() == types.True; index++ {
		at.items[l.item] = it.Next()
		if l.index != "" {
			at.items[l.index] = index
		}
		if err := Each(loops[1:], at, do); err != nil {
			return err
		}
	}
	return nil
}

// Keep returns a copy of an evaluation within Each that does not change when the loop continues.
func Keep(in cel.Activation) cel.Activation {
	if w, ok := in.(within); ok {
		w.items = maps.Clone(w.items)
		return w
	}
	return in
}

// within is an evaluation for one element of each list.
type within struct {
	items Roots
	in    cel.Activation
}

// ResolveName implements cel.Activation.
func (w within) ResolveName(name string) (any, bool) {
	if got, ok := w.items[name]; ok {
		return got, true
	}
	return w.in.ResolveName(name)
}

// Meter implements eval.Purse if the enclosing activation does.
func (w within) Meter(e *eval.Expr) *eval.Meter {
	if p, ok := w.in.(eval.Purse); ok {
		return p.Meter(e)
	}
	return nil
}

// Parent implements cel.Activation.
func (w within) Parent() cel.Activation { return nil }
