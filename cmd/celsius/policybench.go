package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/facts"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/sim"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

const policyBenchHelp = `Bench says what each row of a SchedulingPolicy costs, on a world that it makes
up (--nodes, --jobs, each of five pods) or on the files of -f: worlds,
manifests or what celsius snapshot wrote.

The cold cycle is the first one, with all that waits and nothing remembered;
the steady one comes a second later with one pod more, the median of some. Both
are measured with the policy as it is, on one core. The rows are measured in
the same cycles: how often each was evaluated, how long one evaluation took
(without variables and attributes that it had evaluated, which are rows of
their own here), and what share of the cycle that is. What is left of the cycle
is the scheduler's own. Where a row is computed for many nodes at once, each
node counts.

Exit codes:
  0  measured
  1  a file has mistakes
  2  the command line is wrong`

// policyBench contains the flags of policy bench.
type policyBench struct {
	nodes, jobs int
	files       []string
	output      string
	// now returns the time of a clock in nanoseconds.
	now func() int64
}

func newPolicyBenchCommand() *cobra.Command {
	start := time.Now()
	b := policyBench{now: func() int64 { return int64(time.Since(start)) }}
	c := &cobra.Command{
		Use:   "bench FILE",
		Short: "Say what each row of a policy costs in a cycle",
		Long:  policyBenchHelp,
		Example: `  celsius policy bench --nodes 5000 --jobs 1000 policy.yaml
  celsius snapshot --to cluster.yaml
  celsius policy bench -f cluster.yaml policy.yaml`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("name one file with a policy, or default; see %s --help", c.CommandPath())
			}
			return nil
		},
		RunE: b.run,
	}
	f := c.Flags()
	f.IntVar(&b.nodes, "nodes", 1000, "how many nodes the world has that is made up")
	f.IntVar(&b.jobs, "jobs", 200, "how many jobs it has, of five pods each")
	f.StringSliceVarP(&b.files, "filename", "f", nil, "measure on these files instead; may be repeated")
	f.StringVarP(&b.output, "output", "o", "table", "table or json")
	return c
}

func (b *policyBench) run(c *cobra.Command, args []string) error {
	made := c.Flags().Changed("nodes") || c.Flags().Changed("jobs")
	switch {
	case b.output != "table" && b.output != "json":
		return usageError("--output must be table or json")
	case b.nodes < 1 || b.nodes > 100_000 || b.jobs < 1 || b.jobs > 100_000:
		return usageError("--nodes and --jobs must be from 1 to 100000")
	case made && len(b.files) > 0:
		return usageError("--nodes and --jobs are for a world that is made up, without -f")
	}
	doc, err := onePolicy(args[0], c.InOrStdin())
	if err != nil {
		return err
	}
	sources := []manifest.Source{{Name: "world", Data: []byte(madeWorld(b.nodes, b.jobs))}}
	if len(b.files) > 0 {
		if sources, err = manifest.Read(c.InOrStdin(), b.files...); err != nil {
			return usageError("%w", err)
		}
	}
	m, err := b.measure(doc, sources)
	if err != nil {
		return err
	}
	return m.write(c.OutOrStdout(), b.output)
}

// madeWorld returns a cluster in the short format. It has nodes in zones, every fourth with GPUs. Jobs of several shapes are in queues of
// several weights.
func madeWorld(nodes, jobs int) string {
	var out strings.Builder
	out.WriteString("apiVersion: sim.celsius.dev/v1alpha1\nkind: World\npriorityClasses: {low: 1, high: 100}\n")
	out.WriteString("queues: [{name: q1, weight: 1}, {name: q2, weight: 2}, {name: q3, weight: 3}]\nnodes:\n")
	for i := range nodes {
		gpus := 0
		if i%4 == 3 {
			gpus = 8
		}
		fmt.Fprintf(&out, "- {name: node-%05d, cpu: 32, memory: 128Gi, gpus: %d, labels: {zone: z%d}}\n", i, gpus, i%3)
	}
	out.WriteString("jobs:\n")
	for i := range jobs {
		fmt.Fprintf(&out, "- {name: job-%05d, queue: q%d, priority: %s, autoMinResources: true, created: %ds, replicas: 5, cpu: %d, "+
			"memory: %dGi, gpus: %d}\n", i, i%3+1, []string{"low", "high"}[i%2], jobs-i, 1+i%4, 1+i%8, map[bool]int{true: 1}[i%8 == 7])
	}
	return out.String()
}

