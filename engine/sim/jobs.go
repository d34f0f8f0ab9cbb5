package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// submitted applies admission to a Job, and adds the PodGroup that its controller creates first. Its pods are created after the PodGroup is
// admitted.
func (c *completion) submitted(i manifest.Item, j *batchv1alpha1.Job) {
	objects.Default(j)
	if j.UID == "" {
		c.warnPodSecurity(i, j.Namespace)
		j.UID = types.UID(j.Name) // a part of a name, so it must not contain a slash
	}
	c.born(j)
	if !model.MakesPods(j.Status.State.Phase) {
		c.world.ofCluster.ReadRefusal(j)
		return
	}
	plugins := c.plugins(j, i.Value)
	if c.world.ofCluster.Refused[i.ID()] != "" {
		return
	}
	if c.groupOf(j) == nil {
		c.addGroup(i, j)
	}
	c.world.ofCluster.ReadRefusal(j)
	for t := range j.Spec.Tasks {
		if task := &j.Spec.Tasks[t]; task.Replicas > 0 {
			if pod := c.jobPod(j, objects.PodPlan{Task: task, Plugins: plugins}, i.Value); pod != nil {
				c.samples = append(c.samples, manifest.Item{Kind: "Pod", Object: pod, Value: i.Value})
			}
		}
	}
}

// plugins returns the compiled plugins of a Job. It reports mistakes at the Job.
func (c *completion) plugins(j *batchv1alpha1.Job, at source.Value) *jobplugin.Run {
	set, issues := c.world.plugins.set, source.Issues(nil)
	if set == nil {
		if set, issues = jobplugin.Default(); set == nil {
			c.issues = append(c.issues, issues...)
			return nil
		}
	}
	run, err := set.For(j)
	delete(c.world.ofCluster.Refused, manifest.IDOf(j))
	if err != nil {
		if c.world.ofCluster.Has(j) {
			c.world.ofCluster.Refused[manifest.IDOf(j)] = err.Error()
		}
		if plugins := at.Get("spec").Get("plugins"); plugins.Exists() {
			at = plugins
		}
		hint := ""
		for name := range j.Spec.Plugins {
			if set.Plugin(name) == nil {
				hint = "a JobPlugin among the files adds one"
			}
		}
		c.report(j, at.Issuef(hint, "job %s/%s: %v", j.Namespace, j.Name, err))
	}
	return run
}

// addGroup adds the PodGroup of a Job.
func (c *completion) addGroup(i manifest.Item, j *batchv1alpha1.Job) {
	g := objects.PodGroup(j, c.dependents(j), c.priorityOf)
	g.CreationTimestamp = j.CreationTimestamp
	c.add(manifest.Item{Kind: "PodGroup", Object: g, Value: i.Value})
}

func (c *completion) priorityOf(class string) int32 {
	value, _ := c.classValue(class)
	return value
}

// dependents returns the tasks of a Job that depend on others.
func (c *completion) dependents(j *batchv1alpha1.Job) objects.Dependents {
	return objects.DependentTasks(j, keeper{c.world, j}.pods())
}

// groupOf returns the PodGroup of a Job, or nil. Older versions gave it the name of the Job.
func (c *completion) groupOf(j *batchv1alpha1.Job) *schedulingv1beta1.PodGroup {
	for _, name := range []string{objects.GroupName(j), j.Name} {
		if g, ok := c.find("PodGroup", j.Namespace, name).(*schedulingv1beta1.PodGroup); ok {
			return g
		}
	}
	return nil
}

// jobPod creates one pod of a Job. It returns nil if it cannot, and reports the reason at the Job.
func (c *completion) jobPod(j *batchv1alpha1.Job, plan objects.PodPlan, at source.Value) *corev1.Pod {
	plan.SchedulerName = c.world.schedulers[0]
	p, err := objects.Pod(j, plan)
	if err != nil {
		c.report(j, at.Issuef("", "job %s/%s: %v", j.Namespace, j.Name, err))
		return nil
	}
	p.CreationTimestamp = metav1.NewTime(c.world.now)
	return p
}

