package report

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Causes states why jobs wait in words that name the remedy. Explanations and the conditions of PodGroups share these words.
type Causes struct {
	Cluster *model.Cluster
	Answers CauseAnswers
}

// CauseAnswers contains the questions of Causes about a cycle.
type CauseAnswers interface {
	// NeverStarts states why a job can never start; "" for any other job.
	NeverStarts(j *model.Job) string
	// VolumePlaces states where the volumes of a pod are; "" if every node reaches them.
	VolumePlaces(t *model.Task) string
	// VolumeDefect states which claim of a pod no node can use, and the remedy; "" if there is none.
	VolumeDefect(t *model.Task) string
	// ReadsOpen reports whether the row of a reason depends on whether the queue is open.
	ReadsOpen(why model.Reason) bool
}

// OfQueue states which queue makes a job wait: its own queue, which is closed or full, or a queue above it. It is "" if a pod has
// another reason, or if the reason of the job as a whole states the cause already. first is the first wait of the job's pods for a limit of
// a queue. For a job that was not admitted, it is the wait of the job itself. nil means that there is none.
func (x *Causes) OfQueue(j *model.Job, first *model.Wait) string {
	if first == nil || j.Queue == nil {
		return ""
	}
	if !j.Queue.Open && x.Answers.ReadsOpen(first.Reason) {
		return x.closedCause(j)
	}
	if why := x.NeverInQueue(j, first); why != "" {
		return why
	}
	for _, higher := range above(x.Cluster, j.Queue) {
		if _, rest, ok := strings.Cut(first.Reason.Text, "queue "+higher+" lacks "); ok {
			return fmt.Sprintf("queue %s, above the job's queue %s, is full: it lacks %s", higher, j.QueueName, rest)
		}
	}
	if j.Phase == model.PhasePending {
		return ""
	}
	if limits := limitsAbove(x, j, first); limits != "" {
		return fmt.Sprintf("queue %s, above the job's queue %s, limits it: %s", limits, j.QueueName, first.Reason.Text)
	}
	return first.Reason.Text
}

// limitsAbove returns the queue above a job's queue that limits the resource that the job's queue lacks. It returns "" if the job's queue
// has a capability for that resource itself, or if no queue above it has one.
func limitsAbove(x *Causes, j *model.Job, first *model.Wait) (name string) {
	_, lacks, ok := strings.Cut(first.Reason.Text, "queue "+j.QueueName+" lacks ")
	resource, _, _ := strings.Cut(lacks, " ")
	dim, known := x.Cluster.Dims.Find(resource)
	if !ok || !known || j.Queue.Capability.Has(dim) {
		return ""
	}
	least := 0.0
	for _, higher := range above(x.Cluster, j.Queue) {
		if most := x.Cluster.Queues[higher].Capability; most.Has(dim) && (name == "" || most.Get(dim) < least) {
			name, least = higher, most.Get(dim)
		}
	}
	return name
}

// NeverInQueue applies to a job that waits for a limit of a queue. It states that the job does not fit into its queue, or into a queue
// above it, even if that queue is empty. first is the same wait as in OfQueue.
func (x *Causes) NeverInQueue(j *model.Job, first *model.Wait) string {
	if first == nil || j.Queue == nil {
		return ""
	}
	if _, limited := Own(first); !limited && !strings.Contains(first.Reason.Text, "queue "+j.QueueName+" lacks ") {
		return ""
	}
	for _, name := range append([]string{j.QueueName}, above(x.Cluster, j.Queue)...) {
		if q := x.Cluster.Queues[name]; q != nil {
			if why := QueueNeverHolds(x.Cluster, j, q); why != "" {
				return why
			}
		}
	}
	return ""
}

