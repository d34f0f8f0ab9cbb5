package statemachines

import (
	"fmt"
	"slices"
	"time"
)

// policyRules defines how a Job's own policies are read.
type policyRules struct {
	otherwise   string
	anyEvent    string
	internal    []string
	needTimeout []string
}

// Policy is one LifecyclePolicy of a Job.
type Policy struct {
	Action string
	// Events are the values of event and events together.
	Events   []string
	ExitCode *int32
	// Timeout is nil if the policy has none.
	Timeout *time.Duration
}

// Policies contains the policies of a Job.
type Policies struct {
	// UID is the UID of the Job, and Version is the version in its status.
	UID     string
	Version int32
	// Tasks contains the policies of each task, and Job those of the job.
	Tasks []TaskPolicies
	Job   []Policy
}

// TaskPolicies are the policies of one task.
type TaskPolicies struct {
	Name     string
	Policies []Policy
}

// Request is the input of Action: an event, or a commanded action.
type Request struct {
	// Action, if set, is a commanded action. It is the result.
	Action string
	// Event is the event. ExitCodes are the exit codes of all failed containers.
	Event     string
	ExitCodes []int32
	// Task, Pod and PodUID are the target of the event; "" means no particular one.
	Task, Pod, PodUID string
	// JobUID, if set, is the UID of the Job that the event is meant for. For another Job of the same name the result is the plain action.
	JobUID string
	// Version is the job version in which the pod was created, if HasVersion is set. For pods of an earlier version the result is the plain
	// action.
	Version    int32
	HasVersion bool
	// Otherwise is the action that the event's row names if no policy applies.
	Otherwise string
}

// Decision is the resulting action.
type Decision struct {
	Action string
	// After is how long the cause of the event must last, from its Since, before the action is taken. The action is cancelled when Holds
	// reports that the cause has ended, when the job's pods are killed, and when the pods of its scope are restarted first.
	After time.Duration
	// Of is the target of the action: pod, task or partition. "" means the whole job.
	Of string
	// Policy is the path of the policy that applied, such as spec.tasks[1].policies[0], or "".
	Policy string
}

// Action returns the action for a request. The first of these rules that applies decides:
//   - a commanded action is the result;
//   - internal events, requests for another Job and those of an earlier version give the plain action;
//   - the policies of the task, in order;
//   - the policies of the job, in order;
//   - the action in the event's row;
//   - the plain action.
func (m *Machine) Action(r Request, p Policies) Decision {
	if r.Action != "" {
		return m.decision(r.Action, 0, "")
	}
	plain := m.decision(m.policies.otherwise, 0, "")
	stale := r.HasVersion && r.Version < p.Version || r.JobUID != "" && r.JobUID != p.UID
	if stale || slices.Contains(m.policies.internal, r.Event) {
		return plain
	}
	if r.Task != "" {
		i := slices.IndexFunc(p.Tasks, func(t TaskPolicies) bool { return t.Name == r.Task })
		if i >= 0 {
			if d, hit := m.first(r, p.Tasks[i].Policies, fmt.Sprintf("spec.tasks[%d].policies", i)); hit {
				return d
			}
		}
	}
	if d, hit := m.first(r, p.Job, "spec.policies"); hit {
		return d
	}
	if r.Otherwise != "" {
		return m.decision(r.Otherwise, 0, "")
	}
	return plain
}

func (m *Machine) first(r Request, policies []Policy, path string) (Decision, bool) {
	for i, p := range policies {
		if a := m.action(p.Action); a != nil && a.command {
			continue
		}
		if m.hits(r, p) {
			var after time.Duration
			if p.Timeout != nil {
				after = *p.Timeout
			}
			return m.decision(p.Action, after, fmt.Sprintf("%s[%d]", path, i)), true
		}
	}
	return Decision{}, false
}

// hits reports whether a policy applies, by its events or by its exit code.
func (m *Machine) hits(r Request, p Policy) bool {
	if r.Event != "" && (p.Timeout != nil || !slices.Contains(m.policies.needTimeout, r.Event)) {
		if slices.Contains(p.Events, r.Event) || m.policies.anyEvent != "" && slices.Contains(p.Events, m.policies.anyEvent) {
			return true
		}
	}
	return p.ExitCode != nil && slices.Contains(r.ExitCodes, *p.ExitCode)
}

// mayCall reports whether an event of a row may lead to an action other than the plain action.
func (m *Machine) mayCall(r *eventRow, p Policies) bool {
	if slices.Contains(m.policies.internal, r.event) {
		return false
	}
	may := func(p Policy) bool {
		return p.ExitCode != nil && r.exitCodes != nil || m.hits(Request{Event: r.event}, p)
	}
	return r.otherwise != "" || slices.ContainsFunc(p.Job, may) ||
		slices.ContainsFunc(p.Tasks, func(t TaskPolicies) bool { return slices.ContainsFunc(t.Policies, may) })
}

func (m *Machine) decision(name string, after time.Duration, policy string) Decision {
	d := Decision{Action: name, After: after, Policy: policy}
	if a := m.action(name); a != nil {
		d.Of = a.of
	}
	return d
}

// PolicyActions lists the actions that a Job's policy may name.
func (m *Machine) PolicyActions() []string {
	var out []string
	for _, a := range m.actions {
		if !a.internal && !a.command {
			out = append(out, a.name)
		}
	}
	return out
}

// CommandActions lists the actions that a Command may name. Actions on a task or a pod are for policies only, because a Command names no
// task or pod.
func (m *Machine) CommandActions() []string {
	var out []string
	for _, a := range m.actions {
		if !a.internal && a.of == "" {
			out = append(out, a.name)
		}
	}
	return out
}

// PolicyEvents lists the events that a Job's policy may name. The word for any event is first.
func (m *Machine) PolicyEvents() []string {
	var out []string
	if m.policies.anyEvent != "" {
		out = append(out, m.policies.anyEvent)
	}
	for _, r := range m.events {
		if !slices.Contains(m.policies.internal, r.event) && !slices.Contains(out, r.event) {
			out = append(out, r.event)
		}
	}
	return out
}
