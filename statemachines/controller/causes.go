package controller

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines"
)

// causeKey begins the entries of status.controlledResources that store when the cause of a delayed action began. The rest of the key is the
// path of the policy, the row of the event, and the scope of the action. The value is a storedCause in JSON.
//
//	celsius.dev/cause/spec.policies[0]/pod-gone/              {"since": "2026-11-21T12:00:00Z", "event": "PodEvicted", ...}
//	celsius.dev/cause/spec.policies[1]/pod-failed/pod.job-a-0 {"since": "2026-11-21T12:00:00Z", "event": "PodFailed", ...}
//
// An entry is removed when the cause ends, when its action was taken, when the pods of its scope are restarted, and when the job's pods are
// killed.
const causeKey = "celsius.dev/cause/"

// mostCauses is the maximum number of causes that a status stores, the earliest first. A cause whose time the pods themselves show needs no
// entry to act.
const mostCauses = 100

// storedCause is the cause of a delayed action, with what is needed to take the action when the pod is gone.
type storedCause struct {
	Since     time.Time `json:"since"`
	Policy    string    `json:"policy,omitempty"`
	Row       string    `json:"row"`
	Event     string    `json:"event"`
	Task      string    `json:"task,omitempty"`
	Partition string    `json:"partition,omitempty"`
	Pod       string    `json:"pod,omitempty"`
	ExitCodes []int32   `json:"exitCodes,omitempty"`
}

// causeOf returns the key and the entry of a happening, with at as its start.
func causeOf(h happening, at time.Time) (string, storedCause) {
	c := storedCause{Since: at.UTC(), Policy: h.Policy, Row: h.Row, Event: h.Event.Event, Task: h.Task, ExitCodes: h.ExitCodes}
	if h.pod != nil {
		c.Pod = h.pod.Name
		c.Task = h.pod.Annotations[batchv1alpha1.TaskSpecKey]
		c.Partition = h.pod.Labels[batchv1alpha1.TaskPartitionID]
	}
	scope := ""
	if h.pod != nil && h.Of != "" {
		scope = scopeOf(h.Of, h.pod)
	}
	return causeKey + cmp.Or(h.Policy, "otherwise") + "/" + h.Row + "/" + scope, c
}

// standIn returns a pod with the name, task and partition of the pod to which the cause happened; nil if it happened to none.
func (c storedCause) standIn(namespace string) *corev1.Pod {
	if c.Pod == "" && c.Task == "" {
		return nil
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: c.Pod, Annotations: map[string]string{batchv1alpha1.TaskSpecKey: c.Task},
	}}
	if c.Partition != "" {
		pod.Labels = map[string]string{batchv1alpha1.TaskPartitionID: c.Partition}
	}
	return pod
}

// storedCauses reads the entries of a status. An entry that cannot be read is not one of ours, and is removed with the next write.
func storedCauses(s *batchv1alpha1.JobStatus) map[string]storedCause {
	out := map[string]storedCause{}
	for key, value := range s.ControlledResources {
		var c storedCause
		if strings.HasPrefix(key, causeKey) && json.Unmarshal([]byte(value), &c) == nil && !c.Since.IsZero() {
			out[key] = c
		}
	}
	return out
}

// causes dates the causes of delayed actions during one look at a job.
type causes struct {
	stored map[string]storedCause // from the present status
	seen   map[string]bool        // keys of causes that this look has seen
	kept   map[string]storedCause // for the next status
}

func newCauses(s *batchv1alpha1.JobStatus) *causes {
	return &causes{storedCauses(s), map[string]bool{}, map[string]storedCause{}}
}

