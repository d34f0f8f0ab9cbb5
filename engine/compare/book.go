package compare

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Sides of a comparison.
const (
	Old = 0
	New = 1
)

// Book records what two policies do with the same jobs. The zero value is empty.
type Book struct {
	jobs map[string]*job
	// Cycles is the number of compared cycles. Otherwise counts those in which the bindings or evictions differ.
	Cycles, Otherwise int
	// First and Last are the times of the first and the last cycle.
	First, Last time.Time
}

type job struct {
	key, queue string
	began      [2]time.Time
	places     [2]map[string]string // by pod: the first node to which it was bound
	evicted    [2]map[string]bool   // evicted pods
}

// Note records what one side decides.
func (b *Book) Note(side int, plan *model.Plan) {
	for i := range plan.Binds {
		x := &plan.Binds[i]
		j := b.of(x.Job, x.Queue)
		if j.began[side].IsZero() {
			j.began[side] = plan.Now
		}
		if _, before := j.places[side][x.Task]; !before {
			j.places[side][x.Task] = x.Node
		}
	}
	for i := range plan.Evicts {
		b.of(plan.Evicts[i].Job, plan.Evicts[i].Queue).evicted[side][plan.Evicts[i].Task] = true
	}
}

// Count counts a cycle with the plans of both sides.
func (b *Book) Count(before, after *model.Plan) {
	if b.Cycles++; b.Cycles == 1 {
		b.First = before.Now
	}
	b.Last = before.Now
	if !Alike(before, after) {
		b.Otherwise++
	}
}

// add adds a book of later cycles.
func (b *Book) add(later *Book) {
	if later.Cycles == 0 {
		return
	}
	if b.Cycles == 0 {
		b.First = later.First
	}
	b.Cycles, b.Otherwise, b.Last = b.Cycles+later.Cycles, b.Otherwise+later.Otherwise, later.Last
	for key, l := range later.jobs {
		j := b.of(key, l.queue)
		for side := range j.places {
			if j.began[side].IsZero() {
				j.began[side] = l.began[side]
			}
			for pod, node := range l.places[side] {
				if _, before := j.places[side][pod]; !before {
					j.places[side][pod] = node
				}
			}
			maps.Copy(j.evicted[side], l.evicted[side])
		}
	}
}

// Alike reports whether two plans bind and evict the same pods on the same nodes.
func Alike(a, b *model.Plan) bool { return slices.Equal(moves(a), moves(b)) }

// moves returns what a plan binds and evicts, sorted by pod.
func moves(p *model.Plan) []string {
	out := make([]string, 0, len(p.Binds)+len(p.Evicts))
	for i := range p.Binds {
		out = append(out, p.Binds[i].Task+" bound to "+p.Binds[i].Node)
	}
	for i := range p.Evicts {
		out = append(out, p.Evicts[i].Task+" evicted from "+p.Evicts[i].Node)
	}
	slices.Sort(out)
	return out
}

func (b *Book) of(key, queue string) *job {
	if b.jobs == nil {
		b.jobs = map[string]*job{}
	}
	j := b.jobs[key]
	if j == nil {
		j = &job{
			key: key, queue: queue, places: [2]map[string]string{{}, {}}, evicted: [2]map[string]bool{{}, {}},
		}
		b.jobs[key] = j
	}
	return j
}

// Difference is a job whose decisions differ.
type Difference struct {
	Job   string `json:"job"` // the key of its PodGroup
	Queue string `json:"queue"`
	// Elsewhere is the number of pods that both sides bind, but to different nodes.
	Elsewhere int `json:"elsewhere,omitempty"`
	// OldStart and NewStart are when its first pod is bound; zero: in none of the cycles.
	OldStart time.Time `json:"oldStart,omitzero"`
	NewStart time.Time `json:"newStart,omitzero"`
	// OldBound and NewBound are the numbers of bound pods.
	OldBound int `json:"oldBound"`
	NewBound int `json:"newBound"`
	// OldEvicted and NewEvicted are the numbers of pods that only this side evicts.
	OldEvicted int `json:"oldEvicted,omitempty"`
	NewEvicted int `json:"newEvicted,omitempty"`
}

// Differences returns the jobs whose decisions differ, in key order.
func (b *Book) Differences() []Difference {
	out := []Difference{}
	for _, key := range slices.Sorted(maps.Keys(b.jobs)) {
		if d, otherwise := b.jobs[key].difference(); otherwise {
			out = append(out, d)
		}
	}
	return out
}

// Jobs returns the keys of all recorded jobs.
func (b *Book) Jobs() iter.Seq[string] { return maps.Keys(b.jobs) }

