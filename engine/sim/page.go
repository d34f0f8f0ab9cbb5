package sim

import (
	"cmp"
	_ "embed" // the page's template and script
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/page"
	"github.com/celsius-scheduler/celsius/rules/source"
)

//go:embed page.html
var pageTemplate string

//go:embed page.js
var pageScript string

// pageData is the data of the page. The page's script shows it as text. Repeated values are numbers: the index of a text in Texts, of a
// cycle in Cycles, or of details in More. Times are seconds since the start of the run.
type pageData struct {
	Policy   string         `json:"policy"`
	From     time.Time      `json:"from"`
	Span     float64        `json:"span"`
	Cycles   []pageCycle    `json:"cycles"`
	Figures  []pageFigure   `json:"figures"`
	Queues   []pageQueue    `json:"queues"`
	Nodes    []NodeSummary  `json:"nodes"`
	Use      []pageUse      `json:"use"`
	Pods     [][]any        `json:"pods"` // see podRow
	Jobs     []JobRun       `json:"jobs"`
	Lines    [][]any        `json:"lines"` // see lineRow; the pods or jobs of the line come before that
	More     []pageMore     `json:"more"`
	Texts    []string       `json:"texts"`
	texts    map[string]int // index of each text in Texts
	moreText map[string]int // index of each entry in More, by its text
}

type pageFigure struct {
	Label string `json:"label"`
	Value string `json:"value"`
	Note  string `json:"note,omitempty"`
}

type pageCycle struct {
	Number int     `json:"number"`
	After  float64 `json:"after"`
}

type pageQueue struct {
	Name      string   `json:"name"`
	Parent    string   `json:"parent,omitempty"`
	State     string   `json:"state"`
	Class     string   `json:"class"`
	Share     *float64 `json:"share,omitempty"`
	Allocated string   `json:"allocated"`
	Deserved  string   `json:"deserved"`
	Jobs      string   `json:"jobs"`
	Placed    int64    `json:"placed"`
	Pending   int64    `json:"pending"`
}

// pageUse is a UseOverTime. Its points are lists of time, used, total and deserved; deserved is omitted if it does not exist.
type pageUse struct {
	Queue    string      `json:"queue,omitempty"`
	Resource string      `json:"resource"`
	Note     string      `json:"note"`
	Mean     float64     `json:"mean"` // percent
	Bytes    bool        `json:"bytes,omitempty"`
	Points   [][]float64 `json:"points"`
}

// pageMore contains the details below a line. The rows are counted nodes, row and reason, or score and row.
type pageMore struct {
	Facts  string  `json:"facts,omitempty"`
	Nodes  [][]any `json:"nodes,omitempty"`
	Scores [][]any `json:"scores,omitempty"`
}

// pageRecorder records the lines of a page.
type pageRecorder struct {
	cycles []pageCycle
	lines  []*pageLine
	open   map[[2]string]*pageLine // the last line by verb and by pod or job
}

func newPageRecorder() *pageRecorder { return &pageRecorder{open: map[[2]string]*pageLine{}} }

// record adds each decision. A wait is shown once while the same row causes it, with the text of the last cycle. Otherwise the report would
// repeat the same lines if thousands of pods wait for hours.
func (p *pageRecorder) record(_ *Report, _ *model.Plan, c *cycle) error {
	i := len(p.cycles)
	p.cycles = append(p.cycles, pageCycle{c.number, c.after.Seconds()})
	for _, x := range c.lines {
		x = x.alone()
		key := [2]string{x.verb, x.what}
		if l := p.open[key]; l != nil && l.last == i-1 && sameRow(l.decision, x) {
			l.decision, l.last = x, i
			continue
		}
		l := &pageLine{x, i, i}
		p.lines = append(p.lines, l)
		p.open[key] = l
	}
	return nil
}

// alone copies the data that a line points to, so that the line does not keep the plan of its cycle in memory.
func (d decision) alone() decision {
	if d.bind != nil {
		bind := *d.bind
		d.bind = &bind
	}
	if d.evict != nil {
		evict := *d.evict
		d.evict = &evict
	}
	if d.wait != nil {
		wait := *d.wait
		wait.Tried = nil
		d.wait = &wait
	}
	return d
}

// write writes the report as one page that loads no other files.
func (p *pageRecorder) write(r *Report, out io.Writer) error {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("the page's template: %w", err)
	}
	d := r.pageData(p)
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("write the page's data: %w", err)
	}
	err = t.Execute(out, map[string]any{
		"Policy": source.Escape(d.Policy), "Data": json.RawMessage(source.EscapeJSON(data)), "Style": template.CSS(page.Style()),
		"Components": template.JS(page.Components()), "Script": template.JS(pageScript),
		"Head": r.heading(), "Problems": slices.Collect(strings.Lines(source.Escape(r.complaints()))),
	})
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// heading returns a text with the start, the duration and the number of cycles of the run.
func (r *Report) heading() string {
	text := "Simulated from " + r.Timeline.From.Format(time.RFC3339)
	if d := r.Timeline.To.Sub(r.Timeline.From); d > 0 {
		text += ", over " + lasted(d)
	}
	text += ", in " + explain.Count(r.Timeline.Cycles, "cycle") + "."
	if r.Timeline.Stopped {
		text += " It was stopped there, with more to come."
	}
	return text
}

