package openb

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Annotations of a SchedulingPolicy that select what it is compared with.
const (
	// PublishedAnnotation is the name of the published policy, such as 05-BestFit.
	PublishedAnnotation = "celsius.dev/published"
	// ComparedAnnotation is the requirement, one of Comparisons. Default: SameRuns.
	ComparedAnnotation = "celsius.dev/compared"
)

// Comparison is the required relation between a policy's runs and the published ones.
type Comparison string

const (
	// SameRuns requires each run to equal the published run with its seed, in every column within Tolerance.
	SameRuns Comparison = "runs"
	// SameMean requires the mean over the seeds to equal the published mean, in every column within MeanTolerance. It is for policies with
	// random choices.
	SameMean Comparison = "mean"
	// Ahead requires a higher allocation than published, on average over the seeds and the columns from aheadFrom on. In none of these columns
	// may the mean over the seeds be behind by more than AheadTolerance.
	Ahead Comparison = "ahead"
)

// Comparisons returns all values of ComparedAnnotation.
func Comparisons() []Comparison { return []Comparison{SameRuns, SameMean, Ahead} }

// Heuristic is a policy whose allocation is measured.
type Heuristic struct {
	Name      string // metadata.name
	Published string // the value of PublishedAnnotation, "" if none
	Compared  Comparison
	Policy    *policy.Policy
}

// NewHeuristic reads a file with one SchedulingPolicy. The error contains all of its mistakes.
func NewHeuristic(file string, data []byte) (*Heuristic, error) {
	docs, issues := source.Parse(file, data)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		return nil, fmt.Errorf("%s: must hold one SchedulingPolicy, found %d documents", file, len(docs))
	}
	p, issues := policy.Load(docs[0])
	if err := issues.Err(); err != nil {
		return nil, err
	}
	h := &Heuristic{Name: p.Name, Policy: p, Compared: SameRuns}
	annotations := docs[0].Root.Get("metadata").Get("annotations")
	if v := annotations.Get(PublishedAnnotation); v.Exists() {
		h.Published = v.String(&issues)
	}
	if v := annotations.Get(ComparedAnnotation); v.Exists() {
		h.Compared = Comparison(v.String(&issues))
		if !slices.Contains(Comparisons(), h.Compared) {
			issues = append(issues, v.Issuef(fmt.Sprintf("one of %v", Comparisons()), "unknown comparison %q", h.Compared))
		}
	}
	return h, issues.Err()
}

// Result is one run.
type Result struct {
	Heuristic *Heuristic
	Workload  string
	Seed      int64
	Arrived   int // number of pods
	Placed    int // number of pods
	Curve     Curve
}

// Run replays a trace under a policy. It fails if the plan exceeds the resources of a node or a device, or if a rule fails.
func (t *Trace) Run(p *policy.Policy, seed int64) (*Result, error) {
	return t.opening(seed).run(p)
}

func (o *opening) run(p *policy.Policy) (*Result, error) {
	c, err := o.cluster()
	if err != nil {
		return nil, err
	}
	plan := engine.Decide(c, p, o.end())
	if len(plan.Errors) > 0 {
		e := plan.Errors[0]
		return nil, fmt.Errorf("%s/%s erred %d times, first for %s: %s", e.Table, e.Rule, e.Count, e.Object, e.Text)
	}
	placed, err := o.trace.audit(o.replay, plan)
	if err != nil {
		return nil, err
	}
	curve := o.trace.curve(o.replay.pods, placed)
	return &Result{Workload: o.trace.Workload, Seed: o.seed, Arrived: len(o.replay.pods), Placed: len(plan.Binds), Curve: curve}, nil
}

// audit checks the plan against the cluster's resources, and returns for each pod, in order of arrival, whether it is placed.
func (t *Trace) audit(run replay, plan *model.Plan) ([]bool, error) {
	pods := make(map[string]int, len(run.pods))
	for i := range run.pods {
		pods[run.pods[i].Name] = i
	}
	nodes := make(map[string]int, len(t.Nodes))
	for i, n := range t.Nodes {
		nodes[n.Name] = i
	}
	free := newLedger(t.Nodes)
	placed := make([]bool, len(run.pods))
	for i := range plan.Binds {
		b := &plan.Binds[i]
		at, known := pods[taskName(b.Task)]
		n, there := nodes[b.Node]
		if !known || !there || placed[at] {
			return nil, fmt.Errorf("the plan binds %s to %s: no such pod, no such node, or bound before", b.Task, b.Node)
		}
		p := &run.pods[at]
		if int64(len(b.GPUs)) != p.GPUs {
			return nil, fmt.Errorf("the plan binds %s to %s with devices %v, it asks for %d", b.Task, b.Node, b.GPUs, p.GPUs)
		}
		if why := free.misfit(n, *p, append([]int{}, b.GPUs...)); why != "" {
			return nil, fmt.Errorf("the plan binds %s to %s, where it does not fit: %s", b.Task, b.Node, why)
		}
		free.take(n, *p, b.GPUs)
		placed[at] = true
	}
	return placed, nil
}

// RunAll runs each policy with each seed on each trace, with one worker per processor. The results are in the order of the arguments, by
// trace and then by policy. The error names the failed runs.
func RunAll(traces []*Trace, policies []*Heuristic, seeds []int64) ([]*Result, error) {
	results := make([]*Result, len(traces)*len(policies)*len(seeds))
	failures := make([]error, len(results))
	begun := make([]shared, len(traces)*len(seeds))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(results)) {
		workers.Go(func() {
			// The policies of a trace and a seed run one after the other, so that few openings are in memory at once.
			for n := next.Add(1) - 1; int(n) < len(results); n = next.Add(1) - 1 {
				of, p := int(n)/len(policies), int(n)%len(policies)
				t, s := of/len(seeds), of%len(seeds)
				i := (t*len(policies)+p)*len(seeds) + s
				o := begun[of].take(func() *opening { return traces[t].opening(seeds[s]) })
				results[i], failures[i] = o.runOne(policies[p])
				begun[of].done(len(policies))
			}
		})
	}
	workers.Wait()
	return results, errors.Join(failures...)
}

// shared is an opening that several runs use. The first run creates it, and the last one releases it.
type shared struct {
	once sync.Once
	of   *opening
	runs atomic.Int64 // number of completed runs
}

func (s *shared) take(made func() *opening) *opening {
	s.once.Do(func() { s.of = made() })
	return s.of
}

func (s *shared) done(of int) {
	if s.runs.Add(1) == int64(of) {
		s.of = nil
	}
}

func (o *opening) runOne(h *Heuristic) (*Result, error) {
	r, err := o.run(h.Policy)
	if err != nil {
		return nil, fmt.Errorf("policy %s, workload %s, seed %d: %w", h.Name, o.trace.Workload, o.seed, err)
	}
	r.Heuristic = h
	return r, nil
}
