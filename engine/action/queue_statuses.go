package action

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// queueStatuses contains the statuses of queues in the order of their names. Queues that were not touched share theirs with earlier plans.
type queueStatuses struct {
	cursor follow.Cursor[*model.Queue]
	listed []*model.Queue // the cluster's list for which known was computed
	known  []model.QueueStatus
}

// give lists the present statuses; nil: there are no queues.
func (l *queueStatuses) give(c *model.Cluster) []model.QueueStatus {
	touched, known := l.cursor.Read(&c.QueueLog)
	now := c.QueuesByName()
	if !known || !sameList(l.listed, now) {
		l.listed, l.known = now, nil
		for _, q := range now {
			l.known = append(l.known, report.Queue(c, q))
		}
		return l.known
	}
	if len(touched) == 0 {
		return l.known
	}
	l.known = slices.Clone(l.known) // plans share the old slice
	seen := map[*model.Queue]bool{}
	for _, q := range touched {
		if i, there := slices.BinarySearchFunc(now, q, byName); there && !seen[q] {
			seen[q], l.known[i] = true, report.Queue(c, q)
		}
	}
	return l.known
}

// sameList reports whether two lists of the cluster are the same slice.
func sameList(was, now []*model.Queue) bool {
	return len(was) == len(now) && len(now) > 0 && &was[0] == &now[0]
}
