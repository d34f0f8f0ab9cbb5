package sim

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// contradictions reports mistakes that no single object shows, such as references to objects that do not exist. Some mistakes can also
// occur in a live cluster, such as a PodGroup whose queue does not exist. They are at most warnings, because the plan states them as the
// reason why the job waits.
func (c *completion) contradictions() {
	foreign := map[string]int{}
	for _, i := range c.items {
		switch o := i.Object.(type) {
		case *corev1.Pod:
			c.podNames(i, o, foreign)
		case *batchv1alpha1.Job:
			c.foreignTasks(o, foreign)
			for _, issue := range c.knownClasses().Warnings(i, o, func(name string) string { return c.near("PriorityClass", name) }) {
				c.warn(issue)
			}
		case *schedulingv1beta1.PodGroup:
			if i.Value.Exists() {
				c.className(i, o.Spec.PriorityClassName, "spec", "priorityClassName")
			}
		case *schedulingv1beta1.Queue:
			c.parent(i, o)
		}
	}
	c.ignoredLives()
	for _, name := range sortedKeys(foreign) {
		c.warn(source.Issue{
			Message: fmt.Sprintf("%s pending for another scheduler, %q, which is not simulated", explain.Count(foreign[name], "pod"), name),
			Hint:    fmt.Sprintf("--scheduler-name %s makes it ours", name),
		})
	}
}

// ignoredLives warns about objects of a cluster with the annotation celsius.dev/sim, which is ignored.
func (c *completion) ignoredLives() {
	ignored := 0
	for _, i := range c.items {
		if i.Stored && !c.world.obeySim && hasLife(i.Object) {
			ignored++
		}
	}
	if ignored == 0 {
		return
	}
	c.warn(source.Issue{
		Message: fmt.Sprintf("the annotation %s of %s has no effect: it was read from a cluster",
			manifest.LifeAnnotation, explain.Count(ignored, "object")),
		Hint: "celsius simulate --obey-sim-annotations applies it",
	})
}

// hasLife reports whether an object is a pod with the annotation celsius.dev/sim, or a Job whose pods have it.
func hasLife(o metav1.Object) bool {
	switch o := o.(type) {
	case *corev1.Pod:
		return o.Annotations[manifest.LifeAnnotation] != ""
	case *batchv1alpha1.Job:
		return slices.ContainsFunc(o.Spec.Tasks, func(t batchv1alpha1.TaskSpec) bool {
			return t.Template.Annotations[manifest.LifeAnnotation] != ""
		})
	}
	return false
}

// mostLookedFor limits how many pods of a task foreignTasks searches in the input.
const mostLookedFor = 10_000

// foreignTasks counts the pods that a Job does not have yet and that will name another scheduler.
func (c *completion) foreignTasks(j *batchv1alpha1.Job, foreign map[string]int) {
	if !model.MakesPods(j.Status.State.Phase) {
		return
	}
	for t := range j.Spec.Tasks {
		task := &j.Spec.Tasks[t]
		name := cmp.Or(task.Template.Spec.SchedulerName, j.Spec.SchedulerName)
		if name == "" || slices.Contains(c.world.schedulers, name) {
			continue
		}
		missing := int(max(task.Replicas, 0))
		for n := range min(missing, mostLookedFor) {
			if c.find("Pod", j.Namespace, objects.PodName(j.Name, task.Name, n)) != nil {
				missing--
			}
		}
		if missing > 0 {
			foreign[name] += missing
		}
	}
}

func (c *completion) warn(i source.Issue) {
	i.Severity = source.Warning
	c.issues = append(c.issues, i)
}

// report adds a mistake in an object. For an object of a cluster it is a warning.
func (c *completion) report(o metav1.Object, i source.Issue) {
	if c.world.ofCluster.Has(o) {
		i.Severity = source.Warning
	}
	c.issues = append(c.issues, i)
}

