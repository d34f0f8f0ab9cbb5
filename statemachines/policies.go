package statemachines

import (
	"fmt"
	"slices"
	"time"
)

// policyRules is how a Job's own policies are read.
type policyRules struct {
	otherwise   string
	anyEvent    string
	internal    []string
	needTimeout []string
}

// Policy is one LifecyclePolicy of a Job.
type Policy struct {
	Action string
	// Events are those of event and events together.
	Events   []string
	ExitCode *int32
	// Timeout is nil where the policy has none.
	Timeout *time.Duration
}

// Policies is what a Job says should follow upon what.
type Policies struct {
	// UID and Version are those of the Job, its status' version.
	UID     string
	Version int32
	// Tasks has the policies of each task, Job those of the job.
	Tasks []TaskPolicies
	Job   []Policy
}

// TaskPolicies are the policies of one task.
type TaskPolicies struct {
	Name     string
	Policies []Policy
}

// Request asks which action follows upon an event.
type Request struct {
	// Action, where it is set, was commanded, and is the answer.
	Action string
	// Event is what happened; ExitCodes are those of all containers that failed.
	Event     string
	ExitCodes []int32
	// Task, Pod and PodUID are to whom it happened; "" is to none in particular.
	Task, Pod, PodUID string
	// JobUID, where it is set, is the Job that it was meant for: of another Job of that name nothing follows.
	JobUID string
	// Version is the job version that the pod was made in, where HasVersion is set: nothing follows upon what
	// happens to pods of an earlier one.
	Version    int32
	HasVersion bool
	// Otherwise is the action that the event's row names for when no policy answers.
	Otherwise string
}

// Decision is the action that follows.
type Decision struct {
	Action string
	// After is how long the cause of the event must last, from its Since, before the action is taken. The action is cancelled when Holds
	// reports that the cause is gone, when the job's pods are killed, and when the pods of its scope are restarted first.
	After time.Duration
	// Of is what the action aims at: pod, task, partition; "" is the whole job.
	Of string
	// Policy is the path of the policy that answered, such as spec.tasks[1].policies[0]; "" if none did.
	Policy string
}

// Action resolves a request: a commanded action wins; internal events, requests for another Job and those of an
// earlier version give the plain action; then the policies of the task, in order, then those of the job; then what
// the event's row says, then the plain action.
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

// hits says whether a policy answers: by its events, or by its exit code.
func (m *Machine) hits(r Request, p Policy) bool {
	if r.Event != "" && (p.Timeout != nil || !slices.Contains(m.policies.needTimeout, r.Event)) {
		if slices.Contains(p.Events, r.Event) || m.policies.anyEvent != "" && slices.Contains(p.Events, m.policies.anyEvent) {
			return true
		}
	}
	return p.ExitCode != nil && slices.Contains(r.ExitCodes, *p.ExitCode)
}

// mayCall says whether an event of a row may call for another than the plain action.
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

// CommandActions lists the actions that a Command may name. One that is of a task or a pod is for policies: a Command says of none.
func (m *Machine) CommandActions() []string {
	var out []string
	for _, a := range m.actions {
		if !a.internal && a.of == "" {
			out = append(out, a.name)
		}
	}
	return out
}

// PolicyEvents lists the events that a Job's policy may name, the word for any event first.
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