// controllers does the work of the Job controllers: it creates the pods of admitted Jobs, and evicted pods after they are gone. It reports
// whether it created any.
func (w *World) controllers() (made bool, err error) {
	c := newCompletion(w, nil)
	for _, id := range slices.SortedFunc(maps.Keys(w.unmade), manifest.CompareIDs) {
		j, err := keeper{w, w.objects[id].(*batchv1alpha1.Job)}.settle()
		if err != nil {
			return false, err
		}
		g := c.groupOf(j)
		switch {
		case keeper{w, j}.waits():
		case c.refusedAsStored(id) != "": // its controller creates nothing
		case !model.MakesPods(j.Status.State.Phase):
			delete(w.unmade, id)
		case g == nil: // it was deleted when the Job ended all its pods
			c.addGroup(manifest.Item{Kind: "Job", Object: j}, j)
		case objects.Admitted(g):
			dependents := c.dependents(j)
			if next := g.DeepCopy(); len(dependents) > 0 && objects.FillPodGroup(next, j, dependents, c.priorityOf) {
				c.add(manifest.Item{Kind: "PodGroup", Object: next})
			}
			if !c.lacking(j, g, dependents) {
				delete(w.unmade, id)
			}
		}
	}
	c.shortFormat()
	if len(c.items) == 0 {
		return false, nil
	}
	items, issues := c.run()
	return true, append(issues, w.take(items, nil)...).Err()
}

// lacking adds the missing pods of a Job, except those of tasks that wait for other tasks. It reports whether more must be created later:
// some evicted pods still exist, or dependent tasks have not started.
func (c *completion) lacking(j *batchv1alpha1.Job, g *schedulingv1beta1.PodGroup, dependents objects.Dependents) (later bool) {
	job := manifest.IDOf(j)
	all := c.world.unmade[job]
	delete(c.world.refusals, job)
	plugins := c.plugins(j, source.Value{})
	for t := range j.Spec.Tasks {
		task := &j.Spec.Tasks[t]
		depends, known := dependents[task.Name]
		later = later || known && !depends.Started
		if depends.Waits != "" {
			continue
		}
		if c.knownClasses().Missing(j, task) != "" { // the API server refuses the pods
			exists := func(pod string) bool { return c.find("Pod", j.Namespace, pod) != nil }
			c.world.refusals[job], later = cmp.Or(c.world.refusals[job], c.knownClasses().Refused(j, exists)), true
			continue
		}
		for n := range int(task.Replicas) {
			id := manifest.ID{Kind: "Pod", Namespace: j.Namespace, Name: objects.PodName(j.Name, task.Name, n)}
			switch again := c.world.again[id]; {
			case c.find("Pod", id.Namespace, id.Name) != nil:
				later = later || again
			case all || again:
				plan := objects.PodPlan{Task: task, Index: n, Group: g.Name, Plugins: plugins}
				if !c.create(j, plan, id) {
					later = true
				}
			}
		}
	}
	return later
}

// create adds a pod that a Job lacks. It returns false if the API server refuses the pod: the controller tries again later.
func (c *completion) create(j *batchv1alpha1.Job, plan objects.PodPlan, id manifest.ID) bool {
	pod := c.jobPod(j, plan, source.Value{})
	if pod != nil {
		if c.isRefused(pod, manifest.IDOf(j), func() objects.Demand { return c.jobDemand(j) }) {
			return false
		}
		c.add(manifest.Item{Kind: "Pod", Object: pod})
	}
	delete(c.world.again, id)
	return true
}

// refusedAsStored returns why the controllers create nothing for a Job of a cluster. It returns "" if the world checks the cause itself,
// because its files contain the objects that refuse the pods. These objects may differ from those of the cluster.
func (c *completion) refusedAsStored(id manifest.ID) string {
	why := c.world.ofCluster.Refused[id]
	switch object, rest, _ := strings.Cut(why, " "); {
	case object == "PriorityClass" && len(c.knownClasses()) > 0:
		return ""
	case object == "ResourceQuota":
		if name, _, _ := strings.Cut(rest, " "); c.find("ResourceQuota", id.Namespace, name) != nil {
			return ""
		}
	case strings.HasPrefix(rest, "LimitRange of the namespace") && len(c.restrictions(id.Namespace).Ranges) > 0:
		return ""
	}
	return why
}