func (c *completion) podNames(i manifest.Item, p *corev1.Pod, foreign map[string]int) {
	finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if node := p.Spec.NodeName; node != "" && !finished && c.find("Node", "", node) == nil {
		issue := nodePlace(i.Value).Issuef(c.near("Node", node), "%s is on node %q, which is not there", i.ID(), node)
		if c.world.ofCluster.Has(p) {
			issue.Message += ": it uses resources of no node"
		}
		c.report(p, issue)
	}
	if !c.ours(p) {
		if p.Spec.NodeName == "" && !finished {
			foreign[p.Spec.SchedulerName]++
		}
		return
	}
	c.className(i, p.Spec.PriorityClassName, "spec", "priorityClassName")
	if !finished {
		c.groupName(i, p)
	}
}

// groupName checks the PodGroup of a pod, and the queue of the PodGroup. A pod that the scheduler bound counts in the queue of its record.
func (c *completion) groupName(i manifest.Item, p *corev1.Pod) {
	place, name := manifest.Deepest(i.Value, "metadata", "annotations"), objects.GroupOf(p)
	bound, recorded := p.Spec.NodeName != "", p.Annotations[model.RecordAnnotation] != ""
	group, there := c.find("PodGroup", p.Namespace, name).(*schedulingv1beta1.PodGroup)
	switch {
	case !there && !bound:
		c.warn(place.Issuef("", "%s is of PodGroup %q, which is not there: it is not placed", i.ID(), name))
	case !there && recorded:
		c.warn(place.Issuef("", "%s is of PodGroup %q, which is not there: it uses resources of its node", i.ID(), name))
	case !there:
		c.warn(place.Issuef("", "%s is of PodGroup %q, which is not there: it uses resources of its node, and of no queue", i.ID(), name))
	case bound && !recorded && c.find("Queue", "", group.Spec.Queue) == nil:
		c.warn(place.Issuef(c.near("Queue", group.Spec.Queue),
			"%s is in queue %q, which is not there: it uses resources of its node, and of no queue", i.ID(), group.Spec.Queue))
	}
}

// nodePlace returns where an entry names its node: in full, or in the short format.
func nodePlace(v source.Value) source.Value {
	if short := v.Get("node"); short.Exists() {
		return short
	}
	return manifest.Deepest(v, "spec", "nodeName")
}

func (c *completion) className(i manifest.Item, name string, path ...any) {
	if _, ok := c.classValue(name); ok {
		return
	}
	place := manifest.Deepest(i.Value, path...)
	if short := i.Value.Get("priority"); short.Exists() {
		place = short
	}
	c.warn(place.Issuef(c.near("PriorityClass", name), "%s is of PriorityClass %q, which is not there: it counts as none", i.ID(), name))
}

// parent checks that a queue's chain of parents ends at a queue without a parent. A cluster may contain queues with other chains; they only
// take no part in a quota tree.
func (c *completion) parent(i manifest.Item, q *schedulingv1beta1.Queue) {
	place := i.Value.Get("parent")
	if !place.Exists() {
		place = manifest.Deepest(i.Value, "spec", "parent")
	}
	seen := map[string]bool{q.Name: true}
	for at := q; at.Spec.Parent != ""; {
		if seen[at.Spec.Parent] {
			c.warn(place.Issuef("", "%s is, over its parents, its own parent", i.ID()))
			return
		}
		seen[at.Spec.Parent] = true
		next, ok := c.find("Queue", "", at.Spec.Parent).(*schedulingv1beta1.Queue)
		if !ok {
			if at == q {
				c.warn(place.Issuef(c.near("Queue", q.Spec.Parent), "%s has the parent %q, which is not there", i.ID(), q.Spec.Parent))
			}
			return
		}
		at = next
	}
}

// near returns a hint with the nearest name of an object of this type, or "".
func (c *completion) near(kindName, name string) string {
	return c.hints.DidYouMean(kindName, name, func() (names []string) {
		for id := range c.byID {
			if id.Kind == kindName {
				names = append(names, id.Name)
			}
		}
		for id := range c.world.objects {
			if id.Kind == kindName {
				names = append(names, id.Name)
			}
		}
		slices.Sort(names)
		return names
	})
}
