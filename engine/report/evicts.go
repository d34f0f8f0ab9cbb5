package report

import (
	"fmt"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Evict returns the eviction of a task for another task. first is the first row that allows it. rows are all rows that do, as table/rule.
func Evict(t, preemptor *model.Task, action, via string, first model.Reason, rows []string) model.Evict {
	first.Text = MakesRoom(preemptor.Key, rows)
	return model.Evict{
		Task: t.Key, UID: t.UID, Job: t.Job.Key, Queue: t.Job.QueueName, Node: t.NodeName, For: preemptor.Key, ForJob: preemptor.Job.Key,
		ForQueue: preemptor.Job.QueueName, Action: action, Via: via, Reason: first, Rows: rows,
	}
}

// MakesRoom states why a pod is evicted for another. rows, as table/rule, permit the eviction.
func MakesRoom(preemptor string, rows []string) string {
	return fmt.Sprintf("makes room for %s by %s", preemptor, strings.Join(rows, ", "))
}

// Needed adds which task the node would reject without the eviction, and why. Usually this is the task for which the pod is evicted.
func Needed(e model.Evict, at *model.Task, why model.Reason) model.Evict {
	where := "here"
	if at.Key != e.For {
		e.NeededFor, where = at.Key, "on "+at.NodeName
	}
	e.Needed = why
	e.Needed.Text = "spared, " + at.Key + " has no place " + where + ": " + why.Text
	return e
}

// ForGang adds to an eviction for a gang why it is necessary: without it, the task at would not fit on a node. at is the task of the gang,
// or another task that was promised resources. With whole, the whole gang of the victim is evicted, and the reason assumes that none of it
// were.
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

// Named returns the eviction of a task that rows name. It serves no other task.
func Named(t *model.Task, action, via string, first model.Reason, rows []string) model.Evict {
	first.Text = "is named by " + strings.Join(rows, ", ")
	return model.Evict{
		Task: t.Key, UID: t.UID, Job: t.Job.Key, Queue: t.Job.QueueName, Node: t.NodeName, Action: action, Reason: first, Rows: rows, Via: via,
	}
}

// Nominated takes the place of an action in reasons, for tasks that get resources that victims freed in an earlier cycle.
const Nominated = "nominated"

// Kept states why a task is promised a node that it was promised in an earlier cycle.
func Kept() model.Reason { return model.Reason{Text: "others leave this node for it"} }

// RoomMade states why a task is promised a node on which this many tasks are evicted for it.
func RoomMade(victims int) model.Reason {
	switch victims {
	case 0:
		return model.Reason{Text: "it fits, and nobody has to go"}
	case 1:
		return model.Reason{Text: "1 pod is evicted for it"}
	}
	return model.Reason{Text: fmt.Sprintf("%d pods are evicted for it", victims)}
}

// CostsLess adds to the reason of a promised node that, by a row, the evictions there cost less than those on the next best node.
func CostsLess(why model.Reason, site, table, rule, next string) model.Reason {
	why.Site, why.Table, why.Rule = site, table, rule
	why.Text += ", which costs less than on " + next
	return why
}

// GangRoomMade states why a task is promised a node. victims is the number of tasks evicted for it and for the tasks of its gang that are
// promised nodes together with it.
func GangRoomMade(victims int) model.Reason {
	if victims == 1 {
		return model.Reason{Text: "1 pod is evicted for it and its gang"}
	}
	return model.Reason{Text: fmt.Sprintf("%d pods are evicted for it and its gang", victims)}
}
