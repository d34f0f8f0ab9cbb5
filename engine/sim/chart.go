package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// chart is a Gantt chart: lanes of bars over the time of a run.
type chart struct {
	Ticks  []chartTick
	Tick   float64   // the distance of two ticks, in percent of the width
	Cycles []float64 // where cycles told something
	ByNode []lane
	ByJob  []lane
}

type chartTick struct {
	Left         float64
	Label, Class string
}

// lane is a node's or a job's part of the chart.
type lane struct {
	Name   string
	Height int // pixels
	Thin   bool
	Bars   []ganttBar
}

// ganttBar is a pod's time on a node, or, Queued, its time before that. Left and Width
// are percent of the chart's width, Top and Height pixels.
type ganttBar struct {
	Left, Width                                      float64
	Top, Height                                      int
	Pod, Label, Queue, Class, Outcome, Title, Search string
	Open, Queued                                     bool
}

// lanesView is what the template of lanes sees.
type lanesView struct {
	*chart
	Name  string
	Lanes []lane
}

func viewOf(c *chart, name string, lanes []lane) lanesView { return lanesView{c, name, lanes} }

// axis is the time that the chart's width stands for.
type axis struct{ from, to time.Time }

// percent is where a time stands, to a ten-thousandth.
func (a axis) percent(t time.Time) float64 {
	share := float64(t.Sub(a.from)) / float64(a.to.Sub(a.from))
	return math.Round(1e6*min(max(share, 0), 1)) / 1e4
}

// chart draws the timeline; nil where no time passed.
func (r *Report) chart(classes map[string]string) *chart {
	a := axis{r.Timeline.From, r.Timeline.To}
	if !a.to.After(a.from) {
		return nil
	}
	c := &chart{}
	c.Ticks, c.Tick = a.ticks()
	for i, cycle := range r.cycles {
		if len(cycle.lines) > 0 {
			c.Cycles = append(c.Cycles, a.percent(r.Plans[i].Now))
		}
	}
	nodes, jobs := map[string][]PodRun{}, map[string][]PodRun{}
	var jobOrder []string
	for _, run := range r.Timeline.Pods {
		if run.Bound != nil && (run.Ended == nil || run.Ended.After(a.from)) {
			nodes[run.Node] = append(nodes[run.Node], run)
		}
		if run.Job != "" && (run.Ended == nil || run.Ended.After(a.from)) {
			if jobs[run.Job] == nil {
				jobOrder = append(jobOrder, run.Job)
			}
			jobs[run.Job] = append(jobs[run.Job], run)
		}
	}
	for _, name := range r.nodeNames(nodes) {
		c.ByNode = append(c.ByNode, a.lane(name, nodes[name], classes, false))
	}
	for _, name := range jobOrder {
		c.ByJob = append(c.ByJob, a.lane(strings.TrimPrefix(name, "default/"), jobs[name], classes, true))
	}
	return c
}

// nodeNames lists the nodes that there are, and those that pods ran on, in order.
func (r *Report) nodeNames(used map[string][]PodRun) []string {
	names := map[string]bool{}
	for i := range r.Summary.Nodes {
		names[r.Summary.Nodes[i].Node] = true
	}
	for name := range used { // it may be gone since
		names[name] = true
	}
	order := sortedKeys(names)
	slices.SortStableFunc(order, naturalNode)
	return order
}

