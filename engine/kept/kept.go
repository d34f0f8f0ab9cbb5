// Package kept keeps resources for jobs that were just admitted and whose pods do not exist yet. The resources are kept during one cycle.
package kept

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Places are the resources that a step keeps: a job that comes later in the step's order gets nothing that earlier jobs need. The request
// of a pod is known before the pod exists, but not the nodes that reject it.
type Places struct {
	c           *model.Cluster
	now         time.Time
	allocatable func(*model.Task) bool // the gate of that name; nil: the step does not have it
	shapes      []shape
	room        model.Resources              // the sum of what the nodes have or will have idle, minus what is kept
	queues      map[*model.Queue]*model.Task // what is kept in a queue, as the request of a single task
}

// shape describes pods with equal requests, of jobs for which resources are kept.
type shape struct {
	of    *model.Job // the first of these jobs
	size  model.Resources
	slots int64 // number of such pods that fit on the nodes
	kept  int64 // number of such pods for which resources are kept
}

// alike is a number of pods of one job with equal requests.
type alike struct {
	size  model.Resources
	count int64
}

// patience is how long a job is held back by places that are kept for jobs of other namespaces. Without a limit, a tenant could hold the
// cluster with PodGroups that it deletes as soon as they are admitted.
const patience = 30 * time.Second

// patientUntil returns the time from which places that are kept for jobs of other namespaces do not hold back a job.
func patientUntil(j *model.Job) time.Time {
	if j.AdmittedAt.IsZero() {
		return j.CreatedAt.Add(patience)
	}
	return j.AdmittedAt.Add(patience)
}

// NextTry returns when a job gets the places that are kept for first, although nothing else changes. The zero time: there is no such
// moment, because places that are kept for a job of the same namespace stay kept.
func NextTry(j, first *model.Job) (at time.Time) {
	if first.Namespace == j.Namespace {
		return at
	}
	return patientUntil(j)
}

// LacksLeftOut reports whether the pods that a job lacks exist but are left out, because the scheduler cannot read them. A place for such a
// pod, or for a gang that is too small without it, would remain empty.
func LacksLeftOut(c *model.Cluster, j *model.Job) bool {
	out := int64(len(slices.DeleteFunc(c.Past.Unread.PodsOf(j.Key), func(pod string) bool { return c.Tasks[pod] != nil })))
	if out == 0 {
		return false
	}
	missing := -out
	for _, count := range c.Missing(j) {
		missing += count
	}
	return missing <= 0 || j.Valid()+missing < j.MinMember
}

// New returns Places without any kept resources.
func New(c *model.Cluster, now time.Time, allocatable func(*model.Task) bool) *Places {
	k := &Places{c: c, now: now, allocatable: allocatable, queues: map[*model.Queue]*model.Task{}}
	k.room = k.roomLeft()
	return k
}

// Clone returns a copy, to which a caller can go back.
func (k *Places) Clone() *Places {
	if k == nil {
		return nil
	}
	own := *k
	own.shapes, own.room = slices.Clone(k.shapes), k.room.Clone()
	return &own
}

// Keep keeps resources for a job that is awaited and just had its turn. It keeps them for the least pods without which the job cannot
// start, if there are enough for all of these pods. It also keeps them for as many other pods as possible.
func (k *Places) Keep(j *model.Job, least int64) {
	must, others := divided(k.placeless(j, least > 0), least)
	if least > 0 && !k.keep(j, must...) {
		return
	}
	for _, p := range others {
		s := k.shapeOf(p.size)
		most := min(p.count, s.slots-s.kept)
		p.count = int64(sort.Search(int(most), func(n int) bool {
			_, ok := k.mayKeep(j, alike{p.size, int64(n) + 1})
			return !ok
		}))
		if p.count > 0 {
			k.keep(j, p)
		}
	}
}

// placeless returns the pods of a job that do not exist yet. If there is true, it also returns the pending pods, before the others.
func (k *Places) placeless(j *model.Job, there bool) (out []alike) {
	add := func(size model.Resources, count int64) {
		i := slices.IndexFunc(out, func(p alike) bool { return p.size.Equal(size) })
		if i < 0 {
			out, i = append(out, alike{size: size}), len(out)
		}
		out[i].count += count
	}
	for _, t := range j.Tasks {
		if there && t.Status == model.Pending && !t.Gated {
			add(t.Request, 1)
		}
	}
	for wanted, count := range k.c.Missing(j) {
		add(wanted.Request, count)
	}
	return out
}

// divided returns the first least pods, none if there are fewer, and the others.
func divided(pods []alike, least int64) (must, others []alike) {
	for _, p := range pods {
		n := max(min(p.count, least), 0)
		least -= n
		if n > 0 {
			must = append(must, alike{p.size, n})
		}
		if n < p.count {
			others = append(others, alike{p.size, p.count - n})
		}
	}
	if least > 0 {
		return nil, nil
	}
	return must, others
}

