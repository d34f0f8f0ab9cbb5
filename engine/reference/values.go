package reference

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/quota"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Starts are values of computed fields that have settled.
type Starts map[Settled]ref.Val

// Settled is a computed field of one object, by its name.
type Settled struct {
	Of    *policy.Attribute
	Owner string
}

// settle computes what settles once a cycle, or at the start of the run, for everything that has it.
func (x *cycle) settle() {
	for _, a := range x.p.Attributes() {
		if a.Settle == "cycle" || a.Settle == "start" {
			for _, view := range x.world().Owners(a.On) {
				x.Attribute(a, view)
			}
		}
	}
}

// Attribute implements policy.Values.
func (x *cycle) Attribute(a *policy.Attribute, of ref.Val) ref.Val {
	values := map[string]Starts{"cycle": x.settled, "start": x.starts}[a.Settle]
	key := Settled{a, language.OwnerName(of)}
	if v, ok := values[key]; ok {
		return v
	}
	v := language.Held(x.compute(a, of))
	if values != nil {
		values[key] = v
	}
	return v
}

// Variable implements policy.Values.
func (x *cycle) Variable(v *policy.Variable, f *language.Frame) ref.Val { return evaluate(v.Expr, f) }

func (x *cycle) compute(a *policy.Attribute, of ref.Val) ref.Val {
	f := x.world().FrameOf(of)
	if a.When != nil {
		switch held := evaluate(a.When, f); {
		case types.IsError(held):
			return held
		case held != types.True:
			return types.NewErr("%s has no value here: its guard is false", a.Name)
		}
	}
	if function := accounting()[a.Function]; function != nil {
		return function(x, a, of)
	}
	return evaluate(a.Expr, f)
}

// accounting lists what the accounting functions give for an owner, by name.
func accounting() map[string]func(x *cycle, a *policy.Attribute, of ref.Val) ref.Val {
	return map[string]func(x *cycle, a *policy.Attribute, of ref.Val) ref.Val{
		"sum":          (*cycle).sum,
		"waterFill":    (*cycle).waterFill,
		"quotaTree":    (*cycle).quotaTree,
		"hdrf":         (*cycle).shares,
		"typicalTasks": (*cycle).typicalTasks,
	}
}

// sum adds up what the members of an object have.
func (x *cycle) sum(a *policy.Attribute, of ref.Val) ref.Val {
	totals := map[string]*policy.Total{}
	for _, m := range x.members(a, language.Owner(of)) {
		if w := a.Args["when"]; w != nil {
			if held := evaluate(w, m); held != types.True {
				x.faultIn(a, m, held)
				continue
			}
		}
		key := ""
		if e := a.Args["by"]; e != nil {
			by, ok := evaluate(e, m).(types.String)
			if !ok {
				x.faultIn(a, m, evaluate(e, m))
				continue
			}
			key = string(by)
		}
		v := evaluate(a.Args["of"], m)
		if types.IsError(v) {
			x.faultIn(a, m, v)
			continue
		}
		if totals[key] == nil {
			totals[key] = &policy.Total{}
		}
		totals[key].Add(v, 1)
	}
	if a.Args["by"] == nil {
		return policy.Sum(x.world(), a.Type, totals[""])
	}
	out := map[ref.Val]ref.Val{}
	for key, t := range totals {
		out[types.String(key)] = policy.Sum(x.world(), a.Type.Parameters()[1], t)
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, out)
}

