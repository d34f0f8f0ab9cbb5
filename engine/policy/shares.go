package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
	"github.com/celsius-scheduler/celsius/rules"
)

// hdrfFunction is the accounting function that gives a tree of shares.
const hdrfFunction = "hdrf"

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

// shareState is the outcome of one hdrf, kept by delta.
type shareState struct {
	at      stamp
	clock   uint64
	cursor  uint64 // into the log of jobs
	queues  uint64 // into the log of queues
	number  uint64 // tells the trees of a session apart
	tree    *quota.Shares
	total   model.Resources
	paths   map[*model.Queue][]string
	written map[*model.Queue]written
	// erred says that some argument erred: each cycle is told of it.
	erred bool
}

// written is what a queue says of its place.
type written struct{ path, weights string }

// hdrf compiles the arguments.
func (s *tableScope) hdrf(x *Attribute, a *rules.Attribute, reads *rules.Reads) {
	if a.On != "cluster" {
		s.report(a.At.Issuef("write on: cluster", "hdrf is on the cluster, not on %s", a.On))
		return
	}
	str, amount := rules.Exactly(cel.StringType, "a string"), rules.Exactly(resourcesType(), "Resources")
	whole := true
	x.Args, x.memberOwn, x.kept = map[string]*rules.Expr{}, true, true
	for _, arg := range []struct {
		name, root string
		want       rules.Kind
	}{{"path", "queue", str}, {"weights", "queue", str}, {"total", "", amount}, {"allocated", "job", amount}, {"request", "job", amount}} {
		var roots []string
		if arg.root != "" {
			roots = []string{arg.root}
		}
		e := s.compile(a.Args[arg.name], roots, arg.want)
		if whole = whole && e != nil; e == nil {
			continue
		}
		x.Args[arg.name] = e
		s.p.shareReads(x, e.Reads, arg.root)
		members(reads, e.Reads, arg.root, "cluster")
	}
	if whole {
		x.Type = shareTreeType()
	}
}

// shareReads finds out how an hdrf with such an argument is kept.
func (p *Policy) shareReads(x *Attribute, reads *rules.Reads, root string) {
	for _, r := range reads.All {
		x.memberOwn = x.memberOwn && (r.Changes <= rules.ByCycle || root == "job" && p.reach(r, "job") == within)
		x.kept = x.kept && (root == "" || p.lasting(r, root) && p.quiet(r) && (root == "job" || r.Changes <= rules.ByObject))
	}
}

// shareTree brings a tree of shares up to date. It costs one evaluation and one look at the siblings on the way up for each
// job that changed, and everything anew where a queue has another place, or the total is another; for each cycle, where an argument errs, or reads more than
// its own queue or job.
func (s *Session) shareTree(x *Attribute) ref.Val {
	st := s.shares[x]
	at := s.stampOf(x.byAction)
	at.clock = s.c.ObjectClock
	holds := st != nil && !s.NoCache && (st.at == at || x.kept && s.keepShares(x, st))
	if holds && st.clock != s.c.Clock {
		holds = x.memberOwn && s.replayShares(x, st)
	}
	if !holds {
		var err ref.Val
		erring := s.erring
		if st, err = s.plantShares(x); err != nil {
			delete(s.shares, x)
			return err
		}
		s.planted++
		st.number, st.erred = s.planted, s.erring != erring
		s.shares[x] = st
	}
	st.at, st.clock = at, s.c.Clock
	return &shareTree{tree: st.tree, paths: st.paths, number: st.number, clock: st.clock}
}

// keepShares says whether a tree is, but for its jobs, what it would be if it were made anew in another cycle, or after an Apply.
func (s *Session) keepShares(x *Attribute, st *shareState) bool {
	touched, known := s.c.QueueLog.Since(st.queues)
	if !known || st.erred {
		return false
	}
	f := s.frame()
	defer s.done()
	if total, ok := x.Args["total"].Eval(f).(*amounts); !ok || !identical(total.r, st.total) {
		return false
	}
	for _, q := range touched {
		was, there := st.written[q]
		if !there || s.c.Queues[q.Name] != q {
			return false
		}
		f.queue = s.queueView(q)
		path, okPath := x.Args["path"].Eval(f).(types.String)
		weights, okWeights := x.Args["weights"].Eval(f).(types.String)
		if !okPath || !okWeights || (written{string(path), string(weights)}) != was {
			return false
		}
	}
	st.queues = s.c.QueueLog.Next()
	return true
}