// closedCause returns how a user opens the closed queue of a job. The queues above it must be opened first, beginning with the highest
// one.
func (x *Causes) closedCause(j *model.Job) string {
	command := func(queue string) string { return "celsius queue operate " + queue + " --action open" }
	why := fmt.Sprintf("queue %s is %s and starts no jobs", j.QueueName, j.Queue.State)
	var closed []string // the highest queue comes first
	for _, higher := range above(x.Cluster, j.Queue) {
		if q := x.Cluster.Queues[higher]; !q.Open {
			closed = slices.Insert(closed, 0, higher)
		}
	}
	if len(closed) == 0 {
		return fmt.Sprintf("%s; open it (%s), or use another queue", why, command(j.QueueName))
	}
	top := closed[0]
	why += fmt.Sprintf(", and queue %s above it is %s; open %s (%s)", top, x.Cluster.Queues[top].State, top, command(top))
	for _, next := range append(closed[1:], j.QueueName) {
		why += fmt.Sprintf(", then %s if it stays closed (%s)", next, command(next))
	}
	return why + ", or use another queue"
}

// FirstLimit returns the first wait for a limit of a queue. It is nil if a pod waits for anything else, or none waits.
func FirstLimit(waits iter.Seq[*model.Wait]) (first *model.Wait) {
	for w := range waits {
		if w.Fared.Node != "" {
			continue // it found a node: it waits because other pods of its gang wait
		}
		own, limited := Own(w)
		if own && !limited {
			return nil
		}
		if own && first == nil {
			first = w
		}
	}
	return first
}

// above lists the queues above a queue, the nearest first.
func above(c *model.Cluster, q *model.Queue) (names []string) {
	for parent := c.Queues[q.Parent]; parent != nil && !slices.Contains(names, parent.Name); parent = c.Queues[parent.Parent] {
		names = append(names, parent.Name)
	}
	return names
}

// anyReached stands for an unknown number of nodes above 0.
const anyReached = -1

// PlacesCause states that the volumes of a pod restrict it to some of the nodes. reached is how many of all nodes reach the volumes.
func PlacesCause(t *model.Task, places string, reached, all int) string {
	if reached == 0 {
		return fmt.Sprintf("no node reaches the volumes of pod %s: %s; add a node there, or use another claim", t.Key, places)
	}
	where := "only nodes there"
	if reached != anyReached {
		where = fmt.Sprintf("%d of %s", reached, counted(int64(all), "node"))
	}
	return fmt.Sprintf("%s, so %s can run pod %s; free resources or add a node there, or use another claim", places, where, t.Key)
}

// DefectCause states that a pod has a claim that no node can use.
func DefectCause(t *model.Task, defect string) string {
	return fmt.Sprintf("%s (pod %s)", defect, t.Key)
}

// volumes describes how volumes restrict a waiting pod. It uses the first pod that has such a restriction. It states which claim of the pod
// no node can use, or to which places the volumes restrict the pod. It reads the nodes from the reason of the pod, not from the cluster.
// Therefore it is inexpensive, and its result changes only if the reason changes.
func (x *Causes) volumes(w *Waits, j *model.Job) string {
	for _, t := range j.Tasks {
		own := w.tasks[t]
		if own == nil || t.Status != model.Pending || !t.HasVolumes {
			continue
		}
		if defect := x.Answers.VolumeDefect(t); defect != "" {
			return DefectCause(t, defect)
		}
		places := x.Answers.VolumePlaces(t)
		if places == "" {
			continue
		}
		refused, all := 0, 0
		for _, n := range own.Nodes {
			if all += n.Count; strings.Contains(n.Text, places) {
				refused += n.Count
			}
		}
		switch refused {
		case 0:
		case all:
			return PlacesCause(t, places, 0, all)
		default:
			return PlacesCause(t, places, anyReached, all)
		}
	}
	return ""
}

// of states why a job waits, as far as no other job can change that; "" if it is not known.
func (x *Causes) of(w *Waits, j *model.Job) string {
	return cmp.Or(x.Answers.NeverStarts(j), x.OfQueue(j, w.firstLimit(j)), x.volumes(w, j))
}

// firstLimit returns the wait that OfQueue requires.
func (w *Waits) firstLimit(j *model.Job) *model.Wait {
	if j.Phase == model.PhasePending {
		return w.jobs[j]
	}
	return FirstLimit(func(yield func(*model.Wait) bool) {
		for _, t := range j.Tasks {
			if own := w.tasks[t]; own != nil && t.Status == model.Pending && !yield(own) {
				return
			}
		}
	})
}
