package model

import "time"

// SetStuck notes whether a job is stuck: what its pods wait for is not that other pods leave, so that it would not start if they did. The
// cycles that follow read it. It reports whether this changed.
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

// IsStuck reports what SetStuck noted last about a job.
func (c *Cluster) IsStuck(j *Job) bool { return c.Past.Stuck[j.Key] }

// SetExceeded notes that a job of a queue started beyond the share of the queue. The cycles that follow read it.
func (c *Cluster) SetExceeded(q *Queue, now time.Time) {
	if c.Past.Exceeded == nil {
		c.Past.Exceeded = map[string]time.Time{}
	}
	c.Past.Exceeded[q.Name] = now
	c.touchQueue(q)
}

// ExceededAt returns what SetExceeded noted last about a queue; the beginning of 1970 if nothing was noted.
func (c *Cluster) ExceededAt(q *Queue) time.Time {
	if at, ok := c.Past.Exceeded[q.Name]; ok {
		return at
	}
	return time.Unix(0, 0).UTC()
}

// NextRequest is what a job requests next, with pods that wait, in their order: those that each role lacks, then as many as the job lacks
// to start, or the first pod if the job has started. The minimums of roles count only if MinMember covers all of them, as in jobReady. It
// adds what is expected of pods that do not exist yet if there are too few.
func (j *Job) NextRequest(tasks []*Task) Resources {
	lacks := max(0, j.MinMember-j.Ready())
	var left map[*Role]int64
	for _, r := range j.Roles {
		if n := r.Min - r.Ready(); n > 0 && j.MinMember >= j.RoleMinTotal {
			if left == nil {
				left = map[*Role]int64{}
			}
			left[r] = n
		}
	}
	if lacks <= 1 && len(left) == 0 && len(tasks) > 0 {
		return tasks[0].Request
	}
	var sum Resources
	var others []*Task
	picked := int64(0)
	for _, t := range tasks {
		if left[t.role] > 0 {
			left[t.role]--
			picked++
			sum.AddIn(t.Request, 1)
		} else if int64(len(others)) < lacks {
			others = append(others, t)
		}
	}
	for _, t := range others[:max(0, min(int64(len(others)), lacks-picked))] {
		picked++
		sum.AddIn(t.Request, 1)
	}
	if picked < max(1, lacks) {
		sum.AddIn(j.Expected, 1)
	}
	return sum
}

// Next is NextRequest of all pods of the job that wait and are not gated, by their keys.
func (j *Job) Next() Resources {
	var tasks []*Task
	for _, t := range j.Tasks {
		if t.Status == Pending && !t.Gated && !t.Foreign {
			tasks = append(tasks, t)
		}
	}
	return j.NextRequest(tasks)
}