// replayShares takes in the jobs that changed; false: the log was cut.
func (s *Session) replayShares(x *Attribute, st *shareState) bool {
	entries, ok := s.c.JobLog.Since(st.cursor)
	if !ok {
		return false
	}
	seen, erring := map[*model.Job]bool{}, s.erring
	for _, j := range entries {
		if !seen[j] {
			seen[j] = true
			s.enterShares(x, st, j)
		}
	}
	st.cursor, st.erred = s.c.JobLog.Next(), st.erred || s.erring != erring
	return true
}

// plantShares makes a tree anew.
func (s *Session) plantShares(x *Attribute) (*shareState, ref.Val) {
	f := s.frame()
	defer s.done()
	v := x.Args["total"].Eval(f)
	total, ok := v.(*amounts)
	if !ok {
		s.faultOf(x, f, v)
		return nil, v
	}
	st := &shareState{
		cursor: s.c.JobLog.Next(), queues: s.c.QueueLog.Next(), tree: quota.NewShares(total.r), total: total.r.Clone(), paths: map[*model.Queue][]string{}, written: map[*model.Queue]written{},
	}
	for _, q := range s.c.QueuesByName() {
		f.queue = s.queueView(q)
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
		s.enterShares(x, st, j)
	}
	return st, nil
}

// parts evaluates a text of parts with slashes between.
func (s *Session) parts(x *Attribute, f *Frame, arg string) ([]string, bool) {
	v := x.Args[arg].Eval(f)
	text, ok := v.(types.String)
	if !ok {
		s.faultOf(x, f, v)
		return nil, false
	}
	return strings.Split(string(text), "/"), true
}

// weights reads numbers; what is none is an error of that queue, and counts as 1.
func (s *Session) weights(x *Attribute, f *Frame, parts []string) []float64 {
	out := make([]float64, len(parts))
	for i, part := range parts {
		w, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || w != w {
			s.faultOf(x, f, types.NewErr("%q is no weight; write a number", part))
			w = 1
		}
		out[i] = w
	}
	return out
}

// enterShares says what one job has and wants. One in no queue, or in one without a path, takes no part.
func (s *Session) enterShares(x *Attribute, st *shareState, j *model.Job) {
	if is := s.c.Jobs[j.Key]; is != j {
		if is == nil {
			st.tree.Drop(j.Key)
		}
		return // another of the same name is in the log as well
	}
	path, ok := st.paths[j.Queue]
	if j.Orphan || j.Queue == nil || !ok {
		st.tree.Drop(j.Key)
		return
	}
	f := s.frame()
	defer s.done()
	f.job = s.jobView(j)
	var values [2]model.Resources
	for i, arg := range []string{"allocated", "request"} {
		v := x.Args[arg].Eval(f)
		a, ok := v.(*amounts)
		if !ok {
			s.faultOf(x, f, v)
			st.tree.Drop(j.Key)
			return
		}
		values[i] = a.r
	}
	st.tree.Set(j.Key, path, values[0], values[1])
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
		method(shareKeyFunction, "The queue's place as a sort key: for each level from the root down 1 if nothing below can take more, else 0, and its share by its weight.", []*cel.Type{tree, queue}, cel.ListType(cel.DoubleType), key, "{0}", "{1}.name"),
		method("compare", "Which of two queues takes the next turn: below 0 the first, above 0 the second, 0 where they do not differ on their common levels.", []*cel.Type{tree, queue, queue}, cel.IntType, compare, "{0}", "{1}.name", "{2}.name"),
		change("with", "The tree as it would be if the job had so much more. It is counted anew, at the cost of a look at the siblings on the way up, each time that something is asked of it.", 1),
		change("without", "The tree as it would be if the job had so much less.", -1),
	}
}

// hdrfShape declares the function for tables and for the reference.
func hdrfShape() rules.AttributeFunction {
	return rules.AttributeFunction{
		Name: hdrfFunction,
		Doc: "On the cluster: a ShareTree, hierarchical dominant resource fairness (Bhattacharya et al., Hierarchical Scheduling for Diverse Datacenter Workloads, SoCC 2013). Jobs are leaves below the groups that queues' paths name. " +
			"A job is saturated if of some resource it has all that it wants, or if it wants one that is used up; a group is, if all below it are. A group counts as having what is below it: of the saturated as it is, of the others scaled down to the smallest dominant share among them. " +
			"Kept by delta: a change costs a look at the siblings on the way up.",
		Args: []rules.Argument{
			{Name: "path", Doc: "A queue's place as a text: names from the root down, with slashes between. The root's own is not looked at."},
			{Name: "weights", Doc: "Numbers in the same form, one for each name of the path. One below 1, or that is missing, is 1; of a group that several queues name, the first queue's by name counts."},
			{Name: "total", Doc: "Resources that there are in all; sees no queue and no job."},
			{Name: "allocated", Doc: "Resources that a job has."},
			{Name: "request", Doc: "Resources that a job has and wants, together."},
		},
	}
}
