package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// Timeline contains the events of a run.
type Timeline struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Cycles is the number of cycles. It includes cycles without news, which have no plan in the report.
	Cycles int `json:"cycles"`
	// Stopped means that the run reached the maximum number of cycles before its end.
	Stopped bool `json:"stopped,omitempty"`
	// Pods, ordered by submission, then by name. A pod that was created again with the same name is listed twice.
	Pods []PodRun `json:"pods"`
	// Jobs, ordered by submission, then by name.
	Jobs []JobRun `json:"jobs"`
	// Use of the ready nodes' resources, in total and by queue; only in a run by the clock.
	Use []UseOverTime `json:"use,omitempty"`
}

// Outcomes of a PodRun.
const (
	OutcomeWaiting   = "Waiting"
	OutcomeRunning   = "Running"
	OutcomeSucceeded = "Succeeded"
	OutcomeFailed    = "Failed"
	OutcomeDeleted   = "Deleted"
	OutcomeEvicted   = "Evicted"
)

// PodRun is the life of one pod until the end of the run.
type PodRun struct {
	Pod string `json:"pod"`
	// Job it belongs to, and its queue; "" for pods of other schedulers.
	Job   string `json:"job,omitempty"`
	Queue string `json:"queue,omitempty"`
	// Node and GPUs of the pod, current or last.
	Node string `json:"node,omitempty"`
	GPUs string `json:"gpus,omitempty"`

	Submitted time.Time  `json:"submitted"`
	Bound     *time.Time `json:"bound,omitempty"`
	Ended     *time.Time `json:"ended,omitempty"`
	// Evicted is when its eviction began. EvictedFor is the preemptor, if any.
	Evicted    *time.Time `json:"evicted,omitempty"`
	EvictedFor string     `json:"evictedFor,omitempty"`
	// Outcome is Waiting, Running (or bound and not started yet), Succeeded, Failed, Evicted or Deleted.
	Outcome string `json:"outcome"`

	asks string  // its requests, as text
	size float64 // the largest fraction of any resource of the largest node that it requests
}

// JobRun is the life of one job: from its submission, through its first bound pod, to the end of its last pod.
type JobRun struct {
	Job       string     `json:"job"`
	Queue     string     `json:"queue"`
	Submitted time.Time  `json:"submitted"`
	Started   *time.Time `json:"started,omitempty"`
	Finished  *time.Time `json:"finished,omitempty"` // nil while any of its pods has not ended
	// Pods is the number of its pods, and Ended the number of those that have ended. Only the last of several pods with the same name counts.
	Pods  int `json:"pods"`
	Ended int `json:"ended"`
	// Evicted is the number of evictions of its pods.
	Evicted int `json:"evicted,omitempty"`
}

// history contains the lives of all pods that a world ever had.
type history struct {
	of  map[manifest.ID]*span // the existing pods
	all []*span
}

// span is a PodRun with the key and the title of its job.
type span struct {
	PodRun
	job   string
	title string // the title of the job, which may be deleted before its pods
	asked model.Resources
}

// remember records the state of a pod.
func (w *World) remember(p *corev1.Pod) {
	id := manifest.IDOf(p)
	s := w.history.of[id]
	if s == nil {
		s = &span{PodRun: PodRun{Pod: objectKey(p), Submitted: p.CreationTimestamp.Time, Outcome: OutcomeWaiting}}
		w.history.of[id] = s
		w.history.all = append(w.history.all, s)
	}
	if slices.Contains(w.schedulers, p.Spec.SchedulerName) {
		s.job = model.Key(p.Namespace, objects.GroupOf(p))
		if j := w.cluster.Jobs[s.job]; j != nil && !j.Orphan {
			s.title = j.Title
		}
		if g, ok := w.objects[manifest.ID{Kind: "PodGroup", Namespace: p.Namespace, Name: objects.GroupOf(p)}].(*schedulingv1beta1.PodGroup); ok {
			s.Queue = g.Spec.Queue
		}
	}
	if p.Spec.NodeName != "" && s.Bound == nil {
		s.Node, s.GPUs, s.Outcome = p.Spec.NodeName, p.Annotations[model.GPUsAnnotation], OutcomeRunning
		s.Bound = copied(boundAt(p, &w.now))
	}
	if phase := p.Status.Phase; s.Ended == nil && (phase == corev1.PodSucceeded || phase == corev1.PodFailed) {
		s.Outcome, s.Ended = string(phase), copied(&w.now)
		for i := range p.Status.ContainerStatuses {
			if t := p.Status.ContainerStatuses[i].State.Terminated; t != nil && !t.FinishedAt.IsZero() {
				s.Ended = copied(&t.FinishedAt.Time)
			}
		}
	}
}

// boundAt returns when a pod got its node: from its status if possible, else now.
func boundAt(p *corev1.Pod, now *time.Time) *time.Time {
	if at := scheduledAt(p); at != nil {
		return at
	}
	if start := p.Status.StartTime; start != nil && !start.IsZero() {
		return &start.Time
	}
	return now
}

