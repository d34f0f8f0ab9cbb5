package statemachines

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func pod(phase string, containers ...Container) *Pod {
	return &Pod{Name: "j-a-0", UID: "u", Phase: phase, Version: 2, Containers: containers}
}

func deleting(p *Pod) *Pod { p.Deleting = true; return p }

func ended(code int32) Container { return Container{ExitCode: &code} }

// TestEvents derives events of all sources from changes.
func TestEvents(t *testing.T) {
	m := machine(t, "job")
	task := func(change func(*Task)) *Task {
		k := &Task{Name: "a", Replicas: 2}
		if change != nil {
			change(k)
		}
		return k
	}
	for _, c := range []struct {
		name, source string
		change       Change
		want         string
	}{
		{"a command", FromCommand, Change{Action: "AbortJob"}, "CommandIssued"},
		{"the job is new", FromJob, Change{Kind: Added}, "OutOfSync"},
		{"the gang is broken", FromPodGroup, Change{PodGroupWas: &PodGroup{Phase: "Running"}, PodGroup: &PodGroup{Phase: "Unknown"}}, "Unknown"},
		{
			"the gang is still broken", FromPodGroup,
			Change{PodGroupWas: &PodGroup{Phase: "Unknown"}, PodGroup: &PodGroup{Phase: "Unknown"}},
			"OutOfSync",
		},
		{
			"the gang was let in", FromPodGroup,
			Change{PodGroupWas: &PodGroup{Phase: "Pending"}, PodGroup: &PodGroup{Phase: "Inqueue"}},
			"OutOfSync",
		},
		{"a pod was added", FromPod, Change{Kind: Added, Pod: pod("Pending")}, "PodPending"},
		{"a pod is still pending", FromPod, Change{Pod: pod("Pending"), PodWas: pod("Pending")}, "OutOfSync"},
		{"a pod runs", FromPod, Change{Pod: pod("Running"), PodWas: pod("Pending")}, "PodRunning"},
		{"a pod is being deleted", FromPod, Change{Pod: deleting(pod("Running")), PodWas: pod("Running")}, "PodEvicted"},
		{"a pod is still being deleted", FromPod, Change{Pod: deleting(pod("Failed")), PodWas: deleting(pod("Running"))}, "OutOfSync"},
		{"a pod is seen first when it is being deleted", FromPod, Change{Kind: Added, Pod: deleting(pod("Running"))}, "OutOfSync"},
		{"a pod is gone", FromPod, Change{Kind: Deleted, Pod: pod("Running"), PodWas: pod("Running")}, "PodEvicted"},
		{
			"a pod failed", FromPod,
			Change{Pod: pod("Failed", ended(0), ended(137), Container{}, ended(1)), PodWas: pod("Running")},
			"PodFailed [137 1]",
		},
		{"a pod failed while nobody looked", FromPod, Change{Kind: Added, Pod: pod("Failed", ended(3))}, "PodFailed [3]"},
		{"a pod has failed before", FromPod, Change{Pod: pod("Failed", ended(3)), PodWas: pod("Failed")}, "OutOfSync"},
		{
			"one of two succeeded", FromPod,
			Change{Pod: pod("Succeeded"), PodWas: pod("Running"), Task: task(func(k *Task) { k.Succeeded = 1 })},
			"OutOfSync",
		},
		{
			"both of two succeeded", FromPod,
			Change{Pod: pod("Succeeded"), PodWas: pod("Running"), Task: task(func(k *Task) { k.Succeeded = 2 })},
			"TaskCompleted",
		},
		{
			"two restarts of three", FromPod,
			Change{Pod: pod("Running"), PodWas: pod("Running"), Task: task(func(k *Task) { k.Restarts = 2 })},
			"OutOfSync",
		},
		{
			"three restarts of three", FromPod,
			Change{Pod: pod("Running"), PodWas: pod("Running"), Task: task(func(k *Task) { k.Restarts = 3 })},
			"TaskFailed",
		},
		{"one restart of one", FromPod, Change{
			Pod: pod("Pending"), PodWas: pod("Running"),
			Task: task(func(k *Task) { k.Restarts, k.MaxRetry = 1, 1 }),
		}, "TaskFailed"},
		{"restarts without end", FromPod, Change{
			Pod: pod("Running"), PodWas: pod("Running"),
			Task: task(func(k *Task) { k.Restarts, k.MaxRetry = 99, -1 }),
		}, "OutOfSync"},
	} {
		got, err := m.Events(c.source, c.change)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if len(got) != 1 {
			t.Fatalf("%s: %d events, want one", c.name, len(got))
		}
		text := got[0].Event
		if got[0].ExitCodes != nil && text == "PodFailed" {
			text += fmt.Sprint(" ", got[0].ExitCodes)
		}
		if text != c.want {
			t.Errorf("%s: got %s, want %s", c.name, text, c.want)
		}
	}
}

