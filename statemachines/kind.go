package statemachines

import (
	"maps"
	"math"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// kind defines what the controllers offer to the machines of one name: the variables of guards, the sources of events, the effects, and the
// counters.
type kind struct {
	roots   map[string]*cel.Type
	sources map[string]map[string]*cel.Type
	effects map[string]effectKind
	// counters are the counters that a row may increase. Each has facts in which only this counter is set, to its maximum.
	counters map[string]Facts
	// sets are the fields of the object that a row may write. The value is true for a bool, and false for a string.
	sets map[string]bool
	// phases are the phases that the API has.
	phases []string
	// scopes are the targets that an action may have instead of the whole object.
	scopes []string
	bind   func(f Facts) map[string]any
}

// effectKind is one effect that controllers can perform.
type effectKind struct {
	doc string
	// retains states that a row may define which pods stay.
	retains bool
	// kills and restarts end work. kills does so unless finished pods are retained. restarts always does so.
	kills, restarts bool
	// changes states that the effect starts or ends other work, so that the object differs afterwards.
	changes bool
}

// The fields that rows of the machine of queues may set: the parent, and whether the queue was closed because its parent was closed.
const (
	SetParent         = "parent"
	SetClosedByParent = "closedByParent"
)

// The values of retain.
const (
	retainNone     = "none"
	retainFinished = "finished"
)

func retainWords() []string { return []string{retainNone, retainFinished} }

func kinds() map[string]kind {
	job := map[string]*cel.Type{"job": jobType(), "spec": specType(), "status": statusType(), "now": cel.TimestampType}
	with := func(more map[string]*cel.Type) map[string]*cel.Type {
		out := maps.Clone(job)
		maps.Copy(out, more)
		out["change"] = changeType()
		return out
	}
	queue := map[string]*cel.Type{"queue": queueType(), "parent": queueType(), "now": cel.TimestampType}
	queueChange := map[string]*cel.Type{"queue": queueType(), "now": cel.TimestampType, "change": changeType()}
	flow := map[string]*cel.Type{"flow": flowType(), "now": cel.TimestampType}
	flowChange := maps.Clone(flow)
	flowChange["change"] = changeType()
	cronJob := map[string]*cel.Type{"cronJob": cronJobType(), "now": cel.TimestampType}
	cronJobChange := map[string]*cel.Type{"cronJob": cronJobType(), "now": cel.TimestampType, "change": changeType()}
	madeJobChange := maps.Clone(cronJobChange)
	madeJobChange["job"] = madeJobType()
	return map[string]kind{
		"jobflow": {
			roots:   flow,
			sources: map[string]map[string]*cel.Type{FromFlow: flowChange},
			effects: map[string]effectKind{
				"sync":   {doc: "makes the Jobs of which all that they depend on is Completed, or probed, and counts"},
				"delete": {doc: "deletes the flow's Jobs; what was counted stays", changes: true},
				"rest":   {doc: "does nothing; what was counted stays"},
			},
			phases: []string{"Pending", "Running", "Succeed", "Failed", "Terminating"},
			bind: func(f Facts) map[string]any {
				return map[string]any{"flow": &view{flowType, orNew(f.Flow)}, "now": types.Timestamp{Time: f.Now}}
			},
		},
		"job": {
			roots: job,
			sources: map[string]map[string]*cel.Type{
				FromJob:      with(nil),
				FromPod:      with(map[string]*cel.Type{"pod": podType(), "was": podType(), "task": taskType()}),
				FromPodGroup: with(map[string]*cel.Type{"podGroup": podGroupType(), "was": podGroupType()}),
				FromCommand:  with(nil),
			},
			effects: map[string]effectKind{
				"sync": {doc: "makes the pods and the PodGroup that the spec asks for, removes what is too many, counts"},
				"kill": {doc: "deletes the job's pods, but those to retain, and its PodGroup; counts a new version", retains: true, kills: true},
				"restartPods": {
					doc: "deletes the pods that the action aims at, but those to retain, so that they are made anew", retains: true,
					restarts: true,
				},
			},
			counters: map[string]Facts{
				"retryCount":  {Job: &Job{Status: JobStatus{RetryCount: math.MaxInt32}}},
				"resumeCount": {Job: &Job{Status: JobStatus{ResumeCount: math.MaxInt32}}},
			},
			phases: []string{
				"Pending", "Running", "Restarting", "Aborting", "Aborted", "Completing", "Completed", "Terminating",
				"Terminated", "Failed",
			},
			scopes: []string{"pod", "task", "partition"},
			bind:   bindJob,
		},
		"queue": {
			roots:   queue,
			sources: map[string]map[string]*cel.Type{FromQueue: queueChange, FromPodGroup: queueChange, FromCommand: queueChange},
			effects: map[string]effectKind{
				"sync":  {doc: "counts the queue's PodGroups"},
				"open":  {doc: "lets the queue take new work, and counts"},
				"close": {doc: "stops the queue from taking new work, and counts"},
			},
			sets:   map[string]bool{SetParent: false, SetClosedByParent: true},
			phases: []string{"Open", "Closed", "Closing", "Unknown"},
			bind:   bindQueue,
		},
		"cronjob": {
			roots:   cronJob,
			sources: map[string]map[string]*cel.Type{FromSchedule: cronJobChange, FromJob: madeJobChange},
			effects: map[string]effectKind{
				"sync":    {doc: "lists the Jobs that have not ended, and deletes those that the history limits no longer keep"},
				"start":   {doc: "makes the Job that is due", changes: true},
				"replace": {doc: "deletes the Jobs that have not ended, and makes the one that is due", changes: true},
			},
			phases: []string{"Waiting", "Active", "Suspended"},
			bind:   bindCronJob,
		},
	}
}

func (k kind) counterNames() []string { return slices.Sorted(maps.Keys(k.counters)) }

// Names lists the machines that the controllers can run.
func Names() []string { return slices.Sorted(maps.Keys(kinds())) }

func orNew[T any](of *T) *T {
	if of == nil {
		return new(T)
	}
	return of
}

func bindJob(f Facts) map[string]any {
	j := orNew(f.Job)
	return map[string]any{
		"job": &view{jobType, j}, "spec": &view{specType, j}, "status": &view{statusType, j},
		"now": types.Timestamp{Time: f.Now},
	}
}

func bindQueue(f Facts) map[string]any {
	return map[string]any{
		"queue": &view{queueType, orNew(f.Queue)}, "parent": &view{queueType, orNew(f.Parent)},
		"now": types.Timestamp{Time: f.Now},
	}
}

func bindCronJob(f Facts) map[string]any {
	return map[string]any{"cronJob": &view{cronJobType, orNew(f.CronJob)}, "now": types.Timestamp{Time: f.Now}}
}

// bindChange adds the variables of a source to the variables of all rows.
func bindChange(vars map[string]any, source string, c Change) {
	vars["change"] = &view{changeType, &c}
	switch source {
	case FromPod:
		vars["pod"], vars["was"], vars["task"] = &view{podType, orNew(c.Pod)}, &view{podType, orNew(c.PodWas)},
			&view{taskType, orNew(c.Task)}
	case FromPodGroup:
		vars["podGroup"], vars["was"] = &view{podGroupType, orNew(c.PodGroup)}, &view{podGroupType, orNew(c.PodGroupWas)}
	case FromJob:
		if c.MadeJob != nil { // a Job that another object created
			vars["job"] = &view{madeJobType, c.MadeJob}
		}
	}
}

// roots contains the variables of one evaluation.
type roots map[string]any

// ResolveName implements cel.Activation.
func (r roots) ResolveName(name string) (any, bool) { v, ok := r[name]; return v, ok }

// Parent implements cel.Activation.
func (roots) Parent() cel.Activation { return nil }

var _ ref.Val = (*view)(nil)
