package whatif

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Fate contains what a plan decides about the pods of a job.
type Fate struct {
	// Admitted means that the job is admitted, and that its pods are created afterwards.
	Admitted bool `json:"admitted,omitempty"`
	Bound    int  `json:"bound,omitempty"`
	Promised int  `json:"promised,omitempty"` // promised a node from which others leave
	Evicted  int  `json:"evicted,omitempty"`
	// For are the jobs for which its pods are evicted.
	For []string `json:"for,omitempty"`
	// Waits states why the job, or a pod of it, waits.
	Waits string `json:"waits,omitempty"`

	places map[string]string // by pod: the decision, and its node
	ofPod  bool              // Waits is the reason of a pod
}

// Difference is a job whose decisions differ.
type Difference struct {
	Job    string `json:"job"`
	Queue  string `json:"queue"`
	Before Fate   `json:"before"`
	After  Fate   `json:"after"`
}

// fates returns the fates of all jobs in a plan, by key.
func fates(plan *model.Plan) map[string]*Difference {
	out := map[string]*Difference{}
	of := func(job, queue string) *Fate {
		if out[job] == nil {
			out[job] = &Difference{Job: job, Queue: queue, After: Fate{places: map[string]string{}}}
		}
		return &out[job].After
	}
	for i := range plan.Admits {
		of(plan.Admits[i].Job, plan.Admits[i].Queue).Admitted = true
	}
	for i := range plan.Binds {
		b := &plan.Binds[i]
		f := of(b.Job, b.Queue)
		f.Bound++
		f.places[b.Task] = "bound " + b.Node
	}
	for i := range plan.Pipelines {
		b := &plan.Pipelines[i]
		f := of(b.Job, b.Queue)
		f.Promised++
		f.places[b.Task] = "promised " + b.Node
	}
	for i := range plan.Evicts {
		e := &plan.Evicts[i]
		f := of(e.Job, e.Queue)
		f.Evicted++
		f.places[e.Task] = "evicted"
		if e.ForJob != "" && !slices.Contains(f.For, e.ForJob) {
			f.For = append(f.For, e.ForJob)
		}
	}
	for i := range plan.Waits {
		w := &plan.Waits[i]
		if f := of(w.Job, w.Queue); f.Waits == "" || w.Task != "" && !f.ofPod {
			f.Waits, f.ofPod = w.Why(), w.Task != "" // the reason of a pod is more precise than that of its job
		}
	}
	return out
}

// Differ lists the jobs that the second of two plans decides differently, in key order, without those left out. Their pods are bound,
// promised or evicted differently, or they wait or are admitted in one plan only.
func Differ(before, after *model.Plan, without []string) []Difference {
	was, is := fates(before), fates(after)
	keys := slices.Concat(slices.Collect(maps.Keys(was)), slices.Collect(maps.Keys(is)))
	slices.Sort(keys)
	var out []Difference
	for _, key := range slices.Compact(keys) {
		if slices.Contains(without, key) {
			continue
		}
		d := Difference{Job: key}
		if x := was[key]; x != nil {
			d.Queue, d.Before = x.Queue, x.After
		}
		if x := is[key]; x != nil {
			d.Queue, d.After = x.Queue, x.After
		}
		if !maps.Equal(d.Before.places, d.After.places) || (d.Before.Waits == "") != (d.After.Waits == "") ||
			d.Before.Admitted != d.After.Admitted {
			out = append(out, d)
		}
	}
	return out
}

// text describes a fate for people, compared with was.
func (f *Fate) text(was *Fate, titles explain.Titles) string {
	var parts []string
	if f.Bound > 0 {
		text := explain.Count(f.Bound, "pod") + " bound"
		if n := f.elsewhere(was); n > 0 {
			text += fmt.Sprintf(", %d elsewhere", n)
		}
		parts = append(parts, text)
	}
	if f.Promised > 0 {
		parts = append(parts, explain.Count(f.Promised, "pod")+" promised a place where others leave")
	}
	if f.Evicted > 0 {
		text := explain.Count(f.Evicted, "pod") + " evicted"
		if len(f.For) > 0 {
			names := make([]string, len(f.For))
			for i, key := range f.For {
				names[i] = titles.Of(key)
			}
			text += " for " + strings.Join(names, ", ")
		}
		parts = append(parts, text)
	}
	if f.Waits != "" {
		parts = append(parts, "waits: "+f.Waits)
	}
	if len(parts) == 0 {
		return f.without(was)
	}
	return strings.Join(parts, "; ")
}

// without describes a job without decisions in this plan: what only the other plan decides.
func (f *Fate) without(was *Fate) string {
	switch {
	case f.Admitted:
		return "admitted; its pods are created next"
	case was.Evicted > 0:
		return "no pod evicted"
	case was.Bound+was.Promised > 0:
		return "no pod bound"
	case was.Waits != "":
		return "does not wait"
	default:
		return "not admitted"
	}
}

// elsewhere returns how many pods are bound to another node than before.
func (f *Fate) elsewhere(was *Fate) (n int) {
	for pod, place := range f.places {
		if old := was.places[pod]; old != place && strings.HasPrefix(place, "bound ") && strings.HasPrefix(old, "bound ") {
			n++
		}
	}
	return n
}
