package sim

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// Formats lists the formats of a report.
func Formats() []string { return []string{"table", "wide", "json", "yaml", "html"} }

// Report contains the decisions of a world's run, and the final state.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Plans contains the decisions of each cycle. In a run by the clock, it only contains plans with news. A run with a Recorder keeps none.
	Plans    []*model.Plan `json:"plans"`
	Summary  Summary       `json:"summary"`
	Timeline Timeline      `json:"timeline"`

	world    *World
	recorder Recorder          // nil: Plans and cycles keep everything
	failed   error             // the error of the recorder
	cycles   []cycle           // has the same indices as Plans
	erred    []model.RuleError // errors of rows in all cycles
	warned   []string          // what warned returns for the plans, each text once
	timed    bool              // the run follows the clock
	several  bool              // the run may have more than one cycle
	gauges   gauges            // used in a run by the clock

	// Of the recorded cycles: the last one, the policy of the first one, and the numbers of pods that all of them bound and evicted.
	latest         *model.Plan
	latestLines    []decision
	policy         string
	bound, evicted int
}

// cycle contains the lines of one cycle, which were built when the world had the state of the decision.
type cycle struct {
	number int // counts from 1
	after  time.Duration
	lines  []decision
}

// add adds a plan.
func (r *Report) add(plan *model.Plan) {
	if r.Timeline.Cycles == 0 {
		r.Timeline.From = plan.Now
	}
	r.Timeline.Cycles++
	if r.timed {
		r.gauges.read(r.world)
	}
	r.erred = model.SumErrors(r.erred, plan.Errors)
	plan = told(r.world.cluster, plan)
	c := cycle{number: r.Timeline.Cycles, after: plan.Now.Sub(r.Timeline.From), lines: decisionsOf(r.world.cluster, plan, false)}
	for _, refused := range r.world.refusedPods() {
		wait := &model.Wait{Job: refused.Job, Queue: refused.Queue, Reason: model.Reason{Reason: objects.FailedCreate, Text: refused.Cause}}
		c.lines = append(c.lines, decision{verb: "wait", what: refused.Job, queue: refused.Queue, why: refused.Cause, wait: wait})
	}
	if r.timed && r.latest != nil && !news(plan, c.lines, r.latestLines) {
		return // only the same waits for the same reasons
	}
	if r.latest == nil {
		r.policy = plan.Policy
	}
	r.latest, r.latestLines = plan, c.lines
	r.bound, r.evicted = r.bound+len(plan.Binds), r.evicted+len(plan.Evicts)
	if text := warned(plan); !slices.Contains(r.warned, text) {
		r.warned = append(r.warned, text)
	}
	if r.recorder != nil {
		r.failed = r.recorder.record(r, plan, &c)
		return
	}
	r.Plans = append(r.Plans, plan)
	r.cycles = append(r.cycles, c)
}

// finish completes the report after the last cycle.
func (r *Report) finish(last *model.Plan) {
	r.Summary = r.world.summarise(last, r.gauges.known)
	t := r.world.history.timeline(r.world.cluster)
	t.From, t.To, t.Cycles, t.Stopped = r.Timeline.From, r.world.now, r.Timeline.Cycles, r.Timeline.Stopped
	if r.timed {
		t.Use = r.gauges.over(t.From, t.To)
	}
	r.Timeline = t
}

// Write returns the report in one of Formats:
//
//   - table and wide are for users: one line per decision, with names without UIDs. wide adds scores, and does not join similar pods in one
//     line.
//   - json and yaml contain the plans, the timeline and the summary.
//   - html is a page for a browser, which loads no other files.
func (r *Report) Write(format string) ([]byte, error) {
	recorder, err := NewRecorder(format, nil)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = r.writeBy(recorder, &out)
	return out.Bytes(), err
}

// Text returns the report as table or wide. Programs that need no other format call it, so that the linker omits the templates of the
// others.
func (r *Report) Text(wide bool) string {
	var out strings.Builder
	_ = r.writeBy(&textRecorder{spool: &memory{}, wide: wide}, &out) // memory does not fail
	return out.String()
}

// writeBy writes a report that keeps all its cycles.
func (r *Report) writeBy(recorder Recorder, out io.Writer) error {
	for i := range r.cycles {
		if err := recorder.record(r, r.Plans[i], &r.cycles[i]); err != nil {
			return err
		}
	}
	return recorder.write(r, out)
}

// WriteRecorded writes the report of a run with a Recorder, in the format of the Recorder.
func (r *Report) WriteRecorded(out io.Writer) error { return r.recorder.write(r, out) }

// table returns decisions as a table.
func table(lines []decision, wide bool) string {
	if len(lines) == 0 {
		return "nothing to decide\n"
	}
	if !wide {
		lines = folded(lines)
	}
	rows := [][]string{{"DECISION", "POD OR JOB", "NODE", "QUEUE"}}
	if wide {
		rows[0] = append(rows[0], "ACTION", "NODES", "SCORE", "RUNNER-UP")
	}
	rows[0] = append(rows[0], "WHY")
	for _, d := range lines {
		row := []string{d.verb, d.what, dash(d.node), dash(d.queue)}
		if wide {
			row = append(row, scoring(d)...)
		}
		rows = append(rows, append(row, d.why))
	}
	return explain.Columns("", rows)
}

// scoring returns the additional cells of a wide line: action, number of candidate nodes, score, runner-up.
func scoring(d decision) []string {
	b := d.bind
	switch {
	case d.evict != nil:
		return []string{dash(d.evict.Action), "-", "-", "-"}
	case b == nil:
		return []string{"-", "-", "-", "-"}
	}
	runnerUp := "-"
	if b.RunnerUp != "" {
		runnerUp = b.RunnerUp + " " + model.Score(b.RunnerUpScore)
	}
	return []string{dash(b.Action), strconv.Itoa(b.Feasible), model.Score(b.Score), runnerUp}
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Erred returns which rows failed in the run, how often, and for which object first; one line each.
func (r *Report) Erred() string { return erred(r.erred) }

// complaints returns the failed rows and the warnings of all cycles.
func (r *Report) complaints() string {
	all := erred(r.erred)
	for _, text := range r.warned {
		if !strings.Contains(all, text) {
			all += text
		}
	}
	return all
}

// complaints returns the failed rows and the warnings of one cycle, one line each.
func complaints(p *model.Plan) string { return erred(p.Errors) + warned(p) }

func erred(rows []model.RuleError) string {
	var out strings.Builder
	for i := range rows {
		e := &rows[i]
		fmt.Fprintf(&out, "error    %s (%s) erred %s, first for %s: %s\n", model.RowName(e.Table, e.Rule), e.Site, times(e.Count),
			source.Line(e.Object), source.Line(e.Text))
	}
	return out.String()
}

func warned(p *model.Plan) string {
	var out strings.Builder
	for _, text := range p.Warnings {
		fmt.Fprintf(&out, "warning  %s\n", source.Line(text))
	}
	return out.String()
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// compact returns a plan as scenarios print it: one line per decision, without a heading.
func compact(lines []decision) string {
	var rows [][]string
	for _, d := range lines {
		rows = append(rows, []string{d.verb, d.what, dash(d.node), d.why})
	}
	return explain.Columns("", rows)
}