// measurement is the result in the form in which it is written.
type measurement struct {
	Policy string `json:"policy"`
	Nodes  int    `json:"nodes"`
	Pods   int    `json:"pods"`
	// ColdNanos and SteadyNanos are the durations of a cycle.
	ColdNanos   int64       `json:"coldNanoseconds"`
	SteadyNanos int64       `json:"steadyNanoseconds"`
	Rows        []rowTiming `json:"rows"`
}

// rowTiming is the time of one row.
type rowTiming struct {
	Site   string     `json:"site"`
	Table  string     `json:"table"`
	Name   string     `json:"name"`
	Cold   cycleShare `json:"cold"`
	Steady cycleShare `json:"steady"`
}

// cycleShare is the share of a row in the time of a cycle.
type cycleShare struct {
	Evaluations int     `json:"evaluations"`
	Nanos       float64 `json:"nanosecondsEach"`
	Percent     float64 `json:"percent"`
}

const (
	benchColds   = 3  // number of worlds that are started; the fastest counts
	benchSteadys = 11 // number of cycles after the first
)

// measure runs worlds first with the unchanged policy, and then with a policy whose expressions are timed.
func (b *policyBench) measure(doc *source.Document, sources []manifest.Source) (*measurement, error) {
	plain, issues := policy.Load(doc)
	if issues.Err() != nil {
		return nil, exitError{exitMistakes, issues.Errors()}
	}
	m := &measurement{Policy: plain.Name, Rows: []rowTiming{}}
	var steady []int64
	for range benchColds {
		w, err := b.world(plain, sources)
		if err != nil {
			return nil, err
		}
		cold, next, err := w.cycles(benchSteadys, func() {})
		if err != nil {
			return nil, err
		}
		m.Nodes, m.Pods = len(w.Cluster().Nodes.Index), len(w.Cluster().Tasks)-benchSteadys
		if m.ColdNanos == 0 || cold < m.ColdNanos {
			m.ColdNanos = cold
		}
		steady = append(steady, next...)
	}
	slices.Sort(steady)
	m.SteadyNanos = steady[len(steady)/2]
	return m, b.rows(m, doc, sources)
}

// rows measures the rows in the same cycles.
func (b *policyBench) rows(m *measurement, doc *source.Document, sources []manifest.Source) error {
	p, issues := policy.Load(doc)
	if issues.Err() != nil {
		return exitError{exitMistakes, issues.Errors()}
	}
	stopwatch := eval.NewStopwatch(b.now)
	var timed [][]*eval.Timed
	for _, part := range facts.Parts(p) {
		var list []*eval.Timed
		for _, e := range part.Expressions {
			list = append(list, stopwatch.Time(e))
		}
		timed = append(timed, list)
		m.Rows = append(m.Rows, rowTiming{Site: part.Site, Table: part.Table, Name: part.Name})
	}
	w, err := b.world(p, sources)
	if err != nil {
		return err
	}
	_, _, err = w.cycles(benchSteadys, func() {
		for i, list := range timed {
			m.Rows[i].Cold = shareOf(list, 1, m.ColdNanos)
			for _, t := range list {
				t.Reset()
			}
		}
	})
	for i, list := range timed {
		m.Rows[i].Steady = shareOf(list, benchSteadys, m.SteadyNanos)
	}
	slices.SortStableFunc(m.Rows, func(a, b rowTiming) int {
		return cmp.Or(cmp.Compare(b.Cold.Percent, a.Cold.Percent), cmp.Compare(b.Steady.Percent, a.Steady.Percent))
	})
	return err
}

