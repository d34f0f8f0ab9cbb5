package conformance

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// columnWidth is the width of each side of an explanation, in characters.
const columnWidth = 88

// Explain writes one case for a reader who looks for the first difference. The left side shows the decisions here, and the right side shows
// what Volcano did, with its trace. The differences follow.
func (r *Runner) Explain(w io.Writer, cases []*Case, id string) (*Result, error) {
	c := find(cases, id)
	if c == nil {
		return nil, fmt.Errorf("no case is named %s", id)
	}
	result := r.replay(c)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nmode %s, plugins %s, actions %s\n", c.ID, c.Mode, strings.Join(c.plugins(), " "), strings.Join(c.Config.Actions, " "))
	for _, note := range c.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	if result.Skip != "" {
		fmt.Fprintf(&b, "skipped: %s\n", result.Skip)
	}
	if result.Assumed != "" {
		fmt.Fprintf(&b, "assumed: %s\n", result.Assumed)
	}
	b.WriteString("\n")
	var left []string
	switch {
	case result.Skip != "":
	case c.Mode == "actions":
		left = r.planLines(c)
	case c.Scored != nil:
		left = r.scoreLines(c)
	}
	sideBySide(&b, left, c.observedLines())
	b.WriteString("\n")
	for _, d := range result.Differences {
		fmt.Fprintf(&b, "differs: %s\n", d)
	}
	if result.Skip == "" && len(result.Differences) == 0 {
		b.WriteString("the same\n")
	}
	_, err := io.WriteString(w, b.String())
	return result, err
}

// planLines returns the decisions here.
func (r *Runner) planLines(c *Case) []string {
	s, err := r.open(c)
	if err != nil {
		return []string{err.Error()}
	}
	plan := s.decide()
	out := append([]string{"CELSIUS"}, decisionLines(plan)...)
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	o := c.outcome(s.state, plan)
	for _, job := range slices.Sorted(maps.Keys(o.Phases)) {
		add("phase %s %s", job, o.Phases[job])
	}
	for _, e := range plan.Errors {
		add("error %s/%s %d times, first for %s: %s", e.Table, e.Rule, e.Count, e.Object, e.Text)
	}
	return out
}

// decisionLines returns a line for each decision of a plan, with its details.
func decisionLines(plan *model.Plan) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, a := range plan.Admits {
		add("admit %s: %s", a.Job, a.Reason.Text)
	}
	for _, x := range plan.Binds {
		add("bind %s -> %s (%s, %d feasible, score %g)", x.Task, x.Node, x.Action, x.Feasible, x.Score)
		for _, s := range x.Scores {
			add("    %s/%s %g", s.Table, s.Rule, s.Score)
		}
		if x.RunnerUp != "" {
			add("    runner-up %s %g", x.RunnerUp, x.RunnerUpScore)
		}
	}
	for _, x := range plan.Holds {
		add("hold %s -> %s (%s)", x.Task, x.Node, x.Action)
	}
	for _, x := range plan.Pipelines {
		add("pipeline %s -> %s (%s)", x.Task, x.Node, x.Action)
	}
	for _, x := range plan.Evicts {
		add("evict %s (%s)", x.Task, x.Action)
	}
	for _, x := range plan.Waits {
		add("wait %s %s: %s/%s %s", x.Job, x.Task, x.Reason.Table, x.Reason.Rule, x.Reason.Text)
		for _, n := range x.Nodes {
			add("    %d nodes: %s/%s %s", n.Count, n.Table, n.Rule, n.Text)
		}
	}
	return out
}

// scoreLines returns the score of each row for each node.
func (r *Runner) scoreLines(c *Case) []string {
	s, err := r.open(c)
	if err != nil {
		return []string{err.Error()}
	}
	out := []string{"CELSIUS"}
	scores, names, err := s.scoresOf(c.Scored)
	if err != nil {
		return append(out, err.Error())
	}
	for i, rows := range scores {
		out = append(out, fmt.Sprintf("score %s on %s: %g", c.Scored.Task, names[i], sumOf(rows)))
		for _, row := range rows {
			out = append(out, fmt.Sprintf("    %s/%s %g", row.Table, row.Rule, row.Score))
		}
	}
	return out
}

// observedLines returns what Volcano did.
func (c *Case) observedLines() []string {
	o := c.Observed
	out := []string{"VOLCANO"}
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, pod := range slices.Sorted(maps.Keys(o.Binds)) {
		add("bind %s -> %s", pod, o.Binds[pod])
	}
	for _, pod := range slices.Sorted(maps.Keys(o.Pipelined)) {
		add("pipeline %s -> %s", pod, o.Pipelined[pod])
	}
	for _, pod := range o.Evicts {
		add("evict %s", pod)
	}
	for _, job := range slices.Sorted(maps.Keys(o.PodGroupPhases)) {
		add("phase %s %s", job, o.PodGroupPhases[job])
	}
	if c.Scored != nil {
		for _, node := range slices.Sorted(maps.Keys(c.Scored.NodeScores)) {
			add("score %s on %s: %g", c.Scored.Task, node, c.Scored.NodeScores[node])
		}
	}
	if c.Loose() {
		add("(nodes vary, or best scores tie)")
	}
	for _, call := range o.TestCalls {
		add("call %s: %s", call, call.answer())
	}
	for _, d := range o.Trace {
		add("%s", d.Text)
	}
	return out
}

// sideBySide writes two columns. A line that is too long continues below, indented.
func sideBySide(b *strings.Builder, left, right []string) {
	left, right = wrap(left), wrap(right)
	for i := range max(len(left), len(right)) {
		l, r := "", ""
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = right[i]
		}
		pad := strings.Repeat(" ", max(0, columnWidth-len([]rune(l))))
		b.WriteString(strings.TrimRight(l+pad+" | "+r, " ") + "\n")
	}
}

func wrap(lines []string) []string {
	const indent = "        "
	var out []string
	for _, line := range lines {
		text := []rune(line)
		for first := true; first || len(text) > 0; first = false {
			room, before := columnWidth, ""
			if !first {
				room, before = columnWidth-len(indent), indent
			}
			n := min(room, len(text))
			out = append(out, before+string(text[:n]))
			text = text[n:]
		}
	}
	return out
}
