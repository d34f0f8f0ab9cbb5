package report

import (
	"fmt"
	"strconv"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Builtin is a reason that no row of a table gives.
func Builtin(rule, text string) model.Reason {
	return model.Reason{Table: "builtin", Rule: rule, Text: text}
}

// RoleFailed is why a task is not tried: another of its role found no node in this turn.
func RoleFailed(role string) model.Reason {
	return Builtin("role", "another pod of role "+role+" found no node")
}

// KeptFor is why a task does not get the place that was found for it: it is kept for pods of a job that comes before, which the task's
// owner may or may not see by its name.
func KeptFor(first *model.Job, named bool) model.Reason {
	job := "a job of another namespace"
	if named {
		job = first.Title
	}
	return Builtin("await-pods", "the place is kept for "+job+", which comes first and whose pods are being made")
}

// Behind is the reason of a job that is not tried because another job comes first in its queue, waits, and blocks the queue. named states
// whether the owner of the job may see the name of the first job.
func Behind(first *model.Job, named bool) model.Reason {
	job := "a job of another namespace"
	if named {
		job = "job " + first.Title
	}
	return Builtin(ruleFIFO, job+" comes first in queue "+first.QueueName+" and still waits; the queue starts its jobs in order (fifo)")
}

// Unasked is why no action comes to a job as a whole, under a policy that is paused or has so many actions; without a rule: some may.
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

// Unready is Held where nothing else is known than why the job is not ready.
func Unready(j *model.Job, site string, because, unready model.Reason) model.Reason {
	why := Held(j, site, because)
	if j.Counts[model.Pipelined] == 0 && unready.Text != "" {
		why.Text += ": " + unready.Text
	}
	return why
}

// Held is why a job that is not ready waits, though its placements are held; because is the answer by which they are.
func Held(j *model.Job, site string, because model.Reason) model.Reason {
	why := model.Reason{Site: site, Table: because.Table, Rule: because.Rule, Text: "its places are held, though it is not ready"}
	if j.Counts[model.Pipelined] > 0 {
		why.Text = "its tasks wait for resources that are being released"
	}
	return why
}

// RolledBack is why a job waits of which so many tasks were placed and undone.
func RolledBack(why model.Reason, placed int) model.Reason {
	if placed > 0 {
		why.Text = fmt.Sprintf("%s; %d found a node, rolled back", why.Text, placed)
	}
	return why
}

// NeverFits says of a task that asks for more of a dimension than the largest node has that it does; "" of any other.
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
