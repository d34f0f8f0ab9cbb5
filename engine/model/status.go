package model

import "time"

// String returns the status in the form of policies: Pending.
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

// HoldsResources reports whether the status is Allocated, Binding, Bound or Running.
func (s Status) HoldsResources() bool {
	return s == Allocated || s == Binding || s == Bound || s == Running
}

// taken reports whether the request of a task counts as used for shares and limits. A promise also counts.
func (s Status) taken() bool { return s.HoldsResources() || s == Pipelined }

// occupies reports whether a task holds what it requests. It does until its pod has ended or is deleted, at every stage of an eviction.
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

// onNode reports whether a task counts on its node, if it has one.
func (s Status) onNode() bool { return s != Pending && s != Succeeded && s != Failed && s != Gone }

// HoldsResources reports whether the task is Allocated, Binding, Bound or Running.
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

// Shown returns the status in output. A pod that leaves is Releasing, although its resources are promised to no task if it is Unknown.
func (t *Task) Shown() Status {
	if t.Leaves() {
		return Releasing
	}
	return t.Status
}

// Spare sets until when no task is to evict this task, because its eviction was refused. Later versions of its pod keep the time. Call it
// before the Apply that forgets the eviction, which marks the task as changed.
func (t *Task) Spare(until time.Time) { t.Spared = until }

// Waits reports whether a task has no node, or is only promised one.
func (t *Task) Waits() bool { return t.Status == Pending || t.Status == Pipelined }

// counts is the number of tasks by status.
type counts [NumStatus]int64

func (n *counts) holding() int64 { return n[Allocated] + n[Binding] + n[Bound] + n[Running] }

func (n *counts) all() int64 {
	var sum int64
	for _, v := range n {
		sum += v
	}
	return sum
}

// TaskCount returns the number of tasks of the job, in any status.
func (j *Job) TaskCount() int64 { return (*counts)(&j.Counts).all() }

// Holding returns the number of tasks that are Allocated, Binding, Bound or Running.
func (j *Job) Holding() int64 { return (*counts)(&j.Counts).holding() }

// Ready returns Holding plus the Succeeded tasks. It does not contain pending best-effort tasks.
func (j *Job) Ready() int64 { return j.Holding() + j.Counts[Succeeded] }

// Valid returns Ready plus the Pipelined and Pending tasks.
func (j *Job) Valid() int64 { return j.Ready() + j.Counts[Pipelined] + j.Counts[Pending] }

// TaskCount returns the number of tasks of the role, in any status.
func (r *Role) TaskCount() int64 { return (*counts)(&r.Counts).all() }

// Holding returns the number of tasks of the role that are Allocated, Binding, Bound or Running.
func (r *Role) Holding() int64 { return (*counts)(&r.Counts).holding() }

// Ready returns Holding plus the Succeeded tasks and PendingBestEffort.
func (r *Role) Ready() int64 { return r.Holding() + r.Counts[Succeeded] + r.PendingBestEffort }

// Valid returns Holding plus the Succeeded, Pipelined and Pending tasks.
func (r *Role) Valid() int64 {
	return r.Holding() + r.Counts[Succeeded] + r.Counts[Pipelined] + r.Counts[Pending]
}

// Statuses returns the names of all statuses.
func Statuses() []string {
	var out []string
	for s := range NumStatus {
		out = append(out, s.String())
	}
	return out
}
