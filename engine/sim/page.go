package sim

import (
	"bytes"
	_ "embed" // the page's template
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
)

//go:embed page.html
var pageTemplate string

// page is what the HTML page shows. html/template escapes all of it.
type page struct {
	Policy, From, Span, Cycles string
	Stopped                    bool
	Figures                    []pageFigure
	Problems                   []string
	Legend                     []pageQueue
	Verbs                      []pageVerb
	ManyCycles                 bool
	CycleList                  []pageCycle
	Decisions                  []pageDecision
	Queues                     []pageQueue
	Nodes                      []pageNode
	Chart                      *chart
}

type pageFigure struct{ Label, Value, Note string }

type pageVerb struct {
	Name  string
	Count int
}

type pageCycle struct {
	Number int
	Label  string
}

// pageDecision is one line; pods that fared alike share one, as in the table.
type pageDecision struct {
	Cycle                                int
	When, Verb, What, Node, Queue, Class string
	Why, Facts, Search                   string
	Nodes                                []pageCount
	Scores                               []pageScore
}

// HasMore says whether there is anything below the line.
func (d pageDecision) HasMore() bool { return len(d.Nodes)+len(d.Scores) > 0 || d.Facts != "" }

type pageCount struct {
	Count    int
	Row, Why string
}

type pageScore struct{ Score, Row string }

type pageQueue struct {
	QueueSummary
	Name, Class, Allocated, Deserved, Share, Jobs, Search string
	SharePercent                                          float64
	IsQueue                                               bool
}

type pageNode struct {
	Name, State, Pods, Search string
	Use                       []Use
	GPUs                      []DeviceUse
}

// html is the report as one page that loads nothing.
func (r *Report) html() ([]byte, error) {
	t, err := template.New("page").Funcs(template.FuncMap{"view": viewOf}).Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("the page's template: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, r.page()); err != nil {
		return nil, fmt.Errorf("write the page: %w", err)
	}
	return out.Bytes(), nil
}

func (r *Report) page() page {
	p := page{
		From: r.Timeline.From.Format(time.RFC3339), Cycles: explain.Count(r.Timeline.Cycles, "cycle"), Stopped: r.Timeline.Stopped,
		ManyCycles: len(r.cycles) > 1,
	}
	if len(r.Plans) > 0 {
		p.Policy = r.Plans[0].Policy
	}
	if d := r.Timeline.To.Sub(r.Timeline.From); d > 0 {
		p.Span = lasted(d)
	}
	for line := range strings.Lines(r.complaints()) {
		p.Problems = append(p.Problems, strings.TrimSpace(line))
	}
	classes := queueClasses(r.Summary.Queues)
	p.Figures = r.figures()
	p.Queues = r.pageQueues(classes)
	for _, q := range p.Queues {
		if slices.ContainsFunc(r.Timeline.Jobs, func(j JobRun) bool { return j.Queue == q.Name }) {
			p.Legend = append(p.Legend, q)
		}
	}
	if slices.ContainsFunc(r.Timeline.Pods, func(run PodRun) bool { return run.Job == "" }) {
		p.Legend = append(p.Legend, pageQueue{Name: "other schedulers", Class: "other"})
	}
	r.pageDecisions(&p, classes)
	for i := range r.Summary.Nodes {
		n := &r.Summary.Nodes[i]
		p.Nodes = append(p.Nodes, pageNode{n.Node, n.State, explain.Count(n.Pods, "pod"), n.Node + " " + n.State, n.Use, n.GPUs})
	}
	p.Chart = r.chart(classes)
	return p
}

// rootQueue is the queue above all others.
const rootQueue = "root"

// queueClasses gives each queue a colour of the page.
func queueClasses(queues []QueueSummary) map[string]string {
	const colours = 8
	out := map[string]string{}
	for _, q := range queues {
		if q.Queue != rootQueue {
			out[q.Queue] = "q" + strconv.Itoa(len(out)%colours)
		}
	}
	return out
}

// classOf is a queue's colour; one that is not there has that of others.
func classOf(classes map[string]string, queue string) string {
	if class, ok := classes[queue]; ok {
		return class
	}
	return "other"
}

