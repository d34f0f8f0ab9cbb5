package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// Formats lists the formats of a report.
func Formats() []string { return []string{"table", "wide", "json", "yaml", "html"} }

// Report is what a run of a world decided, and how the world stands after it.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Plans are what the cycles decided, one a cycle; of a run by the clock only those that say something new.
	Plans    []*model.Plan `json:"plans"`
	Summary  Summary       `json:"summary"`
	Timeline Timeline      `json:"timeline"`

	world  *World
	cycles []cycle           // as Plans
	erred  []model.RuleError // in all cycles
	timed  bool              // the run was by the clock
	gauges gauges            // of a run by the clock
}

// cycle is what is kept of one, while its world was as it decided on it.
type cycle struct {
	number int // from 1
	after  time.Duration
	lines  []decision
}

// add takes a plan in.
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
	if last := len(r.cycles) - 1; r.timed && last >= 0 && !news(plan, c.lines, r.cycles[last].lines) {
		return // who waits did so before, for the same reason
	}
	r.Plans = append(r.Plans, plan)
	r.cycles = append(r.cycles, c)
}

// finish closes a run.
func (r *Report) finish(last *model.Plan) {
	r.Summary = r.world.summarise(last, r.gauges.known)
	t := r.world.history.timeline(r.world.cluster)
	t.From, t.To, t.Cycles, t.Stopped = r.Timeline.From, r.world.now, r.Timeline.Cycles, r.Timeline.Stopped
	if r.timed {
		t.Use = r.gauges.over(t.From, t.To)
	}
	r.Timeline = t
}

// Write gives the report in one of Formats.
//
// table and wide are for people, a line a decision, with names that hold no uids;
// wide adds scores and does not fold pods that fared alike into one line. json and
// yaml are the plans as they are, the timeline and the summary. html is a page for a
// browser, which loads nothing.
func (r *Report) Write(format string) ([]byte, error) {
	switch format {
	case "table", "wide":
		return []byte(r.Text(format == "wide")), nil
	case "json":
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(r); err != nil {
			return nil, fmt.Errorf("write the report as JSON: %w", err)
		}
		return out.Bytes(), nil
	case "yaml":
		out, err := yaml.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("write the report as YAML: %w", err)
		}
		return out, nil
	case "html":
		return r.html()
	}
	return nil, fmt.Errorf("%q is no format; there are %s", format, strings.Join(Formats(), ", "))
}

// Text gives the report as table or wide. Who has no use for the other formats calls this: it leaves their templates out of a program.
func (r *Report) Text(wide bool) string {
	var out strings.Builder
	for _, c := range r.cycles {
		switch {
		case r.timed && len(c.lines) == 0:
			continue
		case r.timed:
			fmt.Fprintf(&out, "cycle %d, after %s\n", c.number, lasted(c.after))
		case r.Timeline.Cycles > 1:
			fmt.Fprintf(&out, "cycle %d\n", c.number)
		}
		out.WriteString(table(c.lines, wide) + "\n")
	}
	if r.timed {
		out.WriteString(r.Timeline.text() + "\n")
	}
	out.WriteString(r.Summary.text(r.Timeline.Use))
	if text := r.complaints(); text != "" {
		out.WriteString("\n" + text)
	}
	return out.String()
}

// table lays decisions out for people.
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

// scoring is the wide cells of a line: action, nodes chosen from, score, runner-up.
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

// Erred says which rows erred in the run, how often, and for what first; a line each.
func (r *Report) Erred() string { return erred(r.erred) }

// complaints are the rows that erred and the warnings, those of all cycles.
func (r *Report) complaints() string {
	all := erred(r.erred)
	for _, p := range r.Plans {
		if text := warned(p); !strings.Contains(all, text) {
			all += text
		}
	}
	return all
}

// complaints of one cycle, a line each.
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

// compact is a plan as scenarios print it: a line a decision, no heading.
func compact(lines []decision) string {
	var rows [][]string
	for _, d := range lines {
		rows = append(rows, []string{d.verb, d.what, dash(d.node), d.why})
	}
	return explain.Columns("", rows)
}
