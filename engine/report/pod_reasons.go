package report

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Reasons of PodScheduled=False (docs/compatibility.md). Autoscalers add nodes for pods whose reason is Unschedulable. So a pod has this
// reason only if another node would help.
const (
	ReasonUnschedulable  = unschedulable
	ReasonSchedulerError = "SchedulerError" // a binding was refused

	reasonQueueLimited   = "QueueLimited"
	reasonNotAdmitted    = "NotAdmitted"
	reasonGangIncomplete = "GangIncomplete"
	reasonPodRefused     = "PodRefused"
	reasonNotTried       = "NotTried"
	reasonPolicyPaused   = "PolicyPaused"
	reasonQueueUnusable  = "QueueUnusable"
	reasonNoPodGroup     = "PodGroupMissing"
	reasonFIFOBlocked    = "FIFOBlocked"
)

// ofSite maps a site to the reason of its rows that have no reason of their own.
var ofSite = map[string]string{ //nolint:gochecknoglobals // read only
	"jobValid":       reasonGangIncomplete,
	"jobReady":       reasonGangIncomplete,
	"jobPipelined":   reasonGangIncomplete,
	"jobEnqueueable": reasonNotAdmitted,
	"overused":       reasonQueueLimited,
	"allocatable":    reasonQueueLimited,
	"bindable":       reasonQueueLimited,
	"preemptive":     reasonQueueLimited,
	"taskFeasible":   reasonPodRefused,
}

// ofBuiltin maps the name of a built-in rule to its reason.
var ofBuiltin = map[string]string{ //nolint:gochecknoglobals // read only
	"queue":    reasonQueueUnusable,
	"paused":   reasonPolicyPaused,
	"pipeline": reasonNotTried,
	"podgroup": reasonNoPodGroup,
	"turn":     reasonNotTried,
	ruleFIFO:   reasonFIFOBlocked,
}

// ruleFIFO is the rule in the reason of a job that waits behind another job of its queue.
const ruleFIFO = "fifo"

// reasonOf returns the reason of a pod that waits only for this.
func reasonOf(why *model.Reason) string {
	own := why.Reason
	if own == "" && why.Site == "" && why.Table == "builtin" {
		own = ofBuiltin[why.Rule]
	}
	return cmp.Or(own, ofSite[why.Site], ReasonUnschedulable)
}

// followsOthers reports whether a reason follows from the job's other pods: the turn of the job ended because of these. The reason is that
// of a pod, or of the pods of a job that have none of their own.
func followsOthers(w *model.Wait) bool {
	if w.Task != "" {
		return w.Reason.Table == "builtin" && (w.Reason.Rule == "turn" || w.Reason.Rule == "role")
	}
	switch w.Reason.Site {
	case "jobReady", "jobPipelined", "overused", "preemptive":
		return true
	}
	return false
}

// Own reports whether a wait has a reason of its own, and not one that follows from the job's other pods. limited reports whether the
// reason is a limit of a queue.
func Own(w *model.Wait) (own, limited bool) {
	return !followsOthers(w), reasonOf(&w.Reason) == reasonQueueLimited
}

// PodReasons determines the reasons in the conditions of waiting pods, by job.
type PodReasons struct{ jobs map[string]*jobReasons }

// jobReasons contains what the pods of one job wait for.
type jobReasons struct {
	nodes bool   // some pod waits for a node, or for resources that are being freed
	other string // the first reason of another kind
	held  int64  // number of pods that wait for something of another kind

	counted, helped bool // result of nodesHelp
}

func (r *jobReasons) add(reason string) {
	if reason == ReasonUnschedulable {
		r.nodes = true
		return
	}
	r.other, r.held = cmp.Or(r.other, reason), r.held+1
}

// NewPodReasons reads what a plan decided about waiting pods.
func NewPodReasons(plan *model.Plan) *PodReasons {
	r := &PodReasons{jobs: map[string]*jobReasons{}}
	for i := range plan.Pipelines {
		b := &plan.Pipelines[i]
		r.of(b.Job).add(promised(b))
	}
	for i := range plan.Waits {
		w := &plan.Waits[i]
		if w.Task == "" || followsOthers(w) {
			continue
		}
		if reason := reasonOf(&w.Reason); reason != corev1.PodReasonSchedulingGated { // gated pods are counted by their gates
			r.of(w.Job).add(reason)
		}
	}
	return r
}

func (r *PodReasons) of(job string) *jobReasons {
	own := r.jobs[job]
	if own == nil {
		own = &jobReasons{}
		r.jobs[job] = own
	}
	return own
}

// promised returns the reason of a pod that is promised a node. It waits for resources that are being released there, or its queue is full
// until other pods are gone.
func promised(b *model.Bind) string {
	if b.Reason.Site == "bindable" {
		return cmp.Or(b.Reason.Reason, reasonQueueLimited)
	}
	return ReasonUnschedulable
}

// Promised returns the reason of a pod that waits on a node that it is promised.
func (r *PodReasons) Promised(j *model.Job, b *model.Bind) string { return r.inGang(j, promised(b)) }

// Held returns the reason of a pod whose placement is held while its gang waits for the rest.
func (r *PodReasons) Held(j *model.Job) string { return r.follow(j, reasonGangIncomplete) }

// Of returns the reason of the pod of w. If w belongs to a job, it returns the reason of the job's pods without a wait of their own.
func (r *PodReasons) Of(j *model.Job, w *model.Wait) string {
	own := reasonOf(&w.Reason)
	if followsOthers(w) {
		return r.follow(j, own)
	}
	return r.inGang(j, own)
}

// follow returns the reason of pods that would start with the job's other pods. It returns otherwise if there is none.
func (r *PodReasons) follow(j *model.Job, otherwise string) string {
	own := r.jobs[j.Key]
	switch {
	case own != nil && own.nodes && own.nodesHelp(j):
		return ReasonUnschedulable
	case own != nil && own.other != "":
		return own.other
	case own != nil && own.nodes:
		return reasonGangIncomplete
	}
	return otherwise
}

// inGang returns a pod's own reason, unless nodes alone cannot start its gang.
func (r *PodReasons) inGang(j *model.Job, reason string) string {
	own := r.jobs[j.Key]
	if reason != ReasonUnschedulable || own == nil || own.nodesHelp(j) {
		return reason
	}
	return cmp.Or(own.other, reasonGangIncomplete)
}

// nodesHelp reports whether the job can start, or grow, after nodes are added: enough of its pods wait for nothing else.
func (r *jobReasons) nodesHelp(j *model.Job) bool {
	if !r.counted {
		missing := j.MinMember - j.Ready()
		r.counted, r.helped = true, missing <= 0 || j.Counts[model.Pending]+j.Counts[model.Pipelined]-r.held-gated(j) >= missing
	}
	return r.helped
}

// gated returns the number of a job's pods with scheduling gates.
func gated(j *model.Job) (n int64) {
	for _, t := range j.Tasks {
		if t.Gated && t.Status == model.Pending {
			n++
		}
	}
	return n
}