func (r *Report) figures() []pageFigure {
	c := r.Summary.Cluster
	bound, evicted := 0, 0
	for _, p := range r.Plans {
		bound += len(p.Binds)
		evicted += len(p.Evicts)
	}
	out := []pageFigure{
		{"Pods bound", strconv.Itoa(bound), ""},
		{"Pods waiting", strconv.Itoa(c.Waiting), "of " + explain.Count(c.WaitingJobs, "job")},
	}
	if evicted > 0 {
		out = append(out, pageFigure{"Pods evicted", strconv.Itoa(evicted), ""})
	}
	if r.timed {
		done := 0
		for _, j := range r.Timeline.Jobs {
			if j.Finished != nil {
				done++
			}
		}
		out = append(out, pageFigure{"Jobs finished", strconv.Itoa(done), "of " + strconv.Itoa(len(r.Timeline.Jobs))})
	}
	ready := ""
	if c.ReadyNodes < c.Nodes {
		ready = fmt.Sprintf("%d ready", c.ReadyNodes)
	}
	out = append(out, pageFigure{"Nodes", strconv.Itoa(c.Nodes), ready})
	for _, u := range c.Use {
		if u.Resource != "pods" {
			out = append(out, pageFigure{u.Resource + " in use", fmt.Sprintf("%g %%", u.Percent), u.Used + " of " + u.Total})
		}
	}
	return out
}

func (r *Report) pageQueues(classes map[string]string) []pageQueue {
	var out []pageQueue
	for _, q := range r.Summary.Queues {
		p := pageQueue{
			QueueSummary: q, Name: q.Queue, Class: classOf(classes, q.Queue), Allocated: q.text, Deserved: q.Computed["deserved"],
			Jobs: phaseCounts(q.Jobs), Search: q.Queue + " " + q.State, IsQueue: true,
		}
		if share, err := strconv.ParseFloat(q.Computed["share"], 64); err == nil {
			p.SharePercent = min(max(100*share, 0), 100)
			p.Share = fmt.Sprintf("%.3g %%", 100*share)
		}
		out = append(out, p)
	}
	return out
}

// pageDecisions fills in the lines, what they can be filtered by, and what each has below it.
func (r *Report) pageDecisions(p *page, classes map[string]string) {
	counts := map[string]int{}
	for _, c := range r.cycles {
		when := "cycle " + strconv.Itoa(c.number)
		label := when
		if r.timed {
			when, label = "+"+lasted(c.after), fmt.Sprintf("cycle %d, after %s", c.number, lasted(c.after))
		}
		if len(c.lines) > 0 {
			p.CycleList = append(p.CycleList, pageCycle{c.number, label})
		}
		for _, group := range foldedGroups(c.lines) {
			d := pageLine(group)
			d.Cycle, d.When, d.Class = c.number, when, classOf(classes, d.Queue)
			counts[d.Verb]++
			p.Decisions = append(p.Decisions, d)
		}
	}
	for _, verb := range []string{"admit", "bind", "evict", "pipeline", "hold", "wait"} {
		if counts[verb] > 0 {
			p.Verbs = append(p.Verbs, pageVerb{verb, counts[verb]})
		}
	}
}

// pageLine is the line of decisions that differ in nothing but a number; what is below it is the first one's.
func pageLine(group []decision) pageDecision {
	first, whole := group[0], joined(group)
	d := pageDecision{Verb: whole.verb, What: whole.what, Node: whole.node, Queue: whole.queue, Why: whole.why}
	words := []string{d.Verb, d.Node, d.Queue, d.Why, d.What}
	for _, x := range group {
		words = append(words, x.what)
	}
	if b := first.bind; b != nil {
		d.Facts = "chosen from " + explain.Count(b.Feasible, "node")
		if b.RunnerUp != "" {
			d.Facts += fmt.Sprintf(", with %s before %s with %s", model.Score(b.Score), b.RunnerUp, model.Score(b.RunnerUpScore))
		}
		if b.Action != "" {
			d.Facts += ", by the action " + b.Action
		}
		for _, s := range b.Scores {
			d.Scores = append(d.Scores, pageScore{model.Score(s.Score), model.RowName(s.Table, s.Rule)})
		}
	}
	if e := first.evict; e != nil {
		words = append(words, e.For, e.ForJob, e.ForQueue)
	}
	if w := first.wait; w != nil {
		d.Why = w.Reason.String()
		d.Facts = waitFacts(w)
		for _, n := range w.Nodes {
			d.Nodes = append(d.Nodes, pageCount{n.Count, model.RowName(n.Table, n.Rule), n.Why()})
			words = append(words, model.RowName(n.Table, n.Rule), n.Why())
		}
		for _, v := range w.InVain {
			for _, n := range v.Nodes {
				d.Nodes = append(d.Nodes, pageCount{n.Count, model.RowName(n.Table, n.Rule), v.What() + ": " + n.Why()})
			}
			words = append(words, v.String())
		}
	}
	d.Search = strings.Join(words, " ")
	return d
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
