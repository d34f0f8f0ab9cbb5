package report

import (
	"fmt"
	"strconv"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Builtin returns a reason that no row of a table gives.
func Builtin(rule, text string) model.Reason {
	return model.Reason{Table: "builtin", Rule: rule, Text: text}
}

// RoleFailed states why a task is not tried: another task of its role found no node in this turn.
func RoleFailed(role string) model.Reason {
	return Builtin("role", "another pod of role "+role+" found no node")
}

// KeptFor states why a task does not get the node that was found for it: the resources are kept for pods of a job that comes first. named
// states whether the owner of the task may see the name of that job.
func KeptFor(first *model.Job, named bool) model.Reason {
	job := "a job of another namespace"
	if named {
		job = first.Title
	}
	return Builtin("await-pods", "the place is kept for "+job+", which comes first and whose pods are being made")
}

// Behind returns the reason of a job that is not tried because another job comes first in its queue, waits, and blocks the queue. named
// states whether the owner of the job may see the name of the first job.
func Behind(first *model.Job, named bool) model.Reason {
	job := "a job of another namespace"
	if named {
		job = "job " + first.Title
	}
	return Builtin(ruleFIFO, job+" comes first in queue "+first.QueueName+" and still waits; the queue starts its jobs in order (fifo)")
}

// Unasked states why no action tries a job as a whole, under a policy that may be paused and has this many actions. A reason without a
// rule: an action may try it.
func Unasked(j *model.Job, policy string, paused bool, actions int) model.Reason {
	switch {
	case j.Queue == nil:
		return Builtin("queue", "there is no queue "+strconv.Quote(j.QueueName))
	case !j.Seated():
		return Builtin("queue", "the queue "+j.QueueName+" only holds other queues; name one below it")
	case paused:
		return Builtin("paused", "policy "+policy+" is paused: nothing is decided until its mode is Active")
	case actions == 0:
		return Builtin("pipeline", "the pipeline of policy "+policy+" is empty: it names no action that could let jobs in or place pods")
	case j.TaskCount() == 0:
		return Builtin("pipeline", "no action of the pipeline of policy "+policy+" lets the job in")
	}
	return model.Reason{}
}

// Unready does what Held does. If no task of the job waits for releasing resources, it adds why the job is not ready.
func Unready(j *model.Job, site string, because, unready model.Reason) model.Reason {
	why := Held(j, site, because)
	if j.Counts[model.Pipelined] == 0 && unready.Text != "" {
		why.Text += ": " + unready.Text
	}
	return why
}

// Held states why a job that is not ready waits, although its placements are held. because is the answer that allowed to hold them.
func Held(j *model.Job, site string, because model.Reason) model.Reason {
	why := model.Reason{Site: site, Table: because.Table, Rule: because.Rule, Text: "its places are held, though it is not ready"}
	if j.Counts[model.Pipelined] > 0 {
		why.Text = "its tasks wait for resources that are being released"
	}
	return why
}

// RolledBack states why a job waits after this many of its tasks were placed and undone.
func RolledBack(why model.Reason, placed int) model.Reason {
	if placed > 0 {
		why.Text = fmt.Sprintf("%s; %d found a node, rolled back", why.Text, placed)
	}
	return why
}

// NeverFits returns a text for a task that requests more of a dimension than the largest node has; "" for any other task.
func NeverFits(dims *model.Dims, t *model.Task, dim int, largest float64) string {
	if !t.Request.Has(dim) || !(t.Request[dim] > largest+model.Slack) {
		return ""
	}
	request, most := dims.AmountTexts(dim, t.Request[dim], largest)
	text := "it asks for " + dims.Name(dim) + " " + request + " and can never fit: "
	if largest > 0 {
		return text + "the largest node has " + most
	}
	return text + "no node has any"
}