// begin returns the key of a cause that is seen now, and its start: the time that its row gives, otherwise the stored time, otherwise now.
// No cause begins later than now, even if the clock of a node is ahead.
func (c *causes) begin(h happening, now time.Time) (string, time.Time) {
	start := earlier(h.Since, now)
	key, entry := causeOf(h, start)
	c.seen[key] = true
	if h.Dated && !h.Fact {
		return key, start // the object shows both the start and the end
	}
	for _, known := range []map[string]storedCause{c.stored, c.kept} {
		if e, ok := known[key]; ok && !e.Since.After(entry.Since) {
			entry = e
		}
	}
	c.kept[key] = entry
	return key, entry.Since
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// doubles reports whether a pod that is known only by its task is probably a pod whose cause is already stored by name.
func (c *causes) doubles(h happening) bool {
	if h.pod == nil || h.pod.Name != "" || h.Of == "" {
		return false
	}
	for _, e := range c.stored {
		if e.Pod != "" && e.Policy == h.Policy && e.Row == h.Row && e.Task == h.Task {
			return true
		}
	}
	return false
}

// lasting lists the stored causes that this look has not seen and that still apply. These are facts, such as the eviction of a pod that no
// longer exists, and causes whose row has a `while` that is still true. Causes of policies and pods that the spec no longer has are over.
func (r *jobs) lasting(w *world, c *causes, policies statemachines.Policies) []happening {
	var out []happening
	for _, key := range slices.Sorted(maps.Keys(c.stored)) {
		e := c.stored[key]
		row, known := r.machine.EventRow(e.Row)
		pod := e.standIn(w.job.Namespace)
		if c.seen[key] || !known || e.Pod != "" && !w.wanted(pod) {
			continue
		}
		request := statemachines.Request{Event: e.Event, Task: e.Task, Pod: e.Pod, ExitCodes: e.ExitCodes, Otherwise: row.Otherwise}
		d := r.machine.Action(request, policies)
		if d.Policy != e.Policy || max(d.After, row.After) == 0 {
			continue
		}
		if !row.Fact {
			change := w.changeOf(e, pod)
			if holds, err := r.machine.Holds(e.Row, row.From, change); err != nil || !holds {
				if err != nil {
					_ = r.rowError(w, err)
				}
				continue
			}
		}
		event := statemachines.Event{
			Request: request, Row: e.Row, Since: e.Since, Delayed: row.After > 0, Due: e.Since.Add(row.After), Fact: row.Fact,
		}
		out = append(out, happening{Event: event, Decision: d, at: e.Since, pod: pod, key: key})
		c.kept[key] = e
	}
	return out
}

// changeOf returns the change by which the `while` of a stored cause is evaluated: the pod as it is now, or its stand-in.
func (w *world) changeOf(e storedCause, pod *corev1.Pod) statemachines.Change {
	facts := w.facts()
	out := statemachines.Change{Now: w.now, Job: facts.Job, PodGroup: groupFacts(w.group), PodGroupWas: &statemachines.PodGroup{}}
	for i := range facts.Job.Tasks {
		if facts.Job.Tasks[i].Name == e.Task {
			out.Task = &facts.Job.Tasks[i]
		}
	}
	if pod == nil {
		return out
	}
	for _, p := range w.pods {
		if p.Name == e.Pod {
			pod = p
		}
	}
	out.Pod, out.PodWas = podFacts(pod), &statemachines.Pod{}
	return out
}

// entries returns the entries that the status will store: the earliest causes.
func (c *causes) entries() map[string]string {
	keys := slices.SortedFunc(maps.Keys(c.kept), func(a, b string) int {
		return cmp.Or(c.kept[a].Since.Compare(c.kept[b].Since), cmp.Compare(a, b))
	})
	out := map[string]string{}
	for _, key := range keys[:min(len(keys), mostCauses)] {
		if text, err := json.Marshal(c.kept[key]); err == nil {
			out[key] = string(text)
		}
	}
	return out
}

// enterCauses writes the causes of this look into a status. A kill and a final phase end all causes. A restart ends the causes of its
// scope, and an action that was taken ends its own cause.
func (r *jobs) enterCauses(w *world, s *batchv1alpha1.JobStatus, t transition) {
	next := map[string]string{}
	for key, value := range s.ControlledResources {
		if w.causes == nil || !strings.HasPrefix(key, causeKey) {
			next[key] = value
		}
	}
	maps.Copy(next, w.causes)
	delete(next, t.cause.key)
	ends := t.killed || r.machine.Final(t.outcome.Phase)
	maps.DeleteFunc(next, func(key, value string) bool {
		if !strings.HasPrefix(key, causeKey) {
			return false
		}
		var c storedCause
		if ends || json.Unmarshal([]byte(value), &c) != nil {
			return true
		}
		pod := c.standIn(w.job.Namespace)
		return pod != nil && slices.ContainsFunc(t.debts, func(d debt) bool { return slices.Contains(scopesOf(pod), d.scope) })
	})
	if s.ControlledResources = next; len(next) == 0 {
		s.ControlledResources = nil
	}
}
