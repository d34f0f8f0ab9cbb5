package conformance

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// volcanosName is the scheduler of pods that name none, and the default of the served scheduler.
const volcanosName = "volcano"

// cluster creates the model from a case's objects.
func (c *Case) cluster() (*model.Cluster, error) {
	served := c.Config.ServerOptions.SchedulerNames
	if len(served) == 0 {
		served = []string{volcanosName}
	}
	var deltas []model.Delta
	add := func(object any) { deltas = append(deltas, model.Delta{Op: model.Upsert, Object: object}) }
	for _, o := range c.Input.PriorityClasses {
		add(o)
	}
	c.addStorage(add)
	for _, o := range c.Input.Queues {
		add(o)
	}
	for _, o := range c.Input.Nodes {
		add(o)
	}
	c.addMeasures(add)
	for _, o := range c.Input.ResourceQuotas {
		add(o)
	}
	for _, o := range c.Input.PodGroups {
		add(o)
	}
	for _, o := range c.Input.Pods {
		pod := o.DeepCopy()
		if pod.Spec.SchedulerName == "" {
			pod.Spec.SchedulerName = served[0]
		}
		add(pod)
	}
	state := model.NewCluster(model.Options{SchedulerNames: served, Volumes: volume.New})
	if err := errors.Join(state.Apply(deltas...)...); err != nil {
		return nil, fmt.Errorf("objects of the case: %w", err)
	}
	return state, nil
}

// addMeasures adds the measured load of nodes, with the age that it had when the case ran.
func (c *Case) addMeasures(add func(object any)) {
	now, _ := c.clock()
	for _, o := range c.Input.Nodes {
		use, ok := c.Observed.NodeUsage[o.Name]
		if !ok || use.MetricsTime.IsZero() {
			continue
		}
		x := &metricsv1beta1.NodeMetrics{Usage: corev1.ResourceList{}}
		x.Name, x.Timestamp = o.Name, metav1.NewTime(c.Origin.RecordedAt.Add(use.MetricsTime.Sub(now)))
		for name, percents := range map[corev1.ResourceName]map[string]float64{corev1.ResourceCPU: use.CPU, corev1.ResourceMemory: use.Mem} {
			for _, percent := range percents {
				whole := o.Status.Capacity[name]
				x.Usage[name] = *resource.NewMilliQuantity(int64(math.Round(percent/100*float64(whole.MilliValue()))), whole.Format)
			}
		}
		add(x)
	}
}

const (
	// useLasts is how long Volcano uses a sample of a node's load.
	useLasts = 5 * time.Minute
	// runLasts is longer than the tests of one package can have run before one of its cases was recorded.
	runLasts = time.Hour
)

// setClocks sets when the package of each case was run. Samples of load are created when the tests of a package start, and the cases are
// recorded minutes later. So the newest sample of a package shows the start. A sample that is older than runLasts shows nothing.
func setClocks(cases []*Case) {
	started := map[string]time.Time{}
	for _, c := range cases {
		for _, use := range c.Observed.NodeUsage {
			if c.Origin.RecordedAt.Sub(use.MetricsTime) < runLasts && use.MetricsTime.After(started[c.Origin.Package]) {
				started[c.Origin.Package] = use.MetricsTime
			}
		}
	}
	for _, c := range cases {
		c.started = started[c.Origin.Package]
	}
}

// clock returns the time from which the ages of a case's samples count, and what was assumed for it. It is the time of the recording,
// unless all samples of the package would have been too old by then.
func (c *Case) clock() (now time.Time, assumed string) {
	used := slices.Collect(maps.Values(c.Observed.NodeUsage))
	sampled := slices.ContainsFunc(used, func(u NodeUsage) bool { return !u.MetricsTime.IsZero() })
	late := c.Origin.RecordedAt.Sub(c.started)
	if !sampled || c.started.IsZero() || late <= useLasts {
		return c.Origin.RecordedAt, ""
	}
	return c.started, fmt.Sprintf("samples of use are as old as they were when the newest of the package was made, %s before the record",
		late.Round(time.Second))
}

// addStorage adds the storage objects of the case. It ignores Volcano's list of provisioners whose claims are skipped, because no recorded
// outcome depends on it.
func (c *Case) addStorage(add func(object any)) {
	for _, o := range c.Input.StorageClasses {
		add(o)
	}
	for _, o := range c.Input.PersistentVolumes {
		add(o)
	}
	for _, o := range c.Input.PersistentVolumeClaims {
		add(o)
	}
}

// Outcome contains the decisions here, in the form of the recordings.
type Outcome struct {
	Binds     map[string]string // pod -> node
	Pipelined map[string]string // pod -> node
	Evicts    []string
	Phases    map[string]string                       // PodGroup -> phase
	Tasks     map[string]map[string]map[string]string // PodGroup -> status -> pod -> node
	Idle      map[string]model.Resources              // node -> idle resources
}

// outcome reads the plan and the model after the cycle, in which bound tasks are Binding.
func (c *Case) outcome(state *model.Cluster, plan *model.Plan) *Outcome {
	o := &Outcome{
		Binds: map[string]string{}, Pipelined: map[string]string{}, Evicts: []string{},
		Tasks: map[string]map[string]map[string]string{}, Idle: map[string]model.Resources{},
	}
	for _, b := range plan.Binds {
		o.Binds[b.Task] = b.Node
	}
	held := map[string]string{}
	for _, b := range plan.Holds {
		held[b.Task] = b.Node
	}
	for _, b := range plan.Pipelines {
		o.Pipelined[b.Task] = b.Node
	}
	for _, e := range plan.Evicts {
		o.Evicts = append(o.Evicts, e.Task)
	}
	o.phases(c, plan)
	for _, j := range state.Jobs {
		if j.Orphan {
			continue
		}
		byStatus := map[string]map[string]string{}
		for _, t := range j.Tasks {
			status, node := t.Status.String(), nodeOf(state, t)
			if n, ok := held[t.Key]; ok {
				status, node = model.Allocated.String(), n
			}
			if n, ok := o.Pipelined[t.Key]; ok {
				status, node = model.Pipelined.String(), n
			}
			if byStatus[status] == nil {
				byStatus[status] = map[string]string{}
			}
			byStatus[status][t.Key] = node
		}
		o.Tasks[j.Key] = byStatus
	}
	for name, row := range state.Nodes.Index {
		if !slices.Contains(slices.Collect(maps.Values(held)), name) {
			o.Idle[name] = state.Nodes.IdleOf(row)
		}
	}
	return o
}

func (o *Outcome) phases(c *Case, plan *model.Plan) {
	o.Phases = c.phasesBefore()
	for _, a := range plan.Admits {
		o.Phases[a.Job] = string(v1beta1.PodGroupInqueue)
	}
	if !c.AfterClose() {
		return
	}
	for _, j := range plan.Jobs {
		if _, ok := o.Phases[j.Job]; ok {
			o.Phases[j.Job] = phaseOr(j.Phase)
		}
	}
}

// phasesBefore returns the phase of each PodGroup before the cycle.
func (c *Case) phasesBefore() map[string]string {
	out := map[string]string{}
	for _, g := range c.Input.PodGroups {
		out[model.Key(g.Namespace, g.Name)] = phaseOr(string(g.Status.Phase))
	}
	return out
}

// phaseOr returns the phase, or Pending if it is empty.
func phaseOr(phase string) string {
	if phase == "" {
		return string(v1beta1.PodGroupPending)
	}
	return phase
}

func nodeOf(state *model.Cluster, t *model.Task) string {
	if t.Node == model.NoNode {
		return ""
	}
	return state.Nodes.Rows[t.Node].Name
}
