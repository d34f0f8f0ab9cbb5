package model

import "time"

// SetStuck records whether a job is stuck: it would not start even if other pods left. Later cycles read it. SetStuck reports whether the
// value changed.
func (c *Cluster) SetStuck(j *Job, stuck bool) (changed bool) {
	if c.Past.Stuck[j.Key] == stuck {
		return false
	}
	if !stuck {
		delete(c.Past.Stuck, j.Key)
	} else {
		if c.Past.Stuck == nil {
			c.Past.Stuck = map[string]bool{}
		}
		c.Past.Stuck[j.Key] = true
	}
	c.touchJob(j)
	return true
}

// IsStuck returns what SetStuck recorded last for a job.
func (c *Cluster) IsStuck(j *Job) bool { return c.Past.Stuck[j.Key] }

// SetExceeded records that a job of a queue started beyond the share of the queue. Later cycles read it.
func (c *Cluster) SetExceeded(q *Queue, now time.Time) {
	if c.Past.Exceeded == nil {
		c.Past.Exceeded = map[string]time.Time{}
	}
	c.Past.Exceeded[q.Name] = now
	c.touchQueue(q)
}

// ExceededAt returns what SetExceeded recorded last for a queue; the beginning of 1970 if nothing was recorded.
func (c *Cluster) ExceededAt(q *Queue) time.Time {
	if at, ok := c.Past.Exceeded[q.Name]; ok {
		return at
	}
	return time.Unix(0, 0).UTC()
}

// NextRequest returns the next request of a job for its waiting pods, in their order. It contains the pods that each role lacks, and then
// as many as the job lacks to start. If the job has started, it contains the first pod. The minimums of roles count only if MinMember
// covers all of them, as in jobReady. If there are too few pods, it adds the expected pods that do not exist yet.
func (j *Job) NextRequest(tasks []*Task) Resources {
	next := j.nextPods()
	if next.lacks <= 1 && len(next.left) == 0 && len(tasks) > 0 {
		return tasks[0].Request
	}
	return next.request(j, tasks)
}

// NextRequestWith does what NextRequest does, for pods of which the first belongs to the next request. enough reports whether the job can
// start with these pods.
func (j *Job) NextRequestWith(tasks []*Task) (request Resources, enough bool) {
	next := j.nextPods()
	next.pick(tasks[0])
	request = next.request(j, tasks[1:])
	return request, next.enough()
}

// nextPods counts the pods that a job lacks to start while pods are picked for it.
type nextPods struct {
	lacks  int64           // the number of pods that the job lacks in total
	left   map[*Role]int64 // by role, for roles that lack pods; a role with enough picked pods is not in it
	picked int64
	sum    Resources
}

func (j *Job) nextPods() *nextPods {
	next := &nextPods{lacks: max(0, j.MinMember-j.Ready()-j.PendingBestEffort)}
	for _, r := range j.Roles {
		if n := r.Min - r.Ready(); n > 0 && j.MinMember >= j.RoleMinTotal {
			if next.left == nil {
				next.left = map[*Role]int64{}
			}
			next.left[r] = n
		}
	}
	return next
}

func (n *nextPods) pick(t *Task) {
	n.picked++
	n.sum.AddIn(t.Request, 1)
	if n.left[t.role] > 1 {
		n.left[t.role]--
	} else {
		delete(n.left, t.role)
	}
}

func (n *nextPods) enough() bool { return n.picked >= max(1, n.lacks) && len(n.left) == 0 }

// request picks the pods that are still lacking, and returns the sum of the requests of all picked pods. If there are too few pods, it adds
// the expected pods.
func (n *nextPods) request(j *Job, tasks []*Task) Resources {
	var others []*Task
	for _, t := range tasks {
		if n.enough() {
			break
		}
		if n.left[t.role] > 0 {
			n.pick(t)
		} else if int64(len(others)) < n.lacks {
			others = append(others, t)
		}
	}
	for _, t := range others[:max(0, min(int64(len(others)), n.lacks-n.picked))] {
		n.pick(t)
	}
	if n.picked < max(1, n.lacks) {
		n.sum.AddIn(j.Expected, 1)
	}
	return n.sum
}

// Next does what NextRequest does, for all pods of the job that wait, are not gated, and request resources, in key order.
func (j *Job) Next() Resources {
	var tasks []*Task
	for _, t := range j.Tasks {
		if t.Status == Pending && !t.Gated && !t.Foreign && !t.BestEffort {
			tasks = append(tasks, t)
		}
	}
	return j.NextRequest(tasks)
}