// naturalNode orders nodes as people count: n2 before n10.
func naturalNode(a, b string) int {
	stem := func(s string) string { return strings.TrimRight(s, "0123456789") }
	if stem(a) == stem(b) && len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// ticks are between four and ten round times.
func (a axis) ticks() ([]chartTick, float64) {
	span := a.to.Sub(a.from)
	var steps []time.Duration
	for _, unit := range []time.Duration{time.Millisecond, time.Second, time.Minute} {
		for _, n := range []time.Duration{1, 2, 5, 10, 15, 30} {
			steps = append(steps, n*unit)
			if unit == time.Millisecond {
				steps = append(steps, 10*n*unit)
			}
		}
	}
	steps = append(steps, 100*time.Millisecond, 200*time.Millisecond, 500*time.Millisecond)
	for _, hours := range []time.Duration{1, 2, 3, 6, 12, 24, 48, 7 * 24} {
		steps = append(steps, hours*time.Hour)
	}
	slices.Sort(steps)
	const most = 6
	step := steps[len(steps)-1]
	for span/step > most {
		step *= 2
	}
	for _, s := range steps {
		if span/s <= most {
			step = s
			break
		}
	}
	var out []chartTick
	for at := time.Duration(0); at <= span; at += step {
		t := chartTick{Left: a.percent(a.from.Add(at)), Label: lasted(at)}
		if t.Left > 98 {
			t.Class = "last"
		}
		out = append(out, t)
	}
	return out, 100 * float64(step) / float64(span)
}

// The heights of bars, in pixels: those of a lane with many rows are thin.
const (
	barHeight  = 20
	thinHeight = 7
	thickRows  = 8
)

// lane stacks the pods of a node, or of a job, so that none covers another. Those of a
// job begin with the time for which the pod waited.
func (a axis) lane(name string, runs []PodRun, classes map[string]string, queued bool) lane {
	runs = slices.Clone(runs)
	begins := func(run *PodRun) time.Time {
		if run.Bound != nil && !queued {
			return *run.Bound
		}
		return run.Submitted
	}
	slices.SortStableFunc(runs, func(x, y PodRun) int { return begins(&x).Compare(begins(&y)) })
	var free []time.Time // by row, from when on
	var rows []int
	for i := range runs {
		row := slices.IndexFunc(free, func(t time.Time) bool { return !t.After(begins(&runs[i])) })
		if row < 0 {
			row = len(free)
			free = append(free, time.Time{})
		}
		free[row] = a.to.Add(1)
		if runs[i].Ended != nil {
			free[row] = *runs[i].Ended
		}
		rows = append(rows, row)
	}
	l := lane{Name: name, Thin: len(free) > thickRows}
	height := barHeight
	if l.Thin {
		height = thinHeight
	}
	const gap, margin = 2, 5
	for i := range runs {
		l.Bars = append(l.Bars, a.bars(&runs[i], classes, queued, margin+rows[i]*(height+gap), height)...)
	}
	l.Height = 2*margin + max(len(free), 1)*(height+gap) - gap
	return l
}

// bars of one pod.
func (a axis) bars(run *PodRun, classes map[string]string, queued bool, top, height int) []ganttBar {
	_, label, _ := strings.Cut(run.Pod, "/")
	b := ganttBar{
		Top: top, Height: height, Pod: run.Pod, Label: label, Queue: run.Queue, Class: classOf(classes, run.Queue), Outcome: run.Outcome,
		Title:  a.title(run),
		Search: strings.Join([]string{run.Pod, run.Job, run.Queue, run.Node, run.Outcome}, " "),
	}
	var out []ganttBar
	if queued {
		w := b
		w.Queued, w.Left = true, a.percent(run.Submitted)
		end := a.to
		switch {
		case run.Bound != nil:
			end = *run.Bound
		case run.Ended != nil:
			end = *run.Ended
		}
		if w.Width = round4(a.percent(end) - w.Left); w.Width > 0 {
			out = append(out, w)
		}
	}
	if run.Bound == nil {
		return out
	}
	end := a.to
	if run.Ended != nil {
		end = *run.Ended
	}
	b.Open = run.Ended == nil
	b.Left = a.percent(*run.Bound)
	b.Width = round4(a.percent(end) - b.Left)
	return append(out, b)
}

func round4(x float64) float64 { return math.Round(1e4*x) / 1e4 }

// title tells all of a bar in a sentence.
func (a axis) title(run *PodRun) string {
	since := func(t time.Time) string { return lasted(t.Sub(a.from)) }
	text := run.Pod
	if run.Node != "" {
		text += " on " + run.Node
		if run.GPUs != "" {
			text += " gpu " + run.GPUs
		}
	}
	if run.Queue != "" {
		text += ", queue " + run.Queue
	}
	if run.Bound == nil {
		return text + ": waits since " + since(run.Submitted)
	}
	text += fmt.Sprintf(": waited %s, bound at %s", lasted(run.Bound.Sub(run.Submitted)), since(*run.Bound))
	if run.Evicted != nil {
		text += fmt.Sprintf(", evicted at %s for %s", since(*run.Evicted), run.EvictedFor)
	}
	switch {
	case run.Ended == nil && run.Evicted != nil:
		return text + ", about to go"
	case run.Ended == nil:
		return text + ", runs on"
	case run.Outcome == OutcomeEvicted:
		return text + ", gone at " + since(*run.Ended)
	}
	return text + fmt.Sprintf(", %s at %s", strings.ToLower(run.Outcome), since(*run.Ended))
}