// members are frames about the members of an object: of a queue its jobs, of a namespace, a queue or a job its tasks, of the cluster all.
// A job that stands for one pod without a group is none.
func (x *cycle) members(a *policy.Attribute, of any) []*language.Frame {
	var out []*language.Frame
	if a.Over == "queue" {
		for _, q := range x.c.QueuesByName() {
			out = append(out, x.world().Frame().OfQueue(q))
		}
		return out
	}
	for _, j := range x.c.JobsByKey() {
		switch o := of.(type) {
		case *model.Queue:
			if j.Queue != o {
				continue
			}
		case *model.Job:
			if j != o {
				continue
			}
		case *model.Namespace:
			if j.Namespace != o.Name {
				continue
			}
		}
		if a.Over == "job" && !j.Orphan {
			out = append(out, x.world().Frame().OfJobAlone(j))
		}
		for _, t := range j.Tasks {
			if a.Over == "task" {
				out = append(out, x.world().Frame().OfTaskAlone(t))
			}
		}
	}
	return out
}

func (x *cycle) faultIn(a *policy.Attribute, f *language.Frame, v ref.Val) {
	if types.IsError(v) {
		x.fault("attributes", a.Table, a.Name, f, v)
	}
}

// amounts evaluates an argument that gives Resources; without one it is empty.
func (x *cycle) amounts(a *policy.Attribute, e *eval.Expr, f *language.Frame) (r model.Resources, err ref.Val) {
	if e == nil {
		return nil, nil
	}
	v := evaluate(e, f)
	r, ok := language.AmountsOf(v)
	if !ok {
		x.fault("attributes", a.Table, a.Name, f, v)
		return nil, v
	}
	return r.Clone(), nil
}

// waterFill is the part of one queue. What settles once a cycle is shared out once a cycle.
func (x *cycle) waterFill(a *policy.Attribute, owner ref.Val) ref.Val {
	values := x.filled[a]
	if values == nil {
		values = x.fill(a)
	}
	if a.Settle == "cycle" {
		x.filled[a] = values
	}
	of, _ := language.Owner(owner).(*model.Queue)
	if v := values[of]; v != nil {
		return v
	}
	return types.NewErr("%s has no value for queue %s: it takes no part", a.Name, of.Name)
}

func (x *cycle) fill(a *policy.Attribute) map[*model.Queue]ref.Val {
	values := map[*model.Queue]ref.Val{}
	total, err := x.amounts(a, a.Args["total"], x.world().Frame())
	if err != nil {
		return values
	}
	var claims []quota.Claim
	var taking []*model.Queue
	for _, q := range x.c.QueuesByName() {
		f := x.world().Frame().OfQueue(q)
		if e := a.Args["among"]; e != nil && evaluate(e, f) != types.True {
			continue
		}
		claim, err := x.claim(a, q)
		if err != nil {
			values[q] = err
			continue
		}
		claims, taking = append(claims, claim), append(taking, q)
	}
	for i, r := range quota.WaterFill(total, claims) {
		values[taking[i]] = x.world().Amounts(r)
	}
	return values
}

func (x *cycle) claim(a *policy.Attribute, q *model.Queue) (c quota.Claim, err ref.Val) {
	f := x.world().Frame().OfQueue(q)
	weight := evaluate(a.Args["weight"], f)
	w, ok := language.Number(weight)
	if !ok || !(w > 0) {
		err = types.NewErr("weight of queue %s must be above 0, is %s", q.Name, language.Text(weight))
		x.fault("attributes", a.Table, a.Name, f, err)
		return c, err
	}
	c.Weight = w
	err = x.amountsInto(a, a.Args, f, map[string]*model.Resources{"floor": &c.Floor, "ceiling": &c.Ceiling, "demand": &c.Demand})
	return c, err
}

// amountsInto evaluates several arguments, by name; the first error ends it.
func (x *cycle) amountsInto(a *policy.Attribute, args map[string]*eval.Expr, f *language.Frame, into map[string]*model.Resources) (err ref.Val) {
	for _, arg := range slices.Sorted(maps.Keys(into)) {
		if *into[arg], err = x.amounts(a, args[arg], f); err != nil {
			return err
		}
	}
	return nil
}

func (x *cycle) quotaTree(a *policy.Attribute, owner ref.Val) ref.Val {
	of, _ := language.Owner(owner).(*model.Queue)
	return x.tree(a.Tree).Read(a, of)
}

