package report

import (
	"fmt"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Evict takes a task off its node for another. first is the first row that lets it go, and rows are all that do, as table/rule.
func Evict(t, preemptor *model.Task, action, via string, first model.Reason, rows []string) model.Evict {
	first.Text = MakesRoom(preemptor.Key, rows)
	return model.Evict{
		Task: t.Key, UID: t.UID, Job: t.Job.Key, Queue: t.Job.QueueName, Node: t.NodeName, For: preemptor.Key, ForJob: preemptor.Job.Key,
		ForQueue: preemptor.Job.QueueName, Action: action, Via: via, Reason: first, Rows: rows,
	}
}

// MakesRoom is why a pod is evicted for another, as rows, as table/rule, permit.
func MakesRoom(preemptor string, rows []string) string {
	return fmt.Sprintf("makes room for %s by %s", preemptor, strings.Join(rows, ", "))
}

// Needed adds which task the node would refuse without the eviction, and why. Usually this is the task for which the pod is evicted.
func Needed(e model.Evict, at *model.Task, why model.Reason) model.Evict {
	where := "here"
	if at.Key != e.For {
		e.NeededFor, where = at.Key, "on "+at.NodeName
	}
	e.Needed = why
	e.Needed.Text = "spared, " + at.Key + " has no place " + where + ": " + why.Text
	return e
}

// ForGang evicts a task for one of a gang, as it, or another that was promised room, has no place on a node otherwise. If the whole of its
// own gang goes, that is so were all of it spared.
func ForGang(e model.Evict, at *model.Task, node string, needed model.Reason, whole bool) model.Evict {
	who := "spared"
	if at.Key != e.For {
		e.NeededFor = at.Key
	}
	if whole {
		who = "spared with the whole of its gang"
	}
	e.Needed, e.Whole = needed, whole
	e.Needed.Text = who + ", " + at.Key + " has no place on " + node + ": " + needed.Text
	return e
}

// Named evicts a task that rows name, for no other's sake.
func Named(t *model.Task, action, via string, first model.Reason, rows []string) model.Evict {
	first.Text = "is named by " + strings.Join(rows, ", ")
	return model.Evict{
		Task: t.Key, UID: t.UID, Job: t.Job.Key, Queue: t.Job.QueueName, Node: t.NodeName, Action: action, Reason: first, Rows: rows, Via: via,
	}
}

// Nominated is the action, as it were, by which tasks get room that others left for them in an earlier cycle.
const Nominated = "nominated"

// Kept is why a task is promised a node that it was promised in an earlier cycle.
func Kept() model.Reason { return model.Reason{Text: "others leave this node for it"} }

// RoomMade is why a task is promised a node on which so many others go for it.
func RoomMade(victims int) model.Reason {
	switch victims {
	case 0:
		return model.Reason{Text: "it fits, and nobody has to go"}
	case 1:
		return model.Reason{Text: "1 pod is evicted for it"}
	}
	return model.Reason{Text: fmt.Sprintf("%d pods are evicted for it", victims)}
}

// CostsLess adds to why a task is promised a node that it costs less by a row who goes there than who would go on the next best.
func CostsLess(why model.Reason, site, table, rule, next string) model.Reason {
	why.Site, why.Table, why.Rule = site, table, rule
	why.Text += ", which costs less than on " + next
	return why
}

// GangRoomMade is why a task is promised a node while so many others go for it and those of its gang that are promised theirs with it.
func GangRoomMade(victims int) model.Reason {
	if victims == 1 {
		return model.Reason{Text: "1 pod is evicted for it and its gang"}
	}
	return model.Reason{Text: fmt.Sprintf("%d pods are evicted for it and its gang", victims)}
}
