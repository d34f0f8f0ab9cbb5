package language

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
	"github.com/celsius-scheduler/celsius/rules"
)

// ShareKeyFunction is the function that returns a queue's position in a share tree.
const ShareKeyFunction = "key"

// ShareTreeType returns the type of share trees.
func ShareTreeType() *cel.Type { return Object("ShareTree") }

// ShareTree is a share tree as a value: the current tree, and additional usage of jobs.
type ShareTree struct {
	Tree   *quota.Shares
	Paths  map[*model.Queue][]string
	Number uint64 // differs for each tree of a session
	Clock  uint64 // the clock of the cluster
	more   []quota.Change
}

// NewShareTree returns a share tree as a value. paths are the positions of queues.
func NewShareTree(tree *quota.Shares, paths map[*model.Queue][]string) ref.Val {
	return &ShareTree{Tree: tree, Paths: paths}
}

// ConvertToNative implements ref.Val.
func (t *ShareTree) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("a tree of shares has no other form")
}

// ConvertToType implements ref.Val.
func (t *ShareTree) ConvertToType(to ref.Type) ref.Val {
	if to == types.TypeType {
		return ShareTreeType()
	}
	return types.NewErr("a tree of shares cannot become a %s", to.TypeName())
}

// Equal implements ref.Val. It compares the tree, the moment and the additional usage.
func (t *ShareTree) Equal(other ref.Val) ref.Val {
	o, ok := other.(*ShareTree)
	return types.Bool(ok && o.name() == t.name())
}

// Type implements ref.Val.
func (t *ShareTree) Type() ref.Type { return ShareTreeType() }

// Value implements ref.Val.
func (t *ShareTree) Value() any { return t }

// name returns a text that differs for each tree and moment.
func (t *ShareTree) name() string {
	return fmt.Sprintf("tree of shares %d at %d %v", t.Number, t.Clock, t.more)
}

// with returns the tree with additional usage of a job.
func (t *ShareTree) with(j *JobView, more model.Resources) ref.Val {
	return &ShareTree{t.Tree, t.Paths, t.Number, t.Clock, append(slices.Clone(t.more), quota.Change{Key: j.Of.Key, More: more})}
}

// keys returns the positions of queues in the tree.
func (t *ShareTree) keys(queues ...*QueueView) [][]quota.Rank {
	var out [][]quota.Rank
	ask := func() {
		for _, q := range queues {
			out = append(out, t.Tree.Key(t.Paths[q.Of]))
		}
	}
	if len(t.more) == 0 {
		ask()
	} else {
		t.Tree.If(t.more, ask)
	}
	return out
}

// key returns a queue's position as a sort key.
func (t *ShareTree) key(q *QueueView) ref.Val {
	var out []ref.Val
	for _, r := range t.keys(q)[0] {
		saturated := 0.0
		if r.Saturated {
			saturated = 1
		}
		out = append(out, types.Double(saturated), types.Double(r.Share))
	}
	return List(out)
}

// shareTreeFunctions returns the functions of a share tree.
func shareTreeFunctions() []*rules.Function {
	change := func(name, doc string, sign float64) *rules.Function {
		return Method(name, doc, []*cel.Type{ShareTreeType(), JobType(), ResourcesType()}, ShareTreeType(), func(args ...ref.Val) ref.Val {
			t, okT := args[0].(*ShareTree)
			j, okJ := args[1].(*JobView)
			a, okA := args[2].(*Amounts)
			if !okT || !okJ || !okA {
				return wrongArgument(args[0])
			}
			return t.with(j, a.Resources.Scale(sign))
		}, "{0}", "{1}.uid")
	}
	key := func(args ...ref.Val) ref.Val {
		t, okT := args[0].(*ShareTree)
		q, okQ := args[1].(*QueueView)
		if !okT || !okQ {
			return wrongArgument(args[0])
		}
		return t.key(q)
	}
	compare := func(args ...ref.Val) ref.Val {
		t, okT := args[0].(*ShareTree)
		a, okA := args[1].(*QueueView)
		b, okB := args[2].(*QueueView)
		if !okT || !okA || !okB {
			return wrongArgument(args[0])
		}
		keys := t.keys(a, b)
		return types.Int(quota.CompareKeys(keys[0], keys[1]))
	}
	queue, tree := QueueType(), ShareTreeType()
	return []*rules.Function{
		Method(ShareKeyFunction, "The queue's place as a sort key: for each level from the root down 1 if nothing below can take more, else 0, "+
			"and its share by its weight.", []*cel.Type{tree, queue}, cel.ListType(cel.DoubleType), key, "{0}", "{1}.name"),
		Method("compare", "Which of two queues takes the next turn: below 0 the first, above 0 the second, 0 where they do not differ on their "+
			"common levels.", []*cel.Type{tree, queue, queue}, cel.IntType, compare, "{0}", "{1}.name", "{2}.name"),
		change("with", "The tree as it would be if the job had so much more. It is counted anew, at the cost of a look at the siblings on the "+
			"way up, each time that something is asked of it.", 1),
		change("without", "The tree as it would be if the job had so much less.", -1),
	}
}
