package beside

import (
	"fmt"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/engine/compare"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Report is the result of the comparison so far.
type Report struct {
	Of     string    `json:"of"`     // spec.schedulerName of the other scheduler
	Policy string    `json:"policy"` // the name of the policy
	Cycles int       `json:"cycles"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	// Decisions is the number of compared decisions. Agreement is the fraction of them that is alike.
	Decisions int     `json:"decisions"`
	Agreement float64 `json:"agreement"`
	// Missed is the number of pods that could not be compared, because they were bound when they were first seen.
	Missed int `json:"missed,omitempty"`
	// Unasked is true if rows of the policy need answers of extenders. A shadow does not ask extenders.
	Unasked bool     `json:"unasked,omitempty"`
	Queues  []Counts `json:"queues"`
	// Jobs are affected by the policy. The other scheduler is the old side of the comparison.
	Jobs []compare.Difference `json:"jobs"`
	// JobsLeftOut is the number of further affected jobs, which are gone.
	JobsLeftOut int `json:"jobsLeftOut,omitempty"`
	// Differences contains the first differences, in the order in which they were found. LeftOut is the number of further ones.
	Differences []Difference `json:"differences"`
	LeftOut     int          `json:"leftOut,omitempty"`

	titles explain.Titles
}

// Report returns the current report.
func (x *Shadow) Report() *Report {
	for _, w := range x.wishes {
		if w.told != nil {
			w.told.At, w.told.Other.Text = x.last, x.witness.silence(w.about, w.job)
		}
	}
	sum := x.ledger.sum()
	out := &Report{
		Of: x.o.Of, Policy: x.o.Policy.Name, Cycles: x.cycle, First: x.first, Last: x.last, Decisions: sum.All(), Agreement: sum.Agreement(),
		Missed: x.witness.missed, Unasked: x.unasked, Queues: x.ledger.rows(), Jobs: x.ledger.otherwise(),
		JobsLeftOut: x.ledger.closed.more, Differences: []Difference{}, titles: x.ledger.titles,
	}
	for _, d := range x.ledger.kept {
		out.Differences = append(out.Differences, *d)
	}
	out.LeftOut = sum.All() - sum.Alike - len(out.Differences)
	return out
}

// Line returns the current result in one line.
func (x *Shadow) Line() string {
	sum := x.ledger.sum()
	return fmt.Sprintf("%s: %s", explain.Count(x.cycle, "cycle"), share(&sum))
}

func share(c *Counts) string {
	text := fmt.Sprintf("%d of %s alike", c.Alike, explain.Count(c.All(), "decision"))
	if c.All() > 0 {
		text += ", " + percent(c)
	}
	return text
}

func percent(c *Counts) string { return fmt.Sprintf("%.1f %%", 100*c.Agreement()) }

// mostTold is the maximum number of differences in Text.
const mostTold = 30

// Text returns the report as text.
func (r *Report) Text() string {
	var sum Counts
	rows := [][]string{{"QUEUE", "DECISION", "ALIKE", "ELSEWHERE", "ALONE", "LATER", "NOT YET", "AGREES"}}
	for i := range r.Queues {
		c := &r.Queues[i]
		row := []string{c.Queue, c.Verb}
		for _, kind := range []string{Alike, Elsewhere, Alone, Later, NotYet} {
			row = append(row, fmt.Sprint(*c.of(kind)))
			*sum.of(kind) += *c.of(kind)
		}
		rows = append(rows, append(row, percent(c)))
	}
	text := fmt.Sprintf("%s alongside %s by policy %s, %s to %s: %s\n", explain.Count(r.Cycles, "cycle"), r.Of, r.Policy,
		r.First.UTC().Format(time.RFC3339), r.Last.UTC().Format(time.RFC3339), share(&sum))
	if r.Missed > 0 {
		text += explain.Count(r.Missed, "pod") + " could not be compared: bound when seen first\n"
	}
	if r.Unasked {
		text += "rows of the policy ask servers, which was not done: they had no answer\n"
	}
	if len(r.Queues) > 0 {
		text += explain.Columns("  ", rows)
	}
	if sum.All() == sum.Alike {
		return text
	}
	text += compare.Told(r.Jobs, "Celsius", r.titles.Of)
	if r.JobsLeftOut > 0 {
		text += explain.Count(r.JobsLeftOut, "further job") + " affected, and gone since\n"
	}
	return text + r.differences()
}

// differences lists each difference with the decisions of both schedulers.
func (r *Report) differences() string {
	type line struct{ object, queue, theirs, ours string }
	var lines []line
	for i := range r.Differences {
		d := &r.Differences[i]
		lines = append(lines, line{d.Object, d.Queue, d.theirs(), d.ours()})
	}
	name := func(l *line) string { return l.object }
	same := func(a, b *line) bool { return a.queue == b.queue && a.theirs == b.theirs && a.ours == b.ours }
	all := explain.Fold(lines, name, same, func(*line) bool { return false })
	rows := [][]string{{"OBJECT", "QUEUE", strings.ToUpper(r.Of), "CELSIUS"}}
	told := 0
	for _, l := range all[:min(len(all), mostTold)] {
		rows = append(rows, []string{explain.Range(l[0].object, l[len(l)-1].object), l[0].queue, l[0].theirs, l[0].ours})
		told += len(l)
	}
	if more := len(lines) - told + r.LeftOut; more > 0 {
		rows = append(rows, []string{fmt.Sprintf("and %d more", more)})
	}
	return "decisions that differ\n" + explain.Columns("  ", rows)
}

// done returns the past tense of a verb.
func done(verb string) string {
	switch verb {
	case Admit:
		return "admitted"
	case Bind:
		return "bound to"
	}
	return "evicted from"
}

// String returns the difference in one line.
func (d *Difference) String() string {
	return fmt.Sprintf("%s: %s; Celsius: %s", d.Object, d.theirs(), d.ours())
}

// theirs returns the decision of the other scheduler.
func (d *Difference) theirs() string {
	text := done(d.Verb)
	if d.Kind == NotYet {
		switch d.Verb {
		case Admit:
			text = "not admitted"
		case Bind:
			text = "waits"
		default:
			text = "stays"
		}
	} else if d.Other.Node != "" {
		text += " " + d.Other.Node
	}
	if d.Other.Text != "" {
		text += ": " + d.Other.Text
	}
	return text
}

// ours returns the decision of the policy.
func (d *Difference) ours() string {
	if d.Kind == Alone {
		return d.Celsius.Text
	}
	text := done(d.Verb)
	if d.Celsius.Node != "" {
		text += " " + d.Celsius.Node
	}
	if !d.Since.IsZero() {
		text += ", " + d.At.Sub(d.Since).Round(time.Millisecond).String()
		if d.Kind == NotYet {
			text += " ago"
		} else {
			text += " sooner"
		}
	}
	switch {
	case d.Refused != nil:
		return text + "; " + d.Other.Node + " is refused: " + d.Refused.String()
	case d.Celsius.Scores != nil || d.Other.Scores != nil:
		return text + ", which scores " + scored(&d.Celsius) + "; " + d.Other.Node + " scores " + scored(&d.Other)
	case d.Celsius.Text != "":
		return text + ": " + d.Celsius.Text
	}
	return text
}

// scored returns the score of a node, in total and by row.
func scored(s *Side) string {
	b := &model.Bind{Scores: s.Scores}
	for _, x := range s.Scores {
		b.Score += x.Score
	}
	return model.Score(b.Score) + b.Why()
}
