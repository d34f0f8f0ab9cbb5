//nolint:forbidigo // a fixed seed of its own: the check of a file has one result
package statemachines

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// The search for circles draws circleDraws objects and follows each for circleSteps steps, in every phase that is part of a loop.
const (
	circleDraws = 1500
	circleSteps = 40
)

// circles reports transitions that are true at once, and lead in a circle while the object does not change: the controllers would write its
// status forever. It draws objects with a fixed seed, so that the same file always gives the same report. Steps that end or start work are
// left out, because they change the object. A circle is an error if the object has counts that the controllers can write. It is a warning
// if the counts are impossible, such as more pods than replicas.
func (l *loader) circles(edges []edge) {
	starts := l.loops(edges)
	if len(starts) == 0 {
		return
	}
	d := drawing{r: rand.New(rand.NewPCG(1, 2)), numbers: l.numbers()}
	for _, counted := range []bool{true, false} {
		var found *circle
		for range circleDraws {
			f := d.facts(counted)
			for _, phase := range starts {
				if c := l.follow(phase, f); c != nil && (found == nil || c.weight() < found.weight()) {
					found = c
				}
			}
		}
		if found == nil {
			continue
		}
		last := found.rows[len(found.rows)-1]
		i := last.at.Issuef("make the guards exclude each other, or let the object change in between",
			"transitions that are true at once lead in a circle: %s", found)
		if !counted {
			i.Severity = source.Warning
			i.Message += " (with counts that the controllers do not write)"
		}
		l.report(i)
		return
	}
}

// quiet reports whether the effect of an edge does not change the object, once everything that the effect requests exists.
func (e edge) quiet() bool {
	return e.row.do != nil && !e.row.do.kind.kills && !e.row.do.kind.restarts && !e.row.do.kind.changes
}

// loops lists the phases from which quiet transitions of the plain action lead back to the same phase.
func (l *loader) loops(edges []edge) []string {
	quiet := slices.DeleteFunc(slices.Clone(edges), func(e edge) bool {
		p := l.m.phase(e.from)
		return e.to == e.from || e.next != nil && e.next.after > 0 || !e.quiet() || p.answer(l.m.policies.otherwise) != e.row
	})
	var out []string
	for _, e := range quiet {
		if !slices.Contains(out, e.from) && route(quiet, e.to, e.from) != nil {
			out = append(out, e.from)
		}
	}
	return out
}

// circle is a sequence of transitions that returns to its first phase, with the object that follows it.
type circle struct {
	phases []string
	rows   []edge
	facts  Facts
	vars   map[string]any
}

// follow takes the plain action repeatedly for an object that does not change. It returns the circle in which this ends, or nil if it
// reaches a phase that it does not leave.
func (l *loader) follow(phase string, f Facts) *circle {
	f = f.own()
	c := &circle{phases: []string{phase}, facts: f}
	for range circleSteps {
		e, ok := l.way(phase, f)
		if !ok {
			return nil
		}
		if phase = e.to; e.from == e.to {
			return nil
		}
		c.rows, c.phases = append(c.rows, e), append(c.phases, phase)
		f.apply(e)
	}
	back := len(c.rows) - 1
	for c.phases[back] != phase {
		if back--; back < 0 {
			return nil // there are more phases than steps
		}
	}
	c.rows, c.phases = c.rows[back:], c.phases[back:]
	c.vars = l.m.kind.bind(f)
	return c
}

// way returns the quiet transition that the plain action takes, or false.
func (l *loader) way(phase string, f Facts) (edge, bool) {
	r := l.m.phase(phase).answer(l.m.policies.otherwise)
	if r == nil || !(edge{row: r}).quiet() {
		return edge{}, false
	}
	if r.to != "" {
		return edge{phase, r.to, r, nil, r.toAt}, true
	}
	vars := l.m.kind.bind(f)
	for _, n := range r.next {
		if n.after > 0 {
			continue
		}
		switch holds, err := l.m.holds(n.when, r.name(), vars); {
		case err != nil:
			return edge{}, false
		case holds:
			return edge{phase, n.to, r, n, n.toAt}, true
		}
	}
	return edge{}, false
}