// measured records a pod's requests, once the model contains the pod.
func (h *history) measured(p *corev1.Pod, c *model.Cluster) {
	s, t := h.of[manifest.IDOf(p)], c.Tasks[objectKey(p)]
	if s == nil || s.asked != nil || t == nil {
		return
	}
	s.asked = t.Request.Positive()
	s.asks = c.Dims.Text(s.asked)
	if t.GPUKind == "" && t.GPUCount > 0 && t.GPUMilli < model.WholeGPU {
		s.asks += fmt.Sprintf(", %d x %d/%d of a GPU", t.GPUCount, t.GPUMilli, model.WholeGPU)
	}
}

// largest returns, for each resource, the largest allocatable amount of any node.
func largest(c *model.Cluster) model.Resources {
	out := make(model.Resources, len(c.Nodes.Allocatable))
	for i, column := range c.Nodes.Allocatable {
		for _, v := range column {
			if v > out[i] { // NaN if the node has none
				out[i] = v
			}
		}
	}
	return out
}

// size returns the largest fraction of the largest nodes' resources that a pod requests.
func size(asked, of model.Resources) float64 {
	out := 0.0
	for i := range asked {
		if i != model.Pods && of.Get(i) > 0 {
			out = max(out, min(asked.Get(i)/of.Get(i), 1))
		}
	}
	return out
}

func copied(t *time.Time) *time.Time {
	at := *t
	return &at
}

// evicted records that the eviction of a pod began.
func (h *history) evicted(id manifest.ID, e *model.Evict, now time.Time) {
	if s := h.of[id]; s != nil {
		s.Evicted, s.EvictedFor = &now, e.For
	}
}

// forget records that a pod is gone.
func (h *history) forget(id manifest.ID, now time.Time) {
	s := h.of[id]
	if s == nil {
		return
	}
	delete(h.of, id)
	if s.Ended == nil {
		s.Outcome, s.Ended = OutcomeDeleted, &now
		if s.Evicted != nil {
			s.Outcome = OutcomeEvicted
		}
	}
}

// timeline returns the lives of all pods, and of the cluster's jobs that they belong to.
func (h *history) timeline(c *model.Cluster) Timeline {
	titles := explain.TitlesOf(c)
	var t Timeline
	jobs, last := map[string]*JobRun{}, map[string]*span{}
	for _, s := range h.all {
		last[s.Pod] = s
	}
	nodes := largest(c)
	for _, s := range h.all {
		run := s.PodRun
		run.size = size(s.asked, nodes)
		if s.job != "" {
			run.Job = titles.Of(s.job)
			if _, there := titles[s.job]; !there && s.title != "" {
				run.Job = s.title
			}
			j := jobs[s.job]
			if j == nil {
				j = &JobRun{Job: run.Job, Queue: run.Queue, Submitted: run.Submitted}
				jobs[s.job] = j
			}
			j.add(run, last[s.Pod] == s)
		}
		t.Pods = append(t.Pods, run)
	}
	for key, job := range c.Jobs {
		switch j := jobs[key]; {
		case job.Orphan:
		case j == nil && len(job.Expected) > 0: // its pods are created when it is admitted
			jobs[key] = &JobRun{Job: titles.Of(key), Queue: job.QueueName, Submitted: job.CreatedAt}
		case j != nil && job.CreatedAt.Before(j.Submitted):
			j.Submitted = job.CreatedAt
		}
	}
	for _, key := range sortedKeys(jobs) {
		j := jobs[key]
		if j.Ended < j.Pods {
			j.Finished = nil
		}
		t.Jobs = append(t.Jobs, *j)
	}
	slices.SortStableFunc(t.Pods, func(a, b PodRun) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), natural(a.Pod, b.Pod))
	})
	slices.SortStableFunc(t.Jobs, func(a, b JobRun) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), natural(a.Job, b.Job))
	})
	return t
}

// add counts a pod of the job. last is false if another pod with the same name came later.
func (j *JobRun) add(run PodRun, last bool) {
	if run.Evicted != nil {
		j.Evicted++
	}
	if last {
		j.Pods++
	}
	if run.Submitted.Before(j.Submitted) {
		j.Submitted = run.Submitted
	}
	if run.Bound != nil && (j.Started == nil || run.Bound.Before(*j.Started)) {
		j.Started = run.Bound
	}
	if run.Ended != nil && last {
		j.Ended++
		if j.Finished == nil || run.Ended.After(*j.Finished) {
			j.Finished = run.Ended
		}
	}
}

// natural orders names by number: a-2 before a-10.
func natural(a, b string) int {
	p, n, isNumbered := explain.Numbered(a)
	if !isNumbered {
		p, n = a, -1
	}
	q, m, isNumbered := explain.Numbered(b)
	if !isNumbered {
		q, m = b, -1
	}
	return cmp.Or(strings.Compare(p, q), cmp.Compare(n, m))
}
