package policy

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

// shareKeyFunction gives a queue's place in a tree of shares.
const shareKeyFunction = "key"

func shareTreeType() *cel.Type { return object("ShareTree") }

// shareTree is a tree of shares as a value of the language: the tree as it is, and what jobs are to hold beside.
type shareTree struct {
	tree   *quota.Shares
	paths  map[*model.Queue][]string
	number uint64 // tells it from other trees of a session
	clock  uint64 // of the cluster
	more   []quota.Change
}

// ShareTree is a tree of shares as a value; paths are the places of queues in it.
func ShareTree(tree *quota.Shares, paths map[*model.Queue][]string) ref.Val {
	return &shareTree{tree: tree, paths: paths}
}

// ConvertToNative implements ref.Val.
func (t *shareTree) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("a tree of shares has no other form")
}

// ConvertToType implements ref.Val.
func (t *shareTree) ConvertToType(to ref.Type) ref.Val {
	if to == types.TypeType {
		return shareTreeType()
	}
	return types.NewErr("a tree of shares cannot become a %s", to.TypeName())
}

// Equal implements ref.Val: the same tree, at the same moment, with the same beside.
func (t *shareTree) Equal(other ref.Val) ref.Val {
	o, ok := other.(*shareTree)
	return types.Bool(ok && o.name() == t.name())
}

// Type implements ref.Val.
func (t *shareTree) Type() ref.Type { return shareTreeType() }

// Value implements ref.Val.
func (t *shareTree) Value() any { return t }

// name tells the tree of one moment from those of others.
func (t *shareTree) name() string {
	return fmt.Sprintf("tree of shares %d at %d %v", t.number, t.clock, t.more)
}

// with is the tree in which a job holds so much more.
func (t *shareTree) with(j *jobView, more model.Resources) ref.Val {
	return &shareTree{t.tree, t.paths, t.number, t.clock, append(slices.Clone(t.more), quota.Change{Key: j.of.Key, More: more})}
}

// keys are the places of queues in the tree.
func (t *shareTree) keys(queues ...*queueView) [][]quota.Rank {
	var out [][]quota.Rank
	ask := func() {
		for _, q := range queues {
			out = append(out, t.tree.Key(t.paths[q.of]))
		}
	}
	if len(t.more) == 0 {
		ask()
	} else {
		t.tree.If(t.more, ask)
	}
	return out
}

// key is a queue's place as a sort key.
func (t *shareTree) key(q *queueView) ref.Val {
	var out []ref.Val
	for _, r := range t.keys(q)[0] {
		saturated := 0.0
		if r.Saturated {
			saturated = 1
		}
		out = append(out, types.Double(saturated), types.Double(r.Share))
	}
	return list(out)
}

// shareTreeFunctions are those of a tree of shares.
func shareTreeFunctions() []*rules.Function {
	change := func(name, doc string, sign float64) *rules.Function {
		return method(name, doc, []*cel.Type{shareTreeType(), jobType(), resourcesType()}, shareTreeType(), func(args ...ref.Val) ref.Val {
			t, okT := args[0].(*shareTree)
			j, okJ := args[1].(*jobView)
			a, okA := args[2].(*amounts)
			if !okT || !okJ || !okA {
				return wrongArgument(args[0])
			}
			return t.with(j, a.r.Scale(sign))
		}, "{0}", "{1}.uid")
	}
	key := func(args ...ref.Val) ref.Val {
		t, okT := args[0].(*shareTree)
		q, okQ := args[1].(*queueView)
		if !okT || !okQ {
			return wrongArgument(args[0])
		}
		return t.key(q)
	}
	compare := func(args ...ref.Val) ref.Val {
		t, okT := args[0].(*shareTree)
		a, okA := args[1].(*queueView)
		b, okB := args[2].(*queueView)
		if !okT || !okA || !okB {
			return wrongArgument(args[0])
		}
		keys := t.keys(a, b)
		return types.Int(quota.CompareKeys(keys[0], keys[1]))
	}
	queue, tree := queueType(), shareTreeType()
	return []*rules.Function{
		method(shareKeyFunction, "The queue's place as a sort key: for each level from the root down 1 if nothing below can take more, else 0, "+
			"and its share by its weight.", []*cel.Type{tree, queue}, cel.ListType(cel.DoubleType), key, "{0}", "{1}.name"),
		method("compare", "Which of two queues takes the next turn: below 0 the first, above 0 the second, 0 where they do not differ on their "+
			"common levels.", []*cel.Type{tree, queue, queue}, cel.IntType, compare, "{0}", "{1}.name", "{2}.name"),
		change("with", "The tree as it would be if the job had so much more. It is counted anew, at the cost of a look at the siblings on the "+
			"way up, each time that something is asked of it.", 1),
		change("without", "The tree as it would be if the job had so much less.", -1),
	}
}