// own copies the objects that a transition writes.
func (f Facts) own() Facts {
	if f.Job != nil {
		job := *f.Job
		f.Job = &job
	}
	if f.Queue != nil {
		queue := *f.Queue
		f.Queue = &queue
	}
	return f
}

// apply applies the counters and fields that a transition writes.
func (f Facts) apply(e edge) {
	if e.counts("retryCount") {
		f.Job.Status.RetryCount++
	}
	if e.counts("resumeCount") {
		f.Job.Status.ResumeCount++
	}
	set := e.row.set
	if e.next != nil {
		set = e.row.sets(e.next)
	}
	if parent, ok := set[SetParent]; ok {
		f.Queue.Parent = parent
	}
	if closed, ok := set[SetClosedByParent]; ok {
		f.Queue.ClosedByParent = closed == "true"
	}
}

// inputs lists the variables that the guards of the circle read, with their values.
func (c *circle) inputs() []string {
	var out []string
	for _, e := range c.rows {
		if e.next == nil || e.next.when == nil {
			continue
		}
		for _, path := range e.next.when.Reads.Strings() {
			if text := lookUp(c.vars, path); text != "" && !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	slices.Sort(out)
	return out
}

// weight orders circles: the shortest with the smallest counts is shown.
func (c *circle) weight() int {
	total := 1000 * len(c.rows)
	add := func(counts ...int32) {
		for _, n := range counts {
			total += int(n)
		}
	}
	j, q, w := c.facts.Job, c.facts.Queue, c.facts.Flow
	add(j.MinAvailable, j.MaxRetry, j.Status.RetryCount, j.Status.MinAvailable, int32(len(j.Tasks)), c.facts.CronJob.Active)
	for _, t := range j.Tasks {
		add(t.Replicas, t.Pending, t.Running, t.Succeeded, t.Failed, t.Terminating, t.Unknown)
	}
	add(q.Pending, q.Inqueue, q.Running, q.Unknown, q.Completed)
	add(w.Flows, w.Pending, w.Running, w.Completed, w.Failed, w.Terminated, w.Unknown)
	return total
}

// String returns the phases, the transitions and the inputs as a text.
func (c *circle) String() string {
	var rows []string
	for _, e := range c.rows {
		name := e.row.name()
		if e.next != nil {
			name += "/" + e.next.name
		}
		rows = append(rows, name)
	}
	out := strings.Join(c.phases, " -> ") + ", by " + strings.Join(rows, " and ")
	if inputs := c.inputs(); len(inputs) > 0 {
		out += ", for example with " + strings.Join(inputs, ", ")
	}
	return out
}

// lookUp returns a variable with its value as a text, or "" if the path is not a field of a root.
func lookUp(vars map[string]any, path string) string {
	root, field, ok := strings.Cut(path, ".")
	v, isView := vars[root].(*view)
	if !ok || !isView {
		return ""
	}
	if job, isJob := v.of.(*Job); isJob && root == "job" && strings.HasPrefix(field, "tasks") {
		var tasks []string
		for _, t := range job.Tasks {
			text := fmt.Sprintf("%d replicas, %d pending, %d running, %d succeeded, %d failed", t.Replicas, t.Pending, t.Running, t.Succeeded,
				t.Failed)
			if t.MinAvailable != nil {
				text = fmt.Sprintf("minAvailable %d, ", *t.MinAvailable) + text
			}
			tasks = append(tasks, "{"+text+"}")
		}
		return "job.tasks = [" + strings.Join(tasks, ", ") + "]"
	}
	for _, o := range Objects() {
		if o.Type.TypeName() != v.typ().TypeName() {
			continue
		}
		for _, m := range o.Members {
			if m.Name == field {
				if value := m.Get(v.of); value != types.NullValue && !types.IsError(value) {
					return fmt.Sprintf("%s = %#v", path, value.Value())
				}
				return path + " is missing"
			}
		}
	}
	return ""
}

// numbers returns the numbers from which counts are drawn: small ones, and those near the numbers in the guards.
func (l *loader) numbers() []int32 {
	out := []int32{0, 1, 2, 3, 4}
	for _, p := range l.m.phases {
		for _, r := range p.rows {
			for _, n := range r.next {
				if n.when == nil {
					continue
				}
				for _, text := range regexp.MustCompile(`\b\d{1,6}\b`).FindAllString(written(n.when), -1) {
					if v, err := strconv.ParseInt(text, 10, 32); err == nil && v > 4 {
						out = append(out, int32(v)-1, int32(v), int32(v)+1)
					}
				}
			}
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(out)))
}

// drawing draws objects.
type drawing struct {
	r       *rand.Rand
	numbers []int32
}

func (d drawing) number() int32 { return d.numbers[d.r.IntN(len(d.numbers))] }

func (d drawing) maybe() *int32 {
	if d.r.IntN(2) == 0 {
		return nil
	}
	return new(d.number())
}

// upTo draws a count. If counted, the count is at most left, and is subtracted from left.
func (d drawing) upTo(left *int32, counted bool) int32 {
	if !counted {
		return d.number()
	}
	n := min(d.number(), *left)
	*left -= n
	return n
}

// facts draws one object of each kind. If counted, a task has no more pods than replicas, and a flow no more Jobs than it lists.
func (d drawing) facts(counted bool) Facts {
	job := &Job{MinSuccess: d.maybe(), MaxRetry: d.number()}
	replicas := int32(0)
	for range 1 + d.r.IntN(2) {
		t := Task{Replicas: d.number(), MinAvailable: d.maybe()}
		left := t.Replicas
		counts := []*int32{&t.Pending, &t.Running, &t.Succeeded, &t.Failed, &t.Terminating, &t.Unknown}
		for _, i := range d.r.Perm(len(counts)) {
			*counts[i] = d.upTo(&left, counted)
		}
		if counted && t.MinAvailable != nil {
			*t.MinAvailable = min(*t.MinAvailable, t.Replicas)
		}
		job.Tasks = append(job.Tasks, t)
		s := &job.Status
		s.Pending, s.Running, s.Succeeded = s.Pending+t.Pending, s.Running+t.Running, s.Succeeded+t.Succeeded
		s.Failed, s.Terminating, s.Unknown = s.Failed+t.Failed, s.Terminating+t.Terminating, s.Unknown+t.Unknown
		replicas += t.Replicas
	}
	job.MinAvailable = d.number()
	if counted {
		job.MinAvailable = min(job.MinAvailable, replicas)
	}
	job.Status.MinAvailable, job.Status.RetryCount = cmp.Or(d.number(), job.MinAvailable), d.number()
	state := func() string { return []string{"", "Open", "Closing", "Closed", "Unknown"}[d.r.IntN(5)] }
	flow := &Flow{Flows: d.number(), Retain: []string{"retain", "delete"}[d.r.IntN(2)]}
	left := flow.Flows
	counts := []*int32{&flow.Pending, &flow.Running, &flow.Completed, &flow.Failed, &flow.Terminated, &flow.Unknown}
	for _, i := range d.r.Perm(len(counts)) {
		*counts[i] = d.upTo(&left, counted)
	}
	return Facts{
		Job: job,
		Queue: &Queue{
			Name: []string{"root", "q"}[d.r.IntN(2)], Parent: []string{"", "root"}[d.r.IntN(2)], State: state(), ClosedByParent: d.r.IntN(2) == 0,
			Pending: d.number(), Inqueue: d.number(), Running: d.number(), Unknown: d.number(), Completed: d.number(),
		},
		Parent: &Queue{Name: "root", State: state()},
		Flow:   flow,
		CronJob: &CronJob{
			Active: d.number(), Suspend: d.r.IntN(2) == 0, ConcurrencyPolicy: []string{"Allow", "Forbid", "Replace"}[d.r.IntN(3)],
		},
	}
}
