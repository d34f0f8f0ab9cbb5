package model

import "time"

// String is the status as policies write it: Pending.
func (s Status) String() string {
	switch s {
	case Pending:
		return "Pending"
	case Pipelined:
		return "Pipelined"
	case Allocated:
		return "Allocated"
	case Binding:
		return "Binding"
	case Bound:
		return "Bound"
	case Running:
		return "Running"
	case Releasing, Gone:
		return "Releasing"
	case Succeeded:
		return "Succeeded"
	case Failed:
		return "Failed"
	case Unknown, NumStatus:
	}
	return "Unknown"
}

// HoldsResources is true of the allocated class: Allocated, Binding, Bound, Running.
func (s Status) HoldsResources() bool {
	return s == Allocated || s == Binding || s == Bound || s == Running
}

// taken is true of a task whose request counts as taken, for shares and limits: who is promised room has it.
func (s Status) taken() bool { return s.HoldsResources() || s == Pipelined }

// occupies is true of a task that holds what it requests until its pod has ended or is deleted, wherever an eviction or deletion has got
// to.
func (t *Task) occupies() bool {
	switch t.Status {
	case Allocated, Binding, Bound, Running:
		return true
	case Releasing, Unknown, Gone:
		return t.NodeName != "" && !t.Unadmitted // a pod that never had a node holds nothing
	case Pending, Pipelined, Succeeded, Failed, NumStatus:
	}
	return false
}

// onNode is true of a task that is counted on its node, if it has one.
func (s Status) onNode() bool { return s != Pending && s != Succeeded && s != Failed && s != Gone }

// HoldsResources is true of a task of the allocated class: Allocated, Binding, Bound, Running.
func (t *Task) HoldsResources() bool { return t.Status.HoldsResources() }

// MayGo reports whether a task can be a victim at all: it belongs to this scheduler, is on a node, and has a queue. An unadmitted pod is
// never a victim, because its eviction frees no resources.
func (t *Task) MayGo() bool {
	holds := t.Status == Binding || t.Status == Bound || t.Status == Running || t.Status == Unknown
	return holds && !t.Foreign && !t.Unadmitted && t.Job.Queue != nil && t.Object.DeletionTimestamp == nil
}

// Leaves reports whether a pod is terminating, or its eviction is not done.
func (t *Task) Leaves() bool {
	return t.Status == Releasing || t.Status == Unknown && t.Object.DeletionTimestamp != nil
}

// Shown is the status that people read: a pod that leaves is Releasing, although nothing is promised its resources if it is Unknown.
func (t *Task) Shown() Status {
	if t.Leaves() {
		return Releasing
	}
	return t.Status
}

// Spare notes until when nobody is to evict a task, because that was refused; later versions of its pod keep it. It goes before the Apply
// that forgets the eviction, which makes the change known.
func (t *Task) Spare(until time.Time) { t.Spared = until }

// Waits is true of a task that has no place, or is only promised one.
func (t *Task) Waits() bool { return t.Status == Pending || t.Status == Pipelined }

// counts is how many tasks are in each status.
type counts [NumStatus]int64

func (n *counts) holding() int64 { return n[Allocated] + n[Binding] + n[Bound] + n[Running] }

func (n *counts) all() int64 {
	var sum int64
	for _, v := range n {
		sum += v
	}
	return sum
}

// TaskCount is how many tasks the job has, in whatever status.
func (j *Job) TaskCount() int64 { return (*counts)(&j.Counts).all() }

// Holding is how many tasks are of the allocated class.
func (j *Job) Holding() int64 { return (*counts)(&j.Counts).holding() }

// Ready is how many tasks are of the allocated class or Succeeded. Pending best-effort tasks are not in it.
func (j *Job) Ready() int64 { return j.Holding() + j.Counts[Succeeded] }

// Valid is Ready and those that are Pipelined or Pending.
func (j *Job) Valid() int64 { return j.Ready() + j.Counts[Pipelined] + j.Counts[Pending] }

// TaskCount is how many tasks the role has, in whatever status.
func (r *Role) TaskCount() int64 { return (*counts)(&r.Counts).all() }

// Holding is how many tasks of the role are of the allocated class.
func (r *Role) Holding() int64 { return (*counts)(&r.Counts).holding() }

// Ready is how many tasks of the role are of the allocated class, Succeeded, or counted in PendingBestEffort.
func (r *Role) Ready() int64 { return r.Holding() + r.Counts[Succeeded] + r.PendingBestEffort }

// Valid is how many tasks of the role are of the allocated class, Succeeded, Pipelined or Pending.
func (r *Role) Valid() int64 {
	return r.Holding() + r.Counts[Succeeded] + r.Counts[Pipelined] + r.Counts[Pending]
}

// Statuses are the words for all of them.
func Statuses() []string {
	var out []string
	for s := range NumStatus {
		out = append(out, s.String())
	}
	return out
}