// Close forgets a job for which no more decisions come. otherwise reports whether its decisions differ, and d how.
func (b *Book) Close(job string) (d Difference, otherwise bool) {
	if j := b.jobs[job]; j != nil {
		delete(b.jobs, job)
		return j.difference()
	}
	return d, false
}

// difference returns how the decisions for a job differ, if they do.
func (j *job) difference() (d Difference, otherwise bool) {
	d = Difference{
		Job: j.key, Queue: j.queue, OldStart: j.began[Old], NewStart: j.began[New], OldBound: len(j.places[Old]), NewBound: len(j.places[New]),
		OldEvicted: without(j.evicted[Old], j.evicted[New]), NewEvicted: without(j.evicted[New], j.evicted[Old]),
	}
	for pod, node := range j.places[Old] {
		if other, both := j.places[New][pod]; both && other != node {
			d.Elsewhere++
		}
	}
	return d, d.Elsewhere+d.OldEvicted+d.NewEvicted > 0 || d.OldBound != d.NewBound || !d.OldStart.Equal(d.NewStart)
}

func without(these, those map[string]bool) (n int) {
	for pod := range these {
		if !those[pod] {
			n++
		}
	}
	return n
}

// mostTold is the maximum number of jobs in a text.
const mostTold = 30

// Text describes all differences for people. title returns the name of a job that users know.
func (b *Book) Text(title func(key string) string) string { return Told(b.Differences(), "", title) }

// Told describes jobs whose decisions differ, for people. newer is the name of the new side; "": the new.
func Told(all []Difference, newer string, title func(key string) string) string {
	by := ""
	if newer != "" {
		by = " by " + newer
	}
	all = slices.Clone(all)
	var later, sooner, elsewhere, evicted int
	rows := [][]string{{"JOB", "QUEUE", "STARTS", "PODS BOUND", "ELSEWHERE", "EVICTED"}}
	slices.SortStableFunc(all, func(x, y Difference) int { return cmp.Compare(y.weight(), x.weight()) })
	for i := range all {
		d := &all[i]
		switch start := d.start(); {
		case start > 0:
			later++
		case start < 0:
			sooner++
		}
		elsewhere += d.Elsewhere
		evicted += d.NewEvicted - d.OldEvicted
		if i < mostTold {
			rows = append(rows, []string{
				title(d.Job), d.Queue, d.starts(cmp.Or(newer, "the new")), arrow(d.OldBound, d.NewBound), number(d.Elsewhere), d.evictions(),
			})
		}
	}
	if len(all) == 0 {
		return "no job is affected\n"
	}
	if more := len(all) - mostTold; more > 0 {
		rows = append(rows, []string{fmt.Sprintf("and %d more", more)})
	}
	return fmt.Sprintf("%s affected%s: %d later or not, %d sooner; %s elsewhere; %+d evictions\n", affected(len(all)), by, later, sooner,
		explain.Count(elsewhere, "pod"), evicted) + explain.Columns("  ", rows)
}

func affected(jobs int) string {
	if jobs == 1 {
		return "1 job is"
	}
	return fmt.Sprintf("%d jobs are", jobs)
}

// start returns 1 if a job starts later by the new policy, or not at all; -1 if it starts earlier, or only by it.
func (d *Difference) start() int {
	switch {
	case d.OldStart.Equal(d.NewStart):
		return 0
	case d.NewStart.IsZero() || !d.OldStart.IsZero() && d.NewStart.After(d.OldStart):
		return 1
	}
	return -1
}

// weight orders differences by importance: evictions, then a different start, then other nodes.
func (d *Difference) weight() int {
	return 4*min(d.NewEvicted+d.OldEvicted, 1) + 2*min(d.start()*d.start(), 1) + min(d.Elsewhere, 1)
}

func (d *Difference) starts(newer string) string {
	switch {
	case d.OldStart.Equal(d.NewStart):
		return "alike"
	case d.NewStart.IsZero():
		return "not"
	case d.OldStart.IsZero():
		return "only by " + newer
	case d.NewStart.After(d.OldStart):
		return d.NewStart.Sub(d.OldStart).Round(time.Millisecond).String() + " later"
	}
	return d.OldStart.Sub(d.NewStart).Round(time.Millisecond).String() + " sooner"
}

func (d *Difference) evictions() string {
	var out []string
	if d.NewEvicted > 0 {
		out = append(out, explain.Count(d.NewEvicted, "pod")+" more")
	}
	if d.OldEvicted > 0 {
		out = append(out, explain.Count(d.OldEvicted, "pod")+" less")
	}
	return strings.Join(out, ", ")
}

func arrow(before, after int) string {
	if before == after {
		return number(after)
	}
	return fmt.Sprintf("%d -> %d", before, after)
}

func number(n int) string { return fmt.Sprint(n) }