// controllersCause states what the controllers would report about a Job that has no pods, or whose pods do not run. "" means nothing.
func controllersCause(w *World, job string) string {
	namespace, name, _ := strings.Cut(job, "/")
	id := manifest.ID{Kind: "Job", Namespace: namespace, Name: name}
	j, ok := w.objects[id].(*batchv1alpha1.Job)
	if !ok {
		id.Kind = "PodGroup"
		return w.refusals[id]
	}
	c := newCompletion(w, nil)
	if !model.MakesPods(j.Status.State.Phase) {
		return cmp.Or(w.ofCluster.Refused[id], j.Status.State.Message)
	}
	if why := cmp.Or(c.refusedAsStored(id), w.refusals[id]); why != "" {
		return why
	}
	pods := keeper{w, j}.pods()
	exists := func(pod string) bool {
		return w.objects[manifest.ID{Kind: "Pod", Namespace: namespace, Name: pod}] != nil
	}
	if why := c.knownClasses().Refused(j, exists); why != "" {
		return why
	}
	stuck := objects.StuckContainer(w.asReported(pods))
	if stuck == "" {
		return ""
	}
	waiting := objects.DependentTasks(j, pods).Waiting()
	if waiting == "" && runningPods(pods) >= j.Spec.MinAvailable {
		return ""
	}
	return strings.TrimSuffix(stuck.Before(waiting), "; ")
}

// asReported returns pods as kubelets would report them. If the annotation celsius.dev/sim of a pod on a node states why it waits, the pod
// gets a container that waits for this reason.
func (w *World) asReported(pods []*corev1.Pod) []*corev1.Pod {
	out := slices.Clone(pods)
	for i, p := range out {
		life := w.lifeOf(p)
		if life.Waiting == "" || p.Spec.NodeName == "" || len(p.Status.ContainerStatuses) > 0 || len(p.Spec.Containers) == 0 {
			continue
		}
		reported := p.DeepCopy()
		reported.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: p.Spec.Containers[0].Name, Image: p.Spec.Containers[0].Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: life.Waiting}},
		}}
		out[i] = reported
	}
	return out
}

// RefusedPods states why a job lacks pods: the API server refuses them.
type RefusedPods struct {
	Job   string `json:"job"`
	Queue string `json:"queue"`
	Cause string `json:"cause"`
}

// refusedPods returns the jobs whose pods the API server refuses, in order.
func (w *World) refusedPods() (out []RefusedPods) {
	causes, c := maps.Clone(w.refusals), newCompletion(w, nil)
	for id := range w.ofCluster.Refused {
		if j, ok := w.objects[id].(*batchv1alpha1.Job); !ok || !model.MakesPods(j.Status.State.Phase) {
			continue
		}
		if why := c.refusedAsStored(id); why != "" {
			causes[id] = why
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(causes), manifest.CompareIDs) {
		refused := RefusedPods{Job: model.Key(id.Namespace, id.Name), Cause: causes[id]}
		g, _ := w.objects[id].(*schedulingv1beta1.PodGroup)
		if j, ok := w.objects[id].(*batchv1alpha1.Job); ok {
			refused.Queue, g = j.Spec.Queue, c.groupOf(j)
		}
		if g != nil {
			refused.Queue = g.Spec.Queue
		}
		out = append(out, refused)
	}
	return out
}

// runningPods counts the pods that run or have succeeded.
func runningPods(pods []*corev1.Pod) (n int32) {
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodSucceeded {
			n++
		}
	}
	return n
}

// noteMade records which new Jobs need pods, and how short-format pods were written that may be created again.
func (w *World) noteMade(items []manifest.Item) {
	for _, i := range items {
		switch o := i.Object.(type) {
		case *batchv1alpha1.Job:
			if model.MakesPods(o.Status.State.Phase) {
				w.unmade[manifest.IDOf(o)] = true
			}
		case *corev1.Pod:
			if i.OfJob {
				w.written[manifest.IDOf(o)] = o
			}
		}
	}
}
