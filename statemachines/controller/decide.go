package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines"
)

// cause is why an action is taken.
type cause struct {
	action  string
	event   string // one word: it becomes the reason of the state if the machine's row has none
	message string
	pod     *corev1.Pod // the pod that the event happened to; nil: no particular pod
	asked   bool        // a user requested it
	key     string      // of the entry with the start of the cause, if the action was delayed
}

// decide returns the action for a job now and, if an action will follow without a further change, the time until then.
//
// An event is derived from the present state, not from a change, and disappears once it was answered. For example, a failed pod belongs to
// an earlier version after a restart, and a deleted pod is no longer counted. Therefore the next controller also sees events that happened
// while none ran. For the same reason the status stores the causes of delayed actions.
func (r *jobs) decide(w *world) (cause, time.Duration) {
	policies := policiesOf(w.job)
	causes := newCauses(&w.job.Status)
	var first cause
	var at time.Time
	var wait time.Duration
	w.timeouts = timeouts{looked: true}
	consider := func(h happening, due time.Time, key string) {
		if left := due.Sub(w.now); left > 0 {
			running := runningTimeout{h, due.Add(-h.delay()), due, key}
			wait = sooner(wait, sooner(left, w.timeouts.add(running, w.now)))
			return
		}
		if first.action == "" || due.Before(at) {
			first, at = cause{action: h.Action, event: h.Event.Event, message: h.text(), pod: h.pod, key: key}, due
		}
	}
	for _, h := range r.happenings(w, policies) {
		switch delay := h.delay(); {
		case delay == 0:
			consider(h, earlier(h.at, w.now), "") // the clock of a node may be ahead
		case !causes.doubles(h):
			key, start := causes.begin(h, w.now)
			consider(h, start.Add(delay), key)
		}
	}
	for _, h := range r.lasting(w, causes, policies) {
		consider(h, h.at.Add(h.delay()), h.key)
	}
	w.causes = causes.entries()
	if q, ok := w.rec.asked(); ok {
		return cause{action: q.action, event: q.reason, message: q.message, asked: true}, 0
	}
	if first.action == "" {
		first.action = r.machine.Otherwise()
	}
	return first, wait
}

// happening is an event that leads to an action, with its time and its pod.
type happening struct {
	statemachines.Event
	statemachines.Decision
	at  time.Time
	pod *corev1.Pod
	key string // the key of a stored cause
}

// delay returns how long the cause must last before the action is taken.
func (h happening) delay() time.Duration {
	if h.Delayed {
		return max(h.After, h.Due.Sub(h.Since))
	}
	return h.After
}

// text returns an event as a text.
func (h happening) text() string {
	var b strings.Builder
	switch {
	case h.pod == nil:
		b.WriteString(h.Event.Event)
	case h.pod.Name == "":
		fmt.Fprintf(&b, "%s of a pod of task %s", h.Event.Event, h.Task)
	default:
		fmt.Fprintf(&b, "%s of pod %s", h.Event.Event, h.pod.Name)
	}
	if len(h.ExitCodes) > 0 {
		fmt.Fprintf(&b, " (exit code %s)", strings.Trim(fmt.Sprint(h.ExitCodes), "[]"))
	}
	if h.Policy != "" {
		timeout := ""
		if h.After > 0 {
			timeout = fmt.Sprintf(" (timeout %s)", h.After)
		}
		fmt.Fprintf(&b, ": %s%s requests %s", h.Policy, timeout, h.Action)
	}
	return b.String()
}

// happenings lists the visible events of a job's PodGroup and pods that lead to more than the plain action. A guard that fails affects only
// its own row. It is reported once.
func (r *jobs) happenings(w *world, policies statemachines.Policies) []happening {
	facts := w.facts()
	var out []happening
	observe := func(source string) (see func(statemachines.Change, *corev1.Pod, time.Time), idle bool) {
		o, err := r.machine.Observe(source, facts)
		if err != nil {
			_ = r.rowError(w, err)
			return nil, true
		}
		o = o.Calling(policies)
		return func(c statemachines.Change, pod *corev1.Pod, at time.Time) {
			c.Now, c.Job = w.now, facts.Job
			events, err := o.Events(c)
			if err != nil {
				_ = r.rowError(w, err) // it was reported; the events of the other rows still count
			}
			for _, e := range events {
				d := r.machine.Action(e.Request, policies)
				if d.Action == r.machine.Otherwise() {
					continue
				}
				h := happening{Event: e, Decision: d, at: at, pod: pod}
				if !e.Fact && h.delay() > 0 {
					lasts, err := r.machine.Holds(e.Row, source, c)
					if err != nil {
						_ = r.rowError(w, err)
					}
					if !lasts {
						continue
					}
				}
				out = append(out, h)
			}
		}, o.Idle()
	}
	if see, idle := observe(statemachines.FromPodGroup); !idle && w.group != nil {
		see(statemachines.Change{PodGroup: groupFacts(w.group)}, nil, w.now)
	}
	if see, idle := observe(statemachines.FromJob); !idle {
		see(statemachines.Change{}, nil, w.now)
	}
	if see, idle := observe(statemachines.FromPod); !idle {
		w.changes(facts.Job, see)
	}
	slices.SortStableFunc(out, func(a, b happening) int { return a.at.Compare(b.at) })
	return out
}

// changes calls see for each pod as if it were seen for the first time, and for each lost pod. It omits changes that the controllers
// themselves caused.
func (w *world) changes(facts *statemachines.Job, see func(statemachines.Change, *corev1.Pod, time.Time)) {
	tasks := map[string]*statemachines.Task{}
	for i := range facts.Tasks {
		tasks[facts.Tasks[i].Name] = &facts.Tasks[i]
	}
	unseen := &statemachines.Pod{}
	var task *statemachines.Task
	for _, pod := range w.pods {
		if w.owed(pod) || w.gone[pod.UID] || !w.wanted(pod) {
			continue
		}
		if is := pod.Annotations[batchv1alpha1.TaskSpecKey]; task == nil || is != task.Name {
			task = tasks[is]
		}
		see(statemachines.Change{Pod: podFacts(pod), PodWas: unseen, Task: task}, pod, happened(pod))
	}
	for _, pod := range w.lost {
		task := tasks[pod.Annotations[batchv1alpha1.TaskSpecKey]]
		see(statemachines.Change{Kind: statemachines.Deleted, Pod: podFacts(pod), Task: task}, pod, w.now)
	}
}

// policiesOf returns the policies of a job in the form of the state machine.
func policiesOf(job *batchv1alpha1.Job) statemachines.Policies {
	p := statemachines.Policies{UID: string(job.UID), Version: job.Status.Version, Job: policyList(job.Spec.Policies)}
	for i := range job.Spec.Tasks {
		p.Tasks = append(p.Tasks, statemachines.TaskPolicies{
			Name: job.Spec.Tasks[i].Name, Policies: policyList(job.Spec.Tasks[i].Policies),
		})
	}
	return p
}

func policyList(of []batchv1alpha1.LifecyclePolicy) []statemachines.Policy {
	var out []statemachines.Policy
	for i := range of {
		p := statemachines.Policy{Action: string(of[i].Action), ExitCode: of[i].ExitCode}
		if of[i].Event != "" {
			p.Events = append(p.Events, string(of[i].Event))
		}
		for _, e := range of[i].Events {
			p.Events = append(p.Events, string(e))
		}
		if of[i].Timeout != nil {
			p.Timeout = &of[i].Timeout.Duration
		}
		out = append(out, p)
	}
	return out
}

// sooner returns the shorter of two waits; 0 means no wait.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