// shareOf returns the average share of a row's expressions in the given cycles.
func shareOf(list []*eval.Timed, cycles int, whole int64) cycleShare {
	nanos, evaluations := 0.0, 0
	for _, t := range list {
		nanos += t.Nanoseconds()
		evaluations = max(evaluations, t.Evaluations) // expressions behind a guard are evaluated less often
	}
	s := cycleShare{Evaluations: evaluations / cycles, Percent: 100 * nanos / float64(cycles) / float64(max(whole, 1))}
	if evaluations > 0 {
		s.Nanos = nanos / float64(evaluations)
	}
	return s
}

// benchWorld is a world in which each cycle is measured.
type benchWorld struct {
	*sim.World
	took int64 // duration of the last decision
}

func (b *policyBench) world(p *policy.Policy, sources []manifest.Source) (*benchWorld, error) {
	w := &benchWorld{}
	var d *engine.Decider
	w.World = sim.NewWorld(sim.Options{Volumes: volume.New, Decide: func(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
		if d == nil {
			s := session.New(c, p)
			s.Spread(session.Split{Cores: 1})
			d = engine.NewDecider(s, nil)
		}
		start := b.now()
		plan := d.Cycle(now)
		w.took += b.now() - start
		return plan
	}})
	if _, issues := w.Load(sources...); issues.Err() != nil {
		return nil, exitError{exitMistakes, issues.Errors()}
	}
	w.Policy = p
	return w, nil
}

// cycles runs the first cycle, and then more cycles with one additional pod each. It returns their durations.
func (w *benchWorld) cycles(more int, begun func()) (cold int64, steady []int64, err error) {
	if _, err := w.Cycle(); err != nil {
		return 0, nil, err
	}
	cold = w.took
	begun()
	for i := range more {
		if err := w.Advance(time.Second); err != nil {
			return 0, nil, err
		}
		pod := fmt.Sprintf("apiVersion: sim.celsius.dev/v1alpha1\nkind: World\njobs: [{name: celsius-bench-%d, cpu: 100m, memory: 128Mi}]\n", i)
		if _, issues := w.Load(manifest.Source{Name: "pod", Data: []byte(pod)}); issues.Err() != nil {
			return 0, nil, issues.Err()
		}
		w.took = 0
		if _, err := w.Cycle(); err != nil {
			return 0, nil, err
		}
		steady = append(steady, w.took)
	}
	return cold, steady, nil
}

// write writes the result.
func (m *measurement) write(out io.Writer, format string) error {
	if format == "json" {
		data, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			return fmt.Errorf("write what was measured: %w", err)
		}
		say(out, "%s\n", data)
		return nil
	}
	say(out, "policy %s on %s with %s\na cold cycle takes %s, a steady one %s\n\n", m.Policy, explain.Count(m.Nodes, "node"),
		explain.Count(m.Pods, "pod"), briefly(m.ColdNanos), briefly(m.SteadyNanos))
	rows := [][]string{{"ROW", "COLD", "NS", "SHARE", "STEADY", "NS", "SHARE"}}
	cells := func(s cycleShare) []string {
		if s.Evaluations == 0 {
			return []string{fmt.Sprint(s.Evaluations), "-", "-"}
		}
		return []string{fmt.Sprint(s.Evaluations), fmt.Sprintf("%.0f", s.Nanos), fmt.Sprintf("%.1f%%", s.Percent)}
	}
	unasked := 0
	for _, r := range m.Rows {
		if r.Cold.Evaluations+r.Steady.Evaluations == 0 {
			unasked++
			continue
		}
		rows = append(rows, slices.Concat([]string{clipped(r.Site+" "+r.Table+"/"+r.Name, 36)}, cells(r.Cold), cells(r.Steady)))
	}
	say(out, "%s", explain.Columns("", rows))
	if unasked > 0 {
		say(out, "\n%s not evaluated: what asks them did not come up in this world\n", map[bool]string{
			true: "1 row was", false: fmt.Sprintf("%d rows were", unasked),
		}[unasked == 1])
	}
	return nil
}

// briefly formats a time with three digits.
func briefly(nanos int64) string {
	d := time.Duration(nanos)
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}
