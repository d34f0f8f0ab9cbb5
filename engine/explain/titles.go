package explain

import (
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Titles contains the names of jobs that users know. A PodGroup has the title of the Job or pod for which it was created, because its own
// name contains a UID.
type Titles map[string]string

// Of returns the title of a job.
func (t Titles) Of(job string) string {
	if title, ok := t[job]; ok {
		return title
	}
	return strings.TrimPrefix(job, "~") // the title of an orphan is its pod
}

// TitlesOf returns the titles of a cluster's jobs that differ from their own names. Two jobs with the same title keep their names.
func TitlesOf(c *model.Cluster) Titles {
	out, users := Titles{}, map[string]int{}
	for key, job := range c.Jobs {
		if !job.Orphan && job.Title != key {
			out[key] = job.Title
			users[job.Title]++
		}
	}
	for key, title := range out {
		other := c.Jobs[title]
		if users[title] > 1 || other != nil && !other.Orphan && other.Title == title {
			delete(out, key)
		}
	}
	return out
}