func (r *Report) pageData(p *pageRecorder) *pageData {
	d := &pageData{
		Policy: r.policy, Cycles: p.cycles,
		From: r.Timeline.From, Span: r.Timeline.To.Sub(r.Timeline.From).Seconds(), Nodes: r.Summary.Nodes, Jobs: r.Timeline.Jobs,
		texts: map[string]int{}, moreText: map[string]int{}, Figures: r.figures(),
	}
	d.text("") // has index 0
	colours := 0
	for _, q := range r.Summary.Queues {
		p := pageQueue{
			Name: q.Queue, State: q.State, Class: "other", Allocated: q.text, Deserved: q.Computed["deserved"],
			Jobs: phaseCounts(q.Jobs), Placed: q.Placed, Pending: q.Pending,
		}
		if q.Queue != rootQueue {
			p.Class = "q" + strconv.Itoa(colours%queueColours)
			p.Parent = cmp.Or(q.parent, rootQueue)
			colours++
		}
		if share, err := strconv.ParseFloat(q.Computed["share"], 64); err == nil && !math.IsInf(share, 0) && !math.IsNaN(share) {
			p.Share = &share
		}
		d.Queues = append(d.Queues, p)
	}
	for i := range r.Timeline.Use {
		d.Use = append(d.Use, r.pageUse(&r.Timeline.Use[i]))
	}
	for i := range r.Timeline.Pods {
		d.Pods = append(d.Pods, d.podRow(&r.Timeline.Pods[i], r.Timeline.From))
	}
	d.lines(p.lines)
	return d
}

// rootQueue is the ancestor of all queues. queueColours is the number of colours for the other queues.
const (
	rootQueue    = "root"
	queueColours = 8
)

// text returns the index of a text.
func (d *pageData) text(s string) int {
	i, there := d.texts[s]
	if !there {
		i = len(d.Texts)
		d.texts[s] = i
		d.Texts = append(d.Texts, s)
	}
	return i
}

// below returns the index of the details below a line; -1: none.
func (d *pageData) below(m pageMore) int {
	if m.Facts == "" && len(m.Nodes)+len(m.Scores) == 0 {
		return -1
	}
	key := fmt.Sprint(m)
	i, there := d.moreText[key]
	if !there {
		i = len(d.More)
		d.moreText[key] = i
		d.More = append(d.More, m)
	}
	return i
}

func (r *Report) pageUse(u *UseOverTime) pageUse {
	p := pageUse{
		Queue: u.Queue, Resource: u.Resource, Mean: u.MeanPercent, Bytes: u.unit == 1,
		Note: fmt.Sprintf("mean %s (%g %%), peak %s (%g %%)", u.Mean, u.MeanPercent, u.Peak, u.PeakPercent),
	}
	for _, x := range u.Points {
		row := []float64{x.At.Sub(r.Timeline.From).Seconds(), x.Used, x.Total}
		if x.Deserved != nil {
			row = append(row, *x.Deserved)
		}
		p.Points = append(p.Points, row)
	}
	return p
}

// podRow returns the life of a pod as a list: pod, job, queue, node, GPUs, requests, outcome and size. Then come the times of submission,
// binding, end and eviction, and the pod for which it was evicted. Missing times are null.
func (d *pageData) podRow(run *PodRun, from time.Time) []any {
	since := func(t *time.Time) any {
		if t == nil {
			return nil
		}
		return t.Sub(from).Seconds()
	}
	row := []any{
		d.text(run.Pod), d.text(run.Job), d.text(run.Queue), d.text(run.Node), d.text(run.GPUs), d.text(run.asks), d.text(run.Outcome),
		round4(run.size), run.Submitted.Sub(from).Seconds(), since(run.Bound), since(run.Ended),
	}
	if run.Evicted != nil {
		row = append(row, since(run.Evicted), d.text(run.EvictedFor))
	}
	return row
}

func (r *Report) figures() []pageFigure {
	c := r.Summary.Cluster
	out := []pageFigure{
		{"Pods bound", strconv.Itoa(r.bound), ""},
		{"Pods waiting", strconv.Itoa(c.Waiting), "of " + explain.Count(c.WaitingJobs, "job")},
	}
	if r.evicted > 0 {
		out = append(out, pageFigure{"Pods evicted", strconv.Itoa(r.evicted), ""})
	}
	if r.timed {
		out = append(out, r.outcomeFigures()...)
	}
	ready := ""
	if c.ReadyNodes < c.Nodes {
		ready = fmt.Sprintf("%d ready", c.ReadyNodes)
	}
	out = append(out, pageFigure{"Nodes", strconv.Itoa(c.Nodes), ready})
	for _, u := range c.Use {
		if u.Resource == podsResource {
			continue
		}
		f := pageFigure{u.Resource + " in use", fmt.Sprintf("%g %%", u.Percent), u.Used + " of " + u.Total}
		for i := range r.Timeline.Use {
			if o := &r.Timeline.Use[i]; o.Queue == "" && o.Resource == u.Resource {
				f.Value = fmt.Sprintf("%g %%", o.MeanPercent)
				f.Note = fmt.Sprintf("mean; peak %g %%, at the end %g %%", o.PeakPercent, u.Percent)
			}
		}
		out = append(out, f)
	}
	return out
}