// keep keeps resources for pods of a job, if there are enough for all of them.
func (k *Places) keep(j *model.Job, pods ...alike) bool {
	asks, ok := k.mayKeep(j, pods...)
	if !ok {
		return false
	}
	if asks != nil {
		k.queues[j.Queue] = asks
	}
	for _, p := range pods {
		s := k.shapeOf(p.size)
		if s.kept == 0 {
			s.of = j
		}
		s.kept += p.count
		k.room.AddIn(p.size.Scale(float64(p.count)), -1)
	}
	return true
}

// mayKeep reports whether there are enough resources for some pods of a job in addition to what is kept. asks is the total request to its
// queue; nil: the queue is not evaluated.
func (k *Places) mayKeep(j *model.Job, pods ...alike) (asks *model.Task, ok bool) {
	var all model.Resources
	for _, p := range pods {
		if s := k.shapeOf(p.size); s.slots-s.kept < p.count {
			return nil, false
		}
		all = all.Add(p.size.Scale(float64(p.count)))
	}
	if len(pods) == 0 || !all.Fits(k.room) {
		return nil, false
	}
	if k.allocatable == nil {
		return nil, true
	}
	if before := k.queues[j.Queue]; before != nil {
		all = all.Add(before.Request)
	}
	asks = &model.Task{Job: j, Request: all, Template: &model.Template{}}
	if k.allocatable(asks) {
		return asks, true
	}
	return nil, j.AdmittedNow // the deserved share of its queue was computed before the admission
}

func (k *Places) shapeOf(size model.Resources) *shape {
	i := slices.IndexFunc(k.shapes, func(s shape) bool { return s.size.Equal(size) })
	if i < 0 {
		i = len(k.shapes)
		k.shapes = append(k.shapes, shape{size: size})
		for _, row := range k.c.Nodes.ByOrder() {
			k.shapes[i].slots += k.slots(row, size, nil)
		}
	}
	return &k.shapes[i]
}

// roomLeft returns what all nodes that accept pods have or will have idle.
func (k *Places) roomLeft() (sum model.Resources) {
	for _, row := range k.c.Nodes.ByOrder() {
		for i := range k.c.Dims.Len() {
			if k.takes(row) {
				sum.Set(i, sum.Get(i)+max(k.c.Nodes.FutureIdle(i, row), 0))
			}
		}
	}
	return sum
}

func (k *Places) takes(row int32) bool {
	n := k.c.Nodes.Rows[row]
	return n.Ready && !n.Unschedulable
}

// mostSlots is the maximum number of pods on one node.
const mostSlots = 1 << 20

// slots returns how many pods of a size fit on a node in addition to the other request.
func (k *Places) slots(row int32, size, beside model.Resources) int64 {
	if !k.takes(row) {
		return 0
	}
	most := float64(mostSlots)
	for i, each := range size {
		if each > 0 {
			most = min(most, math.Floor((k.c.Nodes.FutureIdle(i, row)-beside.Get(i)+model.Slack)/each))
		}
	}
	return int64(max(most, 0))
}

// Take gives a task the place that was found for it on a node, unless the place is kept for another job. Then it returns that job; nil: the
// task has the place. A job that has waited long enough also gets places that are kept for jobs of other namespaces.
func (k *Places) Take(t *model.Task, row int32) *model.Job {
	if k == nil || len(k.shapes) == 0 {
		return nil
	}
	if first := k.holder(t, row); first != nil && (first.Namespace == t.Job.Namespace || k.now.Before(patientUntil(t.Job))) {
		return first
	}
	for i := range k.shapes {
		s := &k.shapes[i]
		s.slots -= k.lost(t, row, s)
		s.kept = min(s.kept, max(s.slots, 0))
	}
	k.room.AddIn(t.Request, -1)
	return nil
}

// lost returns how many places of a shape a task takes on a node.
func (k *Places) lost(t *model.Task, row int32, s *shape) int64 {
	return k.slots(row, s.size, nil) - k.slots(row, s.size, t.Request)
}

// holder returns the job for which the place of a task on a node is kept; nil: there is none.
func (k *Places) holder(t *model.Task, row int32) *model.Job {
	for i := range k.shapes {
		if s := &k.shapes[i]; s.kept > 0 && s.slots-k.lost(t, row, s) < s.kept {
			return s.of
		}
	}
	if !t.Request.Fits(k.room) {
		for _, s := range k.shapes {
			if s.kept > 0 {
				return s.of
			}
		}
		return nil
	}
	if asks := k.queues[t.Job.Queue]; asks != nil {
		both := asks.Request.Add(t.Request)
		if !k.allocatable(&model.Task{Job: asks.Job, Request: both, Template: asks.Template}) {
			return asks.Job
		}
	}
	return nil
}