// tree finds where queues stand, and adds up along the way up.
func (x *cycle) tree(t *policy.QuotaTree) *policy.TreePlaces {
	queues := x.c.QueuesByName()
	parties, wrong := make([]quota.Party, len(queues)), make([]string, len(queues))
	for i, q := range queues {
		var err ref.Val
		if parties[i], err = x.party(t, q); err != nil {
			wrong[i] = fmt.Sprint(err)
		}
	}
	total, _ := x.amounts(t.Attribute, t.Args["total"], x.world().Frame())
	flat := t.Args["flat"] != nil && evaluate(t.Args["flat"], x.world().Frame()) == types.True
	root, ok := evaluate(t.Args["root"], x.world().Frame()).(types.String)
	if !ok && !flat {
		x.faultIn(t.Attribute, x.world().Frame(), evaluate(t.Args["root"], x.world().Frame()))
	}
	at := policy.PlaceQueues(x.world(), t, queues, parties, string(root), flat, total)
	for i, q := range queues {
		at.Fail(i, wrong[i])
		for k := range t.RollUps {
			has, _ := x.amounts(t.Attribute, t.RollUps[k].Expr, x.world().Frame().OfQueue(q))
			at.Add(k, i, has)
		}
	}
	return at
}

func (x *cycle) party(t *policy.QuotaTree, q *model.Queue) (quota.Party, ref.Val) {
	f := x.world().Frame().OfQueue(q)
	v := evaluate(t.Args["parent"], f)
	parent, ok := v.(types.String)
	if !ok {
		x.faultIn(t.Attribute, f, v)
		return quota.Party{Name: q.Name}, v
	}
	p := quota.Party{Name: q.Name, Parent: string(parent)}
	err := x.amountsInto(t.Attribute, t.Args, f, map[string]*model.Resources{"guarantee": &p.Guarantee, "capability": &p.Capability, "deserved": &p.Deserved})
	if err != nil {
		return quota.Party{Name: q.Name, Parent: p.Parent}, err
	}
	return p, nil
}

func (x *cycle) typicalTasks(a *policy.Attribute, of ref.Val) ref.Val {
	return language.TypicalTasks(x.c, evaluate(a.Args["cover"], x.world().FrameOf(of)))
}

// shares is the tree of shares: a group for each queue's path, below it its jobs.
func (x *cycle) shares(a *policy.Attribute, _ ref.Val) ref.Val {
	total, err := x.amounts(a, a.Args["total"], x.world().Frame())
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
				x.faultIn(a, x.world().Frame().OfQueue(q), types.NewErr("%q is no weight; write a number", part))
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
		f := x.world().Frame().OfJobAlone(j)
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

func (x *cycle) parts(a *policy.Attribute, arg string, q *model.Queue) ([]string, bool) {
	f := x.world().Frame().OfQueue(q)
	v := evaluate(a.Args[arg], f)
	text, ok := v.(types.String)
	if !ok {
		x.faultIn(a, f, v)
		return nil, false
	}
	return strings.Split(string(text), "/"), true
}

// fault is a row, or a computed field, that erred.
type fault struct{ site, table, rule string }

func (x *cycle) fault(site, table, rule string, f *language.Frame, err ref.Val) {
	e := x.faults[fault{site, table, rule}]
	if e == nil {
		e = &model.RuleError{Site: site, Table: table, Rule: rule, Object: f.Subject(), Text: fmt.Sprint(err)}
		x.faults[fault{site, table, rule}] = e
	}
	e.Count++
}

// erred are the faults of the cycle, by site, table and rule. How often a row errs is how often it was asked.
func (x *cycle) erred() []model.RuleError {
	var out []model.RuleError
	for _, of := range slices.SortedFunc(maps.Keys(x.faults), func(a, b fault) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		out = append(out, *x.faults[of])
	}
	return out
}
