package explain

import (
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Titles are what people call jobs: a PodGroup goes by the name of the Job, or of
// the pod, that it was made for, because its own name holds a uid.
type Titles map[string]string

// Of is what people call a job.
func (t Titles) Of(job string) string {
	if title, ok := t[job]; ok {
		return title
	}
	return strings.TrimPrefix(job, "~") // an orphan goes by its pod
}

// TitlesOf a cluster's jobs: of those that do not go by their own names. Two jobs that would go by one title keep their names.
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
