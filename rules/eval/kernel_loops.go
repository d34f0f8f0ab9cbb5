package eval

import (
	"slices"
	"sync"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/rules"
)

// loop contains the variables of one comprehension, on top of the enclosing ones.
type loop struct {
	rules.Roots
	accu, iter, iter2 ref.Val
	meter             *Meter // nil: nothing is counted
}

// outside leaves the given number of loops.
func outside(r rules.Roots, depth int) rules.Roots {
	for range depth {
		l, ok := r.(*loop)
		if !ok {
			return r
		}
		r = l.Roots
	}
	return r
}

// local returns a function that reads a loop variable, or nil if no loop has a variable of that name.
func (k *kerneler) local(name string) func(rules.Roots) ref.Val {
	for i, n := range slices.Backward(k.locals) {
		out := len(k.locals) - 1 - i
		var get func(*loop) ref.Val
		switch name {
		case n.accu:
			get = func(l *loop) ref.Val { return l.accu }
		case n.iter:
			get = func(l *loop) ref.Val { return l.iter }
		case n.iter2:
			get = func(l *loop) ref.Val { return l.iter2 }
		default:
			continue
		}
		return func(r rules.Roots) ref.Val {
			l, ok := outside(r, out).(*loop)
			if !ok {
				return types.NewErr("no such attribute(s): %s", name)
			}
			return get(l)
		}
	}
	return nil
}

// fold is a compiled comprehension.
type fold struct {
	over, start, step, result kernel
	while                     func(rules.Roots) (bool, ref.Val)
	two                       bool
	turn                      int64     // the steps of one iteration; 0: not counted
	loops                     sync.Pool // of finished *loop values, for reuse
}

func (k *kerneler) comprehension(e ast.Expr) (kernel, error) {
	c := e.AsComprehension()
	f := &fold{two: c.HasIterVar2()}
	var err error
	if f.over, err = k.compile(c.IterRange()); err != nil {
		return kernel{}, err
	}
	if f.start, err = k.compile(c.AccuInit()); err != nil {
		return kernel{}, err
	}
	k.locals = append(k.locals, loopNames{c.AccuVar(), c.IterVar(), c.IterVar2()})
	defer func() { k.locals = k.locals[:len(k.locals)-1] }()
	while, err := k.compile(c.LoopCondition())
	if err != nil {
		return kernel{}, err
	}
	f.while = while.truth()
	if f.step, err = k.compile(c.LoopStep()); err != nil {
		return kernel{}, err
	}
	if k.metered {
		f.turn = 1 + k.stepsOf(c.LoopCondition(), c.LoopStep())
	}
	// The result can only read the accumulator.
	k.locals[len(k.locals)-1] = loopNames{accu: c.AccuVar(), iter: " ", iter2: " "}
	if f.result, err = k.compile(c.Result()); err != nil {
		return kernel{}, err
	}
	return valueKernel(k.typeOf(e), f.run), nil
}

// run runs the loop. As in cel-go, a list that is built grows in place, and a condition that fails does not end the loop.
func (f *fold) run(r rules.Roots) ref.Val {
	over := f.over.value(r)
	if types.IsError(over) {
		return over
	}
	l, ok := f.loops.Get().(*loop)
	if !ok {
		l = &loop{}
	}
	*l = loop{Roots: r, accu: f.start.value(r)}
	if f.turn > 0 {
		l.meter = meterOf(r)
	}
	defer func() {
		*l = loop{}
		f.loops.Put(l)
	}()
	growing := false
	if start, ok := l.accu.(traits.Lister); ok && start.Size() == types.IntZero {
		l.accu, growing = types.NewMutableList(types.DefaultTypeAdapter), true
	}
	if err := f.each(l, over); err != nil {
		return err
	}
	out := f.result.value(l)
	if list, ok := out.(traits.MutableLister); ok && growing {
		return list.ToImmutableList()
	}
	return out
}

func (f *fold) each(l *loop, over ref.Val) ref.Val {
	turn := func() bool {
		if l.meter != nil {
			l.meter.steps(f.turn)
		}
		if more, err := f.while(l); err == nil && !more {
			return false
		}
		l.accu = f.step.value(l)
		return true
	}
	if m, ok := over.(traits.Mapper); ok {
		for it := m.Iterator(); it.HasNext() == types.True; {
			l.iter = it.Next()
			if f.two {
				l.iter2 = m.Get(l.iter)
			}
			if !turn() {
				return nil
			}
		}
		return nil
	}
	list, ok := over.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(over)
	}
	size, ok := list.Size().(types.Int)
	if !ok {
		return types.MaybeNoSuchOverloadErr(over)
	}
	for i := range size {
		l.iter = list.Get(i)
		if f.two {
			l.iter, l.iter2 = i, l.iter
		}
		if !turn() {
			return nil
		}
	}
	return nil
}