// podsResource is the resource that counts pods, which the page leaves out.
const podsResource = "pods"

// outcomeFigures returns the numbers of finished jobs and failed pods.
func (r *Report) outcomeFigures() []pageFigure {
	done, failed := 0, 0
	for _, j := range r.Timeline.Jobs {
		if j.Finished != nil {
			done++
		}
	}
	for i := range r.Timeline.Pods {
		if r.Timeline.Pods[i].Outcome == OutcomeFailed {
			failed++
		}
	}
	out := []pageFigure{{"Jobs finished", strconv.Itoa(done), "of " + strconv.Itoa(len(r.Timeline.Jobs))}}
	if failed > 0 {
		out = append(out, pageFigure{"Pods failed", strconv.Itoa(failed), ""})
	}
	return out
}

// pageLine is a decision, with the indices of the first and the last of the consecutive cycles that made it.
type pageLine struct {
	decision
	first, last int
}

// lines adds the lines, in the order of their first cycles.
func (d *pageData) lines(all []*pageLine) {
	var before []any
	for _, l := range all {
		row := d.lineRow(l)
		if slices.Equal(row, before) {
			last := d.Lines[len(d.Lines)-1]
			last[0] = append(last[0].([]int), d.text(l.what))
			continue
		}
		before = row
		d.Lines = append(d.Lines, append([]any{[]int{d.text(l.what)}}, row...))
	}
}

// sameRow reports whether two decisions about a pod or a job wait for the same row in the same way.
func sameRow(a, b decision) bool {
	reason := func(d decision) (table, rule string) {
		if d.wait != nil {
			return d.wait.Reason.Table, d.wait.Reason.Rule
		}
		return d.bind.Reason.Table, d.bind.Reason.Rule
	}
	if a.verb != b.verb || a.node != b.node || a.evict != nil || b.evict != nil || a.verb == "bind" || a.verb == "admit" {
		return false
	}
	table, rule := reason(a)
	otherTable, otherRule := reason(b)
	if a.wait != nil && (a.wait.Fared.Untried != b.wait.Fared.Untried || (a.wait.Fared.Node == "") != (b.wait.Fared.Node == "")) {
		return false
	}
	return table == otherTable && rule == otherRule
}

// lineRow returns a line without its pods or jobs. It contains the first and the last cycle, verb, node, queue, reason, details below it,
// and additional search text.
func (d *pageData) lineRow(l *pageLine) []any {
	var more pageMore
	why, search := l.why, ""
	if b := l.bind; b != nil {
		more.Facts = "chosen from " + explain.Count(b.Feasible, "node")
		if b.RunnerUp != "" {
			more.Facts += fmt.Sprintf(", with %s before %s with %s", model.Score(b.Score), b.RunnerUp, model.Score(b.RunnerUpScore))
		}
		if b.Action != "" {
			more.Facts += ", by the action " + b.Action
		}
		for _, s := range b.Scores {
			more.Scores = append(more.Scores, []any{model.Score(s.Score), d.text(model.RowName(s.Table, s.Rule))})
		}
	}
	if e := l.evict; e != nil {
		search = strings.Join([]string{e.For, e.ForJob, e.ForQueue}, " ")
	}
	if w := l.wait; w != nil {
		why = w.Why()
		more.Facts = waitFacts(w)
		for _, n := range w.Nodes {
			more.Nodes = append(more.Nodes, []any{n.Count, d.text(model.RowName(n.Table, n.Rule)), d.text(n.Why())})
		}
		for _, v := range w.InVain {
			for _, n := range v.Nodes {
				more.Nodes = append(more.Nodes, []any{n.Count, d.text(model.RowName(n.Table, n.Rule)), d.text(v.What() + ": " + n.Why())})
			}
		}
	}
	return []any{l.first, l.last, l.verb, d.text(l.node), d.text(l.queue), d.text(why), d.below(more), d.text(search)}
}

func waitFacts(w *model.Wait) string {
	var parts []string
	if w.Place > 0 {
		parts = append(parts, fmt.Sprintf("place %d in the order of its queue", w.Place))
	}
	if w.Action != "" {
		parts = append(parts, "in the action "+w.Action)
	}
	return strings.Join(parts, ", ")
}

// naturalNode orders nodes by number: n2 before n10.
func naturalNode(a, b string) int {
	stem := func(s string) string { return strings.TrimRight(s, "0123456789") }
	if stem(a) == stem(b) && len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func round4(x float64) float64 { return math.Round(1e4*x) / 1e4 }
