package model

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
