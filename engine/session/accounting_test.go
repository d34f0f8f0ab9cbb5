package session

import (
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/facts"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// largestFunction is an accounting function that exists only in these tests. It needs only this file and one line of registration.
func largestFunction() *policy.Accounting {
	return &policy.Accounting{
		Name: "largest",
		Doc:  "On a queue: the largest number among its jobs.",
		Args: []policy.AccountingArgument{
			{Name: "of", Doc: "A number of a job.", Sees: "job", Want: rules.Number()},
			{Name: "least", Optional: true, Doc: "What there is where no job has more.", Want: rules.Number()},
		},
		On:   []string{"queue"},
		Held: "kept by delta",
		Compile: func(s *policy.TableScope, a *rules.Attribute, x *policy.Account) bool {
			f := s.OneField(x, a, "queue")
			f.Type = types.DoubleType
			x.Keep = func(s *policy.Accounts) policy.Kept {
				return &largestState{Derived: policy.Derived{Accounts: s, Follows: true, Lasts: true}, x: f}
			}
			return true
		},
	}
}

// largestState stores the number of each job.
type largestState struct {
	policy.Derived
	x      *policy.Attribute
	cursor follow.Cursor[*model.Job]
	of     map[*model.Job]float64
}

func (st *largestState) Update() { st.Bring(st) }

func (st *largestState) Carry(language.Stamp) bool { return true }

func (st *largestState) Replay(language.Stamp) bool {
	jobs, known := st.cursor.Read(&st.Accounts.Cluster().JobLog)
	for _, j := range jobs {
		st.enter(j)
	}
	return known
}

func (st *largestState) Rebuild() bool {
	st.of = map[*model.Job]float64{}
	st.cursor.Skip(&st.Accounts.Cluster().JobLog)
	for _, j := range st.Accounts.Cluster().Jobs {
		st.enter(j)
	}
	return true
}

func (st *largestState) enter(j *model.Job) {
	if delete(st.of, j); st.Accounts.Cluster().Jobs[j.Key] != j || j.Queue == nil {
		return
	}
	f := st.Accounts.Ask.Frame().OfJobAlone(j)
	defer st.Accounts.Ask.Done()
	st.of[j], _ = language.Number(st.x.Args["of"].Eval(f))
}

func (st *largestState) Value(x *policy.Attribute, owner ref.Val) ref.Val {
	st.Update()
	largest := 0.0
	if least := x.Args["least"]; least != nil {
		largest, _ = language.Number(least.Eval(st.Accounts.Ask.Frame()))
		st.Accounts.Ask.Done()
	}
	for j, n := range st.of {
		if language.Owner(owner) == any(j.Queue) {
			largest = max(largest, n)
		}
	}
	return types.Double(largest)
}

// loadedWithLargest compiles a policy whose tables may also use the function.
func loadedWithLargest(t *testing.T, table string) (*policy.Policy, source.Issues) {
	t.Helper()
	docs, issues := source.Parse("policy.yaml", []byte(policyText(table)))
	if len(docs) != 1 {
		t.Fatal(issues)
	}
	return policy.LoadIn(docs[0], policy.Verbs(), policy.Vocabulary(), append(policy.AccountingFunctions(), largestFunction()))
}

const largest = `
attributes:
- {on: queue, name: widest, largest: {of: job.allocated.cpu, least: "0.5"}}
- {on: queue, name: longest, settle: cycle, largest: {of: "double(job.taskCount)"}}
- {on: queue, name: after, expression: queue.widest + queue.longest}
- {on: cluster, name: all, sum: {over: queue, of: queue.widest}}
- {on: queue, name: due, settle: current, waterFill: {total: cluster.allocatable, weight: queue.widest, demand: queue.request}}
- on: queue
  name: limits
  quotaTree:
    parent: queue.spec.parent
    root: "'top'"
    total: cluster.allocatable
    rollUp: {wide: queue.request.scale(queue.widest)}
queueOrder:
- {name: wide, by: queue.widest}
`

// TestAFunctionIsOneFile checks that a registered accounting function is read, compiled, evaluated and cached as the others are. So is what
// other functions compute from it.
func TestAFunctionIsOneFile(t *testing.T) {
	t.Parallel()
	p, issues := loadedWithLargest(t, largest)
	if p == nil {
		t.Fatal(issues)
	}
	held := map[string]string{}
	for _, f := range facts.Of(p) {
		held[f.Name] = f.Cache
	}
	if held["queue.widest"] != "kept by delta" || held["queue.longest"] != "computed once a cycle" {
		t.Errorf("its values are said to be %q and %q", held["queue.widest"], held["queue.longest"])
	}
	c := twoJobs(t)
	s := New(c, p)
	s.Begin(noon())
	widest := func() string { return s.Computed(c.Queues["q"])["widest"] }
	if got := widest(); got != "0.5" {
		t.Errorf("before anything is placed: %s", got)
	}
	txn := c.Begin()
	txn.Allocate(c.Tasks["a/r"], 0, nil)
	if got := widest(); got != "2" {
		t.Errorf("with two cores placed: %s", got)
	}
	txn.Rollback(0)
	if got := widest(); got != "0.5" {
		t.Errorf("after the rollback: %s", got)
	}
	rapid.Check(t, func(t *rapid.T) { newTwins(p, figures).run(t) })
}

// TestWrongUsesOfARegisteredFunction checks that a mistake in the use of a registered function is reported at its position, without text of
// its own.
func TestWrongUsesOfARegisteredFunction(t *testing.T) {
	t.Parallel()
	for use, want := range map[string]string{
		`{on: cluster, name: x, largest: {of: "1"}}`:                         "largest is on queues, not on cluster",
		`{on: queue, name: x, largest: {least: "1"}}`:                        "of is missing",
		`{on: queue, name: x, largest: {of: job.name}}`:                      "gives a string, but this place wants a number",
		`{on: queue, name: x, largest: {of: queue.weight}}`:                  `"queue" is not known here`,
		`{on: queue, name: x, largest: {of: job.priority, least: job.name}}`: `"job" is not known here`,
	} {
		p, issues := loadedWithLargest(t, "attributes: ["+use+"]")
		if p != nil || len(issues) != 1 || !strings.Contains(issues[0].Message, want) {
			t.Errorf("%s: got %v, want %q", use, issues, want)
		}
	}
}
