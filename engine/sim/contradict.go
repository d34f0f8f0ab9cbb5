package sim

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// contradictions reports what no single object shows: names that lead nowhere.
// What a live cluster can hold as well (a PodGroup whose queue is not there) is a
// warning at most; the plan gives it as the reason of a wait.
func (c *completion) contradictions() {
	foreign := map[string]int{}
	for _, i := range c.items {
		switch o := i.object.(type) {
		case *corev1.Pod:
			c.podNames(i, o, foreign)
		case *schedulingv1beta1.PodGroup:
			if i.value.Exists() {
				c.className(i, o.Spec.PriorityClassName, "spec", "priorityClassName")
			}
		case *schedulingv1beta1.Queue:
			c.parent(i, o)
		}
	}
	for _, name := range sortedKeys(foreign) {
		c.warn(source.Issue{
			Message: fmt.Sprintf("%s pending for another scheduler, %q, which is not simulated", count(foreign[name], "pod"), name),
			Hint:    fmt.Sprintf("--scheduler-name %s makes it ours", name),
		})
	}
}

func (c *completion) warn(i source.Issue) {
	i.Severity = source.Warning
	c.issues = append(c.issues, i)
}

func (c *completion) podNames(i item, p *corev1.Pod, foreign map[string]int) {
	finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if node := p.Spec.NodeName; node != "" && !finished && c.find("Node", "", node) == nil {
		c.issues = append(c.issues, nodePlace(i.value).Issuef(c.near("Node", node), "%s is on node %q, which is not there", i.id(), node))
	}
	if !c.ours(p) {
		if p.Spec.NodeName == "" && !finished {
			foreign[p.Spec.SchedulerName]++
		}
		return
	}
	c.className(i, p.Spec.PriorityClassName, "spec", "priorityClassName")
	if group := objects.GroupOf(p); c.find("PodGroup", p.Namespace, group) == nil {
		c.warn(deepest(i.value, "metadata", "annotations").Issuef("", "%s is of PodGroup %q, which is not there: it is not placed",
			i.id(), group))
	}
}

// nodePlace is where an entry says its node: written out, or in the short format.
func nodePlace(v source.Value) source.Value {
	if short := v.Get("node"); short.Exists() {
		return short
	}
	return deepest(v, "spec", "nodeName")
}

func (c *completion) className(i item, name string, path ...any) {
	if _, ok := c.classValue(name); ok {
		return
	}
	place := deepest(i.value, path...)
	if short := i.value.Get("priority"); short.Exists() {
		place = short
	}
	c.warn(place.Issuef(c.near("PriorityClass", name), "%s is of PriorityClass %q, which is not there: it counts as none", i.id(), name))
}

// parent checks a queue's way up: it ends at a queue without a parent. A cluster may hold others, of which
// nothing comes but that they take no part in a tree of quotas.
func (c *completion) parent(i item, q *schedulingv1beta1.Queue) {
	place := i.value.Get("parent")
	if !place.Exists() {
		place = deepest(i.value, "spec", "parent")
	}
	seen := map[string]bool{q.Name: true}
	for at := q; at.Spec.Parent != ""; {
		if seen[at.Spec.Parent] {
			c.warn(place.Issuef("", "%s is, over its parents, its own parent", i.id()))
			return
		}
		seen[at.Spec.Parent] = true
		next, ok := c.find("Queue", "", at.Spec.Parent).(*schedulingv1beta1.Queue)
		if !ok {
			if at == q {
				c.warn(place.Issuef(c.near("Queue", q.Spec.Parent), "%s has the parent %q, which is not there", i.id(), q.Spec.Parent))
			}
			return
		}
		at = next
	}
}

// near is a hint that names the nearest object of a kind, or "".
func (c *completion) near(kindName, name string) string {
	var names []string
	for id := range c.byID {
		if id.kind == kindName {
			names = append(names, id.name)
		}
	}
	for id := range c.world.objects {
		if id.kind == kindName {
			names = append(names, id.name)
		}
	}
	if near := nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return ""
}

// blame finds the place of an issue that the model has with an object: field is a
// path such as metadata.annotations[celsius.dev/gpu-milli].
// whole is false where only a part of it is there.
func blame(v source.Value, field string) (place source.Value, whole bool) {
	var path []any
	for field != "" {
		var step string
		if rest, ok := strings.CutPrefix(field, "["); ok {
			step, field, _ = strings.Cut(rest, "]")
		} else {
			end := strings.IndexAny(field, ".[")
			if end < 0 {
				end = len(field)
			}
			step, field = field[:end], field[end:]
		}
		field = strings.TrimPrefix(field, ".")
		var index int
		if _, err := fmt.Sscanf(step, "%d", &index); err == nil && fmt.Sprint(index) == step {
			path = append(path, index)
			continue
		}
		path = append(path, step)
	}
	return deepest(v, path...), at(v, path...).Exists()
}
