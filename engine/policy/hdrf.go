package policy

import (
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
	"github.com/celsius-scheduler/celsius/rules"
)

// hdrfFunction returns the accounting function for a tree of shares.
func hdrfFunction() *Accounting {
	str, amount := rules.Exactly(cel.StringType, "a string"), rules.Exactly(language.ResourcesType(), "Resources")
	return &Accounting{
		Name: "hdrf",
		Doc: "On the cluster: a ShareTree, hierarchical dominant resource fairness (Bhattacharya et al., Hierarchical Scheduling for Diverse " +
			"Datacenter Workloads, SoCC 2013). Jobs are leaves below the groups that queues' paths name. A job is saturated if of some resource " +
			"it has all that it wants, or if it wants one that is used up; a group is, if all below it are. A group counts as having what is " +
			"below it: of the saturated as it is, of the others scaled down to the smallest dominant share among them. Kept by delta: a change " +
			"costs a look at the siblings on the way up.",
		Args: []AccountingArgument{
			{Name: "path", Doc: "A queue's place as a text: names from the root down, with slashes between. The root's own is not looked " +
				"at.", Sees: "queue", Want: str},
			{Name: "weights", Doc: "Numbers in the same form, one for each name of the path. One below 1, or that is missing, is 1; of a group " +
				"that several queues name, the first queue's by name counts.", Sees: "queue", Want: str},
			{Name: "total", Doc: "Resources that there are in all; sees no queue and no job.", Want: amount},
			{Name: "allocated", Doc: "Resources that a job has.", Sees: "job", Want: amount},
			{Name: "request", Doc: "Resources that a job has and wants, together.", Sees: "job", Want: amount},
		},
		On:      []string{"cluster"},
		Held:    "kept by delta",
		Compile: compileShares,
	}
}

// shareState is the result of one hdrf. It is updated from change logs.
type shareState struct {
	Derived
	x       *Attribute
	jobs    follow.Cursor[*model.Job]
	queues  follow.Cursor[*model.Queue]
	tree    *quota.Shares
	total   model.Resources
	paths   map[*model.Queue][]string
	written map[*model.Queue]written
	// err is the reason why there is no tree; nil: there is one.
	err ref.Val
}

// written is the position and the weights that a queue states.
type written struct{ path, weights string }

func compileShares(s *TableScope, a *rules.Attribute, x *Account) bool {
	f := s.OneField(x, a, "cluster")
	f.Type = language.ShareTreeType()
	own, lasting := true, true
	for _, arg := range x.Function.Args {
		for _, r := range x.Args[arg.Name].Reads.All {
			own = own && (r.Changes <= rules.ByCycle || arg.Sees == "job" && s.p.Reach(r, "job") == Within)
			lasting = lasting && (arg.Sees == "" || s.p.lasting(r, arg.Sees) && s.p.quiet(r) && (arg.Sees == "job" || r.Changes <= rules.ByObject))
		}
	}
	x.Keep = func(kept *Accounts) Kept {
		return &shareState{Derived: Derived{Accounts: kept, byAction: f.ByAction, Follows: own, Lasts: lasting}, x: f}
	}
	return true
}

// Value implements Kept.
func (st *shareState) Value(*Attribute, ref.Val) ref.Val {
	st.Update()
	if st.err != nil {
		return st.err
	}
	return &language.ShareTree{Tree: st.tree, Paths: st.paths, Number: st.Version, Clock: st.clock}
}

// Erring implements Kept.
func (st *shareState) Erring() bool { return st.erred || st.err != nil }

// Update implements Kept. For each changed job it costs one evaluation and a visit of the siblings on the path to the root. It rebuilds the
// tree if the position of a queue or the total changed. It rebuilds it in each cycle if an argument fails, or reads more than its own queue
// or job.
func (st *shareState) Update() { st.Bring(st) }

