package shadow

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Kinds of differences.
const (
	Elsewhere = "Elsewhere" // both bind the pod, the shadow to another node
	Later     = "Later"     // the shadow does not bind it
	Sooner    = "Sooner"    // only the shadow binds it
	Evicted   = "Evicted"   // only the shadow evicts it
	Spared    = "Spared"    // only the serving policy evicts it
)

// mostDifferences is the maximum number of reported differences. mostText is the maximum length of their texts, in characters.
const (
	mostDifferences = 20
	mostText        = 500
)

// book counts the differences between a shadow and the serving policy.
type book struct {
	found v1alpha1.ShadowStatus
	// lasting contains the bindings and evictions that only the shadow wants, as of the last cycle. Each is counted once while it lasts.
	lasting map[string]string
}

// deed is a decision of a plan about a pod.
type deed struct {
	job, queue, text string
	node             string // "" for an eviction
}

// deeds returns the bindings and evictions of a plan, by pod.
func deeds(plan *model.Plan) (binds, evicts map[string]deed) {
	binds, evicts = map[string]deed{}, map[string]deed{}
	for i := range plan.Binds {
		b := &plan.Binds[i]
		binds[b.Task] = deed{job: b.Job, queue: b.Queue, node: b.Node, text: "bound to " + b.Node}
	}
	for i := range plan.Evicts {
		e := &plan.Evicts[i]
		text := "evicted"
		if e.ForJob != "" {
			text += " for " + e.ForJob
		}
		evicts[e.Task] = deed{job: e.Job, queue: e.Queue, text: text}
	}
	return binds, evicts
}

// compare compares one cycle and counts the differences.
func (b *book) compare(c *model.Cluster, done, shadow *model.Plan) {
	b.found.Cycles.Decided++
	if done.Same && shadow.Same {
		return // nothing changed, so lasting differences continue
	}
	binds, evicts := deeds(done)
	would, wouldEvict := deeds(shadow)
	otherwise := false
	lasting := map[string]string{}
	note := func(kind, pod string, of deed, lasts bool, was, is string) {
		otherwise = true
		if lasts {
			lasting[pod] = kind
			if b.lasting[pod] == kind {
				return
			}
		}
		*b.counter(kind)++
		b.show(v1alpha1.ShadowDifference{
			Time: metav1.NewTime(done.Now).Rfc3339Copy(), Kind: kind, Queue: of.queue, Pod: pod, Text: cut(was + "; by the shadow " + is),
		}, c, of.job)
	}
	for i := range done.Binds {
		pod := done.Binds[i].Task
		d := binds[pod]
		switch other, also := would[pod]; {
		case !also:
			note(Later, pod, d, false, d.text, "it waits"+because(shadow, pod, d.job))
		case other.node != d.node:
			note(Elsewhere, pod, d, false, d.text, other.text)
		}
	}
	for i := range shadow.Binds {
		if pod := shadow.Binds[i].Task; binds[pod].job == "" {
			note(Sooner, pod, would[pod], true, "waits"+because(done, pod, would[pod].job), would[pod].text)
		}
	}
	for i := range done.Evicts {
		if pod := done.Evicts[i].Task; wouldEvict[pod].job == "" {
			note(Spared, pod, evicts[pod], false, evicts[pod].text, "it stays")
		}
	}
	for i := range shadow.Evicts {
		if pod := shadow.Evicts[i].Task; evicts[pod].job == "" {
			note(Evicted, pod, wouldEvict[pod], true, "stays", wouldEvict[pod].text)
		}
	}
	b.lasting = lasting
	if otherwise {
		b.found.Cycles.Otherwise++
	}
}

func (b *book) counter(kind string) *int64 {
	switch kind {
	case Elsewhere:
		return &b.found.Pods.Elsewhere
	case Later:
		return &b.found.Pods.Later
	case Sooner:
		return &b.found.Pods.Sooner
	case Evicted:
		return &b.found.Pods.Evicted
	}
	return &b.found.Pods.Spared
}

// show puts a difference first, and removes an older one of the same job and kind.
func (b *book) show(d v1alpha1.ShadowDifference, c *model.Cluster, job string) {
	b.found.Differences = slices.DeleteFunc(b.found.Differences, func(old v1alpha1.ShadowDifference) bool {
		t := c.Tasks[old.Pod]
		return old.Kind == d.Kind && (old.Pod == d.Pod || t != nil && t.Job.Key == job)
	})
	b.found.Differences = slices.Insert(b.found.Differences, 0, d)
	b.found.Differences = b.found.Differences[:min(len(b.found.Differences), mostDifferences)]
}

// because returns why a pod or its job waits in a plan; "": the plan contains no reason.
func because(plan *model.Plan, pod, job string) (why string) {
	for i := range plan.Waits {
		switch w := &plan.Waits[i]; {
		case w.Task == pod:
			return ": " + w.Why()
		case w.Task == "" && w.Job == job:
			why = ": " + w.Why()
		}
	}
	return why
}

// cut shortens a text.
func cut(text string) string {
	if r := []rune(text); len(r) > mostText {
		return fmt.Sprintf("%s…", string(r[:mostText-1]))
	}
	return text
}
