package values

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/quota"
)

func (x *Values) quotaTree(a *policy.Attribute, owner ref.Val) ref.Val {
	of, _ := language.Owner(owner).(*model.Queue)
	return x.tree(a.Tree).Read(a, of)
}

// tree computes the places of queues, and the sums on the paths to the root.
func (x *Values) tree(t *policy.QuotaTree) *policy.TreePlaces {
	queues := x.c.QueuesByName()
	parties, wrong := make([]quota.Party, len(queues)), make([]string, len(queues))
	for i, q := range queues {
		var err ref.Val
		if parties[i], err = x.party(t, q); err != nil {
			wrong[i] = fmt.Sprint(err)
		}
	}
	total, _ := x.amounts(t.Attribute, t.Args["total"], x.Frame())
	flat := t.Args["flat"] != nil && Eval(t.Args["flat"], x.Frame()) == types.True
	root, ok := Eval(t.Args["root"], x.Frame()).(types.String)
	if !ok && !flat {
		x.faultIn(t.Attribute, x.Frame(), Eval(t.Args["root"], x.Frame()))
	}
	at := policy.PlaceQueues(x.World(), t, queues, parties, string(root), flat, total)
	for i, q := range queues {
		at.Fail(i, wrong[i])
		for k := range t.RollUps {
			has, _ := x.amounts(t.Attribute, t.RollUps[k].Expr, x.Frame().OfQueue(q))
			at.Add(k, i, has)
		}
	}
	return at
}

func (x *Values) party(t *policy.QuotaTree, q *model.Queue) (quota.Party, ref.Val) {
	f := x.Frame().OfQueue(q)
	v := Eval(t.Args["parent"], f)
	parent, ok := v.(types.String)
	if !ok {
		x.faultIn(t.Attribute, f, v)
		return quota.Party{Name: q.Name}, v
	}
	p := quota.Party{Name: q.Name, Parent: string(parent)}
	into := map[string]*model.Resources{"guarantee": &p.Guarantee, "capability": &p.Capability, "deserved": &p.Deserved}
	if err := x.amountsInto(t.Attribute, t.Args, f, into); err != nil {
		return quota.Party{Name: q.Name, Parent: p.Parent}, err
	}
	return p, nil
}

func (x *Values) typicalTasks(a *policy.Attribute, of ref.Val) ref.Val {
	return language.TypicalTasks(x.c, Eval(a.Args["cover"], x.World().FrameOf(of)))
}

// shares returns the tree of shares: a group for each queue's path, with its jobs below.
func (x *Values) shares(a *policy.Attribute, _ ref.Val) ref.Val {
	total, err := x.amounts(a, a.Args["total"], x.Frame())
	if err != nil {
		return err
	}
	tree, paths := quota.NewShares(total), map[*model.Queue][]string{}
	for _, q := range x.c.QueuesByName() {
		path, ok := x.parts(a, "path", q)
		if !ok {
			continue
		}
		weights, _ := x.parts(a, "weights", q)
		numbers := make([]float64, len(weights))
		for i, part := range weights {
			w, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
			if err != nil || w != w {
				x.faultIn(a, x.Frame().OfQueue(q), types.NewErr("%q is no weight; write a number", part))
				w = 1
			}
			numbers[i] = w
		}
		paths[q] = path
		tree.Group(path, numbers)
	}
	for _, j := range x.c.JobsByKey() {
		if j.Orphan || j.Queue == nil || paths[j.Queue] == nil {
			continue
		}
		f := x.Frame().OfJobAlone(j)
		has, err := x.amounts(a, a.Args["allocated"], f)
		if err != nil {
			continue
		}
		if wants, err := x.amounts(a, a.Args["request"], f); err == nil {
			tree.Set(j.Key, paths[j.Queue], has, wants)
		}
	}
	return language.NewShareTree(tree, paths)
}

func (x *Values) parts(a *policy.Attribute, arg string, q *model.Queue) ([]string, bool) {
	f := x.Frame().OfQueue(q)
	v := Eval(a.Args[arg], f)
	text, ok := v.(types.String)
	if !ok {
		x.faultIn(a, f, v)
		return nil, false
	}
	return strings.Split(string(text), "/"), true
}