// TestEventRequest checks that an event contains the complete input for Action.
func TestEventRequest(t *testing.T) {
	now := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	p := pod("Pending")
	p.CreatedAt = now.Add(-time.Minute)
	got, err := machine(t, "job").Events(FromPod, Change{Kind: Added, Now: now, Pod: p, Task: &Task{Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Event{{
		Request: Request{Event: "PodPending", Task: "a", Pod: "j-a-0", PodUID: "u", Version: 2, HasVersion: true},
		Row:     "pod-pending", Since: now.Add(-time.Minute), Dated: true,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDelayedEvents has a user's own row that gives an event once its cause has lasted, and names the action.
func TestDelayedEvents(t *testing.T) {
	m := edited(t, "- name: pod-changed\n", `- name: stuck
  from: pod
  when: pod.containers.exists(c, c.waiting == "ImagePullBackOff")
  after: 10m
  event: ImageMissing
  otherwise: AbortJob
- name: old
  from: pod
  when: pod.phase == "Pending"
  after: 1h
  since: pod.startedAt
  event: PodOld
- name: pod-changed
`)
	now := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	waits := func(started time.Time) *Pod {
		p := pod("Pending", Container{Ready: true}, Container{Waiting: "ImagePullBackOff"})
		p.StartedAt = started
		return p
	}
	due := func(c Change) string {
		got, err := m.Events(FromPod, c)
		if err != nil {
			t.Fatal(err)
		}
		out := ""
		for _, e := range got {
			out += e.Event
			if e.Delayed {
				out += " in " + e.Due.Sub(now).String()
			}
			out += "; "
		}
		return out
	}
	for _, c := range []struct {
		change Change
		want   string
	}{
		{Change{Now: now, Pod: waits(time.Time{}), PodWas: pod("Pending")}, "ImageMissing in 10m0s; PodOld in 1h0m0s; OutOfSync; "},
		{Change{Now: now, Pod: waits(now.Add(-59 * time.Minute)), PodWas: pod("Pending")}, "ImageMissing in 10m0s; PodOld in 1m0s; OutOfSync; "},
		{Change{Now: now, Pod: pod("Running"), PodWas: waits(now)}, "PodRunning; "},
	} {
		if got := due(c.change); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	for _, c := range []struct {
		row  string
		pod  *Pod
		want bool
	}{
		{"stuck", waits(now), true},
		{"stuck", pod("Pending"), false},
		{"pod-pending", pod("Pending"), true},
		{"pod-pending", deleting(pod("Pending")), false},
		{"pod-pending", pod("Running"), false},
		{"pod-failed", pod("Running"), true}, // a fact
		{"no-such-row", pod("Pending"), false},
	} {
		got, err := m.Holds(c.row, FromPod, Change{Now: now, Pod: c.pod, PodWas: pod("Pending")})
		if err != nil || got != c.want {
			t.Errorf("Holds(%s) of a pod that is %s: %v, %v, want %v", c.row, c.pod.Phase, got, err, c.want)
		}
	}
	d := m.Action(Request{Event: "ImageMissing", Otherwise: "AbortJob"}, Policies{})
	if diff := cmp.Diff(Decision{Action: "AbortJob"}, d); diff != "" {
		t.Error(diff)
	}
	if got := m.PolicyEvents(); !cmp.Equal(got, []string{
		"*", "JobUpdated", "Unknown", "PodEvicted", "PodFailed", "TaskCompleted",
		"TaskFailed", "PodPending", "ImageMissing", "PodOld",
	}) {
		t.Errorf("policies may name %q", got)
	}
}

// TestEventErrors checks that a failing row is reported, and does not hide the others.
func TestEventErrors(t *testing.T) {
	m := edited(t, "- name: pod-running\n",
		"- name: labelled\n  from: pod\n  when: pod.labels['x'] == 'y'\n  event: Labelled\n- name: pod-running\n")
	got, err := m.Events(FromPod, Change{Pod: pod("Running"), PodWas: pod("Pending")})
	if err == nil || len(got) != 1 || got[0].Event != "PodRunning" {
		t.Errorf("events %v, error %v; want PodRunning, and the error", got, err)
	}
	if _, err := m.Events(FromQueue, Change{}); err == nil {
		t.Error("a job has events of queues")
	}
}

// TestActions resolves policies in the order of the rules.
func TestActions(t *testing.T) {
	m := machine(t, "job")
	timeout := 5 * time.Minute
	p := Policies{
		UID: "uid", Version: 2,
		Tasks: []TaskPolicies{
			{"a", []Policy{
				{Action: "RestartTask", Events: []string{"PodFailed", "PodEvicted", "PodFailed"}},
				{Action: "TerminateJob", ExitCode: new(int32(9))},
			}},
			{"b", []Policy{{Action: "OpenSesame", Events: []string{"*"}}}},
		},
		Job: []Policy{
			{Action: "AbortJob", Events: []string{"PodPending"}},
			{Action: "RestartPod", Events: []string{"PodPending"}, Timeout: &timeout},
			{Action: "RestartJob", Events: []string{"PodFailed"}},
			{Action: "CompleteJob", ExitCode: new(int32(3))},
			{Action: "TerminateJob", Events: []string{"*"}},
		},
	}
	for _, c := range []struct {
		name    string
		request Request
		want    Decision
	}{
		{"a command wins", Request{Action: "ResumeJob", Event: "PodFailed", Task: "a"}, Decision{Action: "ResumeJob"}},
		{"an internal event", Request{Event: "OutOfSync", Task: "b"}, Decision{Action: "SyncJob"}},
		{"a command without an action", Request{Event: "CommandIssued"}, Decision{Action: "SyncJob"}},
		{"another job", Request{Event: "PodFailed", JobUID: "other"}, Decision{Action: "SyncJob"}},
		{"this job", Request{Event: "PodFailed", JobUID: "uid"}, Decision{Action: "RestartJob", Policy: "spec.policies[2]"}},
		{"an earlier version", Request{Event: "PodFailed", Version: 1, HasVersion: true}, Decision{Action: "SyncJob"}},
		{"this version", Request{Event: "PodFailed", Version: 2, HasVersion: true}, Decision{Action: "RestartJob", Policy: "spec.policies[2]"}},
		{"of the task first", Request{Event: "PodEvicted", Task: "a"}, Decision{
			Action: "RestartTask", Of: "task",
			Policy: "spec.tasks[0].policies[0]",
		}},
		{
			"of the task, by exit code of any container",
			Request{Event: "Odd", Task: "a", ExitCodes: []int32{1, 9}},
			Decision{Action: "TerminateJob", Policy: "spec.tasks[0].policies[1]"},
		},
		{"of the task, any event", Request{Event: "PodEvicted", Task: "b"}, Decision{Action: "OpenSesame", Policy: "spec.tasks[1].policies[0]"}},
		{"of the job, by exit code", Request{ExitCodes: []int32{3}, Task: "c"}, Decision{Action: "CompleteJob", Policy: "spec.policies[3]"}},
		{"the first that is pending needs a timeout", Request{Event: "PodPending"}, Decision{
			Action: "RestartPod", After: timeout, Of: "pod",
			Policy: "spec.policies[1]",
		}},
		{"any event", Request{Event: "Unknown"}, Decision{Action: "TerminateJob", Policy: "spec.policies[4]"}},
		{"no event", Request{}, Decision{Action: "SyncJob"}},
	} {
		if diff := cmp.Diff(c.want, m.Action(c.request, p)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	// A policy cannot request an action that only a Command may request.
	q := machine(t, "queue").Action(Request{Event: "Odd"}, Policies{Job: []Policy{{Action: "CloseQueue", Events: []string{"Odd"}}}})
	if diff := cmp.Diff(Decision{Action: "SyncQueue"}, q); diff != "" {
		t.Error(diff)
	}
}

// TestCalling checks that the events of Calling lead to the same actions as all events, except the plain action.
func TestCalling(t *testing.T) {
	m := machine(t, "job")
	events := []string{"*", "PodEvicted", "PodFailed", "TaskCompleted", "TaskFailed", "PodPending", "PodRunning", "OutOfSync", "Unknown"}
	called := 0
	rapid.Check(t, func(t *rapid.T) {
		policies := Policies{Version: rapid.Int32Range(0, 1).Draw(t, "version")}
		draw := func() (out []Policy) {
			for range rapid.IntRange(0, 2).Draw(t, "policies") {
				p := Policy{Action: rapid.SampledFrom(m.PolicyActions()).Draw(t, "action")}
				if rapid.Bool().Draw(t, "by exit code") {
					p.ExitCode = new(rapid.Int32Range(1, 2).Draw(t, "exit code"))
				} else {
					p.Events = rapid.SliceOfN(rapid.SampledFrom(events), 1, 2).Draw(t, "events")
				}
				if rapid.Bool().Draw(t, "with a timeout") {
					p.Timeout = new(time.Minute)
				}
				out = append(out, p)
			}
			return out
		}
		policies.Job, policies.Tasks = draw(), []TaskPolicies{{"a", draw()}}
		k := &Task{Name: "a", Replicas: 2, Succeeded: rapid.Int32Range(0, 2).Draw(t, "succeeded")}
		k.Restarts = rapid.Int32Range(0, 3).Draw(t, "restarts")
		phases := []string{"Pending", "Running", "Succeeded", "Failed"}
		p := pod(rapid.SampledFrom(phases).Draw(t, "phase"), ended(rapid.Int32Range(0, 2).Draw(t, "code")))
		p.Deleting = rapid.Bool().Draw(t, "deleting")
		c := Change{Kind: rapid.SampledFrom([]ChangeKind{Updated, Deleted}).Draw(t, "kind"), Pod: p, PodWas: &Pod{}, Task: k}
		o, err := m.Observe(FromPod, Facts{})
		if err != nil {
			t.Fatal(err)
		}
		actions := func(o Observer) (out []Decision) {
			all, err := o.Events(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range all {
				if d := m.Action(e.Request, policies); d.Action != m.Otherwise() {
					out = append(out, d)
				}
			}
			return out
		}
		want, got := actions(o), actions(o.Calling(policies))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("policies %+v, change %+v (-all rows +those that are asked):\n%s", policies, c, diff)
		}
		if o.Calling(policies).Idle() && len(want) > 0 {
			t.Errorf("nothing is to be told, and it leads to %+v", want)
		}
		called += len(want)
	})
	if called == 0 {
		t.Error("nothing called for an action")
	}
}
