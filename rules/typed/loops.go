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

// Loop is one of the lists that a row is asked for each element of.
type Loop struct {
	item, index string
	in          *eval.Expr
}

// Names are those of the element and of its place, "" where it has none.
func (l Loop) Names() (item, index string) { return l.item, l.index }

// In gives the list.
func (l Loop) In() *eval.Expr { return l.in }

// Compile compiles an expression in which extra is known besides what all rows see. nil: it cannot be, which was reported.
type Compile func(t source.Text, extra map[string]*cel.Type, want rules.Kind) *eval.Expr

const loopPart = "loop"

// Loops are the entries of forEach.
func Loops() rules.Part {
	return rules.Part{Name: loopPart, Doc: "An entry of forEach.", Keys: []rules.Key{
		{Name: "item", Value: "name", Doc: "What the row calls the element."},
		{Name: "index", Value: "name", Doc: "What the row calls its number, from 0."},
		{Name: "in", Value: "CEL", Doc: "The list."},
	}}
}

// ReadLoops reads forEach: each list may read the elements of those before it; extra is what the row sees by it. Names that all rows see
// are taken. false: a list could not be compiled, so what the row reads has no known type.
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

// Each asks do for each element of the lists: once where there are none.
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

// Keep gives an evaluation within Each that stays as it is when the loop goes on.
func Keep(in cel.Activation) cel.Activation {
	if w, ok := in.(within); ok {
		w.items = maps.Clone(w.items)
		return w
	}
	return in
}

// within is an evaluation at one element of each of its lists.
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

// Meter implements eval.Purse, where who evaluates has one.
func (w within) Meter(e *eval.Expr) *eval.Meter {
	if p, ok := w.in.(eval.Purse); ok {
		return p.Meter(e)
	}
	return nil
}

// Parent implements cel.Activation.
func (w within) Parent() cel.Activation { return nil }