// Carry implements Deriver. It checks the positions of queues and the total.
func (st *shareState) Carry(language.Stamp) bool {
	s, x := st.Accounts, st.x
	touched, known := st.queues.Peek(&s.c.QueueLog)
	if !known || st.erred {
		return false
	}
	f := s.Ask.Frame()
	defer s.Ask.Done()
	if total, ok := x.Args["total"].Eval(f).(*language.Amounts); !ok || !identical(total.Resources, st.total) {
		return false
	}
	for _, q := range touched {
		was, there := st.written[q]
		if !there || s.c.Queues[q.Name] != q {
			return false
		}
		f.Queue = s.QueueView(q)
		path, okPath := x.Args["path"].Eval(f).(types.String)
		weights, okWeights := x.Args["weights"].Eval(f).(types.String)
		if !okPath || !okWeights || (written{string(path), string(weights)}) != was {
			return false
		}
	}
	st.queues.Skip(&s.c.QueueLog)
	return true
}

// Replay implements Deriver.
func (st *shareState) Replay(language.Stamp) bool {
	entries, ok := st.jobs.Read(&st.Accounts.c.JobLog)
	if ok {
		eachOnce(entries, st.enter)
	}
	return ok
}

// Rebuild implements Deriver. Without a total there is no tree.
func (st *shareState) Rebuild() bool {
	s, x := st.Accounts, st.x
	f := s.Ask.Frame()
	defer s.Ask.Done()
	v := x.Args["total"].Eval(f)
	total, ok := v.(*language.Amounts)
	if !ok {
		s.Ask.FaultOf(x, f, v)
		st.err = v
		return false
	}
	st.err = nil
	st.jobs.Skip(&s.c.JobLog)
	st.queues.Skip(&s.c.QueueLog)
	st.tree, st.total = quota.NewShares(total.Resources), total.Resources.Clone()
	st.paths, st.written = map[*model.Queue][]string{}, map[*model.Queue]written{}
	for _, q := range s.c.QueuesByName() {
		f.Queue = s.QueueView(q)
		path, ok := s.parts(x, f, "path")
		if !ok {
			continue
		}
		weights, _ := s.parts(x, f, "weights")
		st.paths[q] = path
		st.written[q] = written{strings.Join(path, "/"), strings.Join(weights, "/")}
		st.tree.Group(path, s.weights(x, f, weights))
	}
	for _, j := range s.c.JobsByKey() {
		st.enter(j)
	}
	return true
}

// parts evaluates a text and splits it at slashes.
func (s *Accounts) parts(x *Attribute, f *language.Frame, arg string) ([]string, bool) {
	v := x.Args[arg].Eval(f)
	text, ok := v.(types.String)
	if !ok {
		s.Ask.FaultOf(x, f, v)
		return nil, false
	}
	return strings.Split(string(text), "/"), true
}

// weights parses numbers. An invalid number is an error of that queue, and counts as 1.
func (s *Accounts) weights(x *Attribute, f *language.Frame, parts []string) []float64 {
	out := make([]float64, len(parts))
	for i, part := range parts {
		w, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || w != w {
			s.Ask.FaultOf(x, f, types.NewErr("%q is no weight; write a number", part))
			w = 1
		}
		out[i] = w
	}
	return out
}

// enter sets the usage and the demand of one job. A job without a queue, or in a queue without a path, takes no part.
func (st *shareState) enter(j *model.Job) {
	s, x := st.Accounts, st.x
	if is := s.c.Jobs[j.Key]; is != j {
		if is == nil {
			st.tree.Drop(j.Key)
		}
		return // another job with this name is in the log as well
	}
	path, ok := st.paths[j.Queue]
	if j.Orphan || j.Queue == nil || !ok {
		st.tree.Drop(j.Key)
		return
	}
	f := s.Ask.Frame()
	defer s.Ask.Done()
	f.Job = s.JobView(j)
	var values [2]model.Resources
	for i, arg := range []string{"allocated", "request"} {
		v := x.Args[arg].Eval(f)
		a, ok := v.(*language.Amounts)
		if !ok {
			s.Ask.FaultOf(x, f, v)
			st.tree.Drop(j.Key)
			return
		}
		values[i] = a.Resources
	}
	st.tree.Set(j.Key, path, values[0], values[1])
}
