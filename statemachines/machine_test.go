package statemachines

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/looplab/fsm"
	"pgregory.net/rapid"

	_ "github.com/celsius-scheduler/celsius/engine/seeds"
)

// twoTasks returns a job of two tasks with two pods each, whose gang has three pods.
func twoTasks(change func(*Job)) Facts {
	j := &Job{MinAvailable: 3, MaxRetry: 3, Tasks: []Task{{Name: "a", Replicas: 2}, {Name: "b", Replicas: 2}}}
	j.Status.MinAvailable = 3
	if change != nil {
		change(j)
	}
	return Facts{Job: j}
}

func counted(s JobStatus) Facts {
	return twoTasks(func(j *Job) { s.MinAvailable = 3; j.Status = s })
}

// step runs Step and Next with the same facts before and after the effect.
func step(t testing.TB, m *Machine, phase, action string, f Facts) string {
	t.Helper()
	s, err := m.Step(phase, action, f)
	if err != nil {
		t.Fatal(err)
	}
	o, err := m.Next(s, f)
	if err != nil {
		t.Fatal(err)
	}
	did := s.Effect
	if s.Retain != "" {
		did += " " + s.Retain
	}
	if s.Of != "" {
		did += " of " + s.Of
	}
	out := fmt.Sprintf("%s -> %q", did, o.Phase)
	for _, c := range slices.Sorted(maps.Keys(o.Counters)) {
		out += fmt.Sprintf(" %s+%d", c, o.Counters[c])
	}
	for _, name := range slices.Sorted(maps.Keys(o.Set)) {
		out += fmt.Sprintf(" set %s=%s", name, o.Set[name])
	}
	if o.Changed != (o.Phase != phase) {
		out += " CHANGED IS WRONG"
	}
	return out + " by " + o.Row
}

type stepCase struct {
	phase, action string
	facts         Facts
	want          string
}

func jobCases() []stepCase {
	none := twoTasks(nil)
	done := func(succeeded, failed int32, change func(*Job)) Facts {
		return twoTasks(func(j *Job) {
			j.Status = JobStatus{Succeeded: succeeded, Failed: failed, MinAvailable: 3}
			if change != nil {
				change(j)
			}
		})
	}
	var out []stepCase
	for _, phase := range []string{"Pending", "Running"} {
		for _, c := range []struct{ action, want string }{
			{"AbortJob", `kill finished -> "Aborting" by %s/AbortJob`},
			{"TerminateJob", `kill finished -> "Terminating" by %s/TerminateJob`},
			{"CompleteJob", `kill finished -> "Completing" by %s/CompleteJob`},
			{"RestartJob", `kill none -> "Restarting" retryCount+1 by %s/RestartJob`},
			{"RestartTask", `restartPods none of task -> "Restarting" retryCount+1 by %s/RestartTask`},
			{"RestartPod", `restartPods none of pod -> "Restarting" retryCount+1 by %s/RestartPod`},
			{"RestartPartition", `restartPods none of partition -> "Restarting" retryCount+1 by %s/RestartPartition`},
		} {
			out = append(out, stepCase{phase, c.action, none, fmt.Sprintf(c.want, phase)})
		}
	}
	for _, action := range []string{"RestartTask", "RestartPod", "RestartPartition"} {
		scope := strings.ToLower(strings.TrimPrefix(action, "Restart"))
		out = append(out,
			stepCase{"Restarting", action, counted(JobStatus{Terminating: 1}), `restartPods none of ` + scope + ` -> "Pending" by Restarting/` +
				action + `/pods-gone`},
			stepCase{"Restarting", action, counted(JobStatus{RetryCount: 3}), `restartPods finished of ` + scope + ` -> "Failed" by Restarting/` +
				action + `/retried-enough`})
	}
	for _, c := range [][3]string{
		{"Aborting", "Aborted", "AbortJob"},
		{"Completing", "Completed", "AbortJob"},
		{"Terminating", "Terminated", "SyncJob"},
	} {
		out = append(out,
			stepCase{c[0], c[2], counted(JobStatus{Succeeded: 1, Failed: 3}), `kill finished -> "` + c[1] + `" by ` + c[0] + `/*/pods-gone`},
			stepCase{c[0], c[2], counted(JobStatus{Terminating: 1}), `kill finished -> "` + c[0] + `" by ` + c[0] + `/*`},
			stepCase{c[0], c[2], counted(JobStatus{Pending: 1}), `kill finished -> "` + c[0] + `" by ` + c[0] + `/*`})
	}
	for _, phase := range []string{"Completed", "Failed", "Terminated"} {
		out = append(out, stepCase{phase, "RestartJob", none, `kill finished -> "` + phase + `" by ` + phase + `/*`})
	}
	return append(
		out,
		stepCase{"", "SyncJob", counted(JobStatus{Running: 2}), `sync -> "" by Pending/*`},
		stepCase{"", "SyncJob", counted(JobStatus{Running: 3}), `sync -> "Running" by Pending/*/gang-runs`},
		stepCase{"Pending", "ResumeJob", counted(JobStatus{Running: 1, Succeeded: 1, Failed: 1}), `sync -> "Running" by Pending/*/gang-runs`},
		stepCase{"Pending", "NeverHeardOf", counted(JobStatus{Pending: 4}), `sync -> "Pending" by Pending/*`},
		stepCase{"Running", "SyncJob", twoTasks(func(j *Job) { j.Tasks = nil }), `sync -> "Running" by Running/*/no-pods-wanted`},
		stepCase{
			"Running", "SyncJob", done(1, 0, func(j *Job) { j.MinSuccess = new(int32(1)); j.Status.Running = 3 }),
			`sync -> "Completed" by Running/*/enough-succeeded`,
		},
		stepCase{
			"Running", "SyncJob", done(3, 1, func(j *Job) { j.MinSuccess = new(int32(4)) }),
			`sync -> "Failed" by Running/*/too-few-succeeded`,
		},
		stepCase{"Running", "SyncJob", done(3, 1, nil), `sync -> "Completed" by Running/*/gang-succeeded`},
		stepCase{"Running", "SyncJob", done(2, 2, nil), `sync -> "Failed" by Running/*/gang-failed`},
		stepCase{"Running", "SyncJob", done(3, 1, func(j *Job) {
			j.Tasks[1].MinAvailable, j.Tasks[1].Succeeded, j.Tasks[0].Succeeded = new(int32(2)), 1, 2
		}), `sync -> "Completed" by Running/*/gang-succeeded`}, // 3 < 2 + 2: tasks do not count individually
		stepCase{"Running", "SyncJob", done(3, 1, func(j *Job) {
			j.Tasks[0].MinAvailable, j.Tasks[1].MinAvailable = new(int32(1)), new(int32(2))
			j.Tasks[0].Succeeded, j.Tasks[1].Succeeded = 2, 1
		}), `sync -> "Failed" by Running/*/task-failed`},
		stepCase{"Running", "SyncJob", counted(JobStatus{Running: 2, Pending: 2}), `sync -> "Pending" by Running/*/gang-broken`},
		stepCase{"Running", "SyncJob", counted(JobStatus{Running: 3, Pending: 1}), `sync -> "Running" by Running/*`},
		stepCase{"Running", "RestartJob", counted(JobStatus{RetryCount: 1}), `kill none -> "Restarting" retryCount+1 by Running/RestartJob`},
		stepCase{"Running", "RestartJob", counted(JobStatus{RetryCount: 2}), `kill finished -> "Restarting" retryCount+1 by Running/RestartJob`},
		stepCase{"Restarting", "SyncJob", counted(JobStatus{Terminating: 2}), `sync -> "Restarting" by Restarting/SyncJob`},
		stepCase{"Restarting", "SyncJob", counted(JobStatus{Terminating: 1}), `sync -> "Pending" by Restarting/SyncJob/pods-gone`},
		stepCase{"Restarting", "SyncJob", counted(JobStatus{RetryCount: 3}), `sync -> "Failed" by Restarting/SyncJob/retried-enough`},
		stepCase{"Restarting", "AbortJob", counted(JobStatus{Terminating: 2}), `kill none -> "Restarting" by Restarting/*`},
		stepCase{"Restarting", "AbortJob", counted(JobStatus{RetryCount: 1}), `kill none -> "Pending" by Restarting/*/pods-gone`},
		stepCase{
			"Restarting", "AbortJob", counted(JobStatus{RetryCount: 3, Terminating: 4}),
			`kill finished -> "Failed" by Restarting/*/retried-enough`,
		},
		stepCase{
			"Aborting", "ResumeJob", counted(JobStatus{Terminating: 4}),
			`kill finished -> "Restarting" resumeCount+1 retryCount+1 by Aborting/ResumeJob`,
		},
		stepCase{"Aborted", "ResumeJob", none, `kill finished -> "Restarting" resumeCount+1 retryCount+1 by Aborted/ResumeJob`},
		stepCase{"Aborted", "RestartJob", none, `kill finished -> "Aborted" by Aborted/*`},
	)
}

func queueCases() []stepCase {
	queue := func(parent string, change func(*Queue)) Facts {
		f := Facts{Queue: &Queue{Name: "q", Parent: "p"}, Parent: &Queue{Name: "p", State: parent}}
		if change != nil {
			change(f.Queue)
		}
		return f
	}
	busy := func(q *Queue) { q.Completed = 1 }
	marked := func(q *Queue) { q.ClosedByParent = true }
	orphan := func(q *Queue) { q.Parent = "" }
	root := func(q *Queue) { q.Name, q.Parent = "root", "" }
	return []stepCase{
		{"", "SyncQueue", queue("", busy), `sync -> "" by Open/*`},
		{"", "CloseQueue", queue("", busy), `close -> "Closing" set closedByParent=false by Open/CloseQueue/work-left`},
		{"Open", "OpenQueue", queue("Open", busy), `sync -> "Open" by Open/OpenQueue`},
		{"Open", "CloseQueue", queue("Open", nil), `close -> "Closed" set closedByParent=false by Open/CloseQueue/empty`},
		{
			"Open", "CloseQueue", queue("Open", func(q *Queue) { q.Pending = 1 }),
			`close -> "Closing" set closedByParent=false by Open/CloseQueue/work-left`,
		},
		{"Open", "CloseQueue", queue("", root), `close -> "Open" by Open/CloseQueue/root`},
		{"Open", "SyncQueue", queue("Open", nil), `sync -> "Open" by Open/*`},
		{"Open", "SyncQueue", queue("", orphan), `sync -> "Open" set parent=root by Open/*/no-parent`},
		{"Open", "SyncQueue", queue("", root), `sync -> "Open" by Open/*`},
		{"Open", "SyncQueue", queue("Closed", nil), `sync -> "Closed" set closedByParent=true by Open/*/parent-closed`},
		{"Open", "SyncQueue", queue("Closing", busy), `sync -> "Closing" set closedByParent=true by Open/*/parent-closed-work-left`},
		{"Open", "SyncQueue", queue("Open", marked), `sync -> "Open" set closedByParent=false by Open/*/opened-with-parent`},
		{"Closing", "SyncQueue", queue("", orphan), `sync -> "Closing" set parent=root by Closing/*/no-parent`},
		{"Closing", "SyncQueue", queue("Open", nil), `sync -> "Closed" by Closing/*/empty`},
		{"Closing", "SyncQueue", queue("Open", busy), `sync -> "Closing" by Closing/*`},
		{"Closing", "SyncQueue", queue("Closed", marked), `sync -> "Closed" by Closing/*/empty`},
		{"Closing", "SyncQueue", queue("Open", marked), `sync -> "Open" by Closing/*/parent-open`},
		{"Closing", "CloseQueue", queue("Open", busy), `sync -> "Closing" set closedByParent=false by Closing/CloseQueue/work-left`},
		{"Closing", "CloseQueue", queue("Open", nil), `sync -> "Closed" set closedByParent=false by Closing/CloseQueue/empty`},
		{"Closing", "OpenQueue", queue("Open", busy), `open -> "Open" by Closing/OpenQueue/opened`},
		{"Closing", "OpenQueue", queue("Closing", busy), `open -> "Closing" by Closing/OpenQueue/parent-closed`},
		{"Closed", "OpenQueue", queue("Open", nil), `open -> "Open" by Closed/OpenQueue/opened`},
		{"Closed", "OpenQueue", queue("Closed", nil), `open -> "Closed" by Closed/OpenQueue/parent-closed`},
		{"Closed", "CloseQueue", queue("Closed", marked), `sync -> "Closed" set closedByParent=false by Closed/CloseQueue`},
		{"Closed", "SyncQueue", queue("Open", nil), `sync -> "Closed" by Closed/*`},
		{"Closed", "SyncQueue", queue("Open", marked), `sync -> "Open" by Closed/*/parent-open`},
		{"Closed", "SyncQueue", queue("Closed", marked), `sync -> "Closed" by Closed/*`},
		{"Closed", "SyncQueue", queue("", orphan), `sync -> "Closed" set parent=root by Closed/*/no-parent`},
		{"Unknown", "OpenQueue", queue("Open", nil), `open -> "Open" by Unknown/OpenQueue`},
		{"Unknown", "CloseQueue", queue("Open", nil), `close -> "Closed" set closedByParent=false by Unknown/CloseQueue/empty`},
		{"Unknown", "CloseQueue", queue("Open", busy), `close -> "Closing" set closedByParent=false by Unknown/CloseQueue/work-left`},
		{"Unknown", "SyncQueue", queue("Open", busy), `sync -> "Unknown" by Unknown/*`},
	}
}

// TestSteps runs through every transition of both machines. It fails if no case takes a transition.
func TestSteps(t *testing.T) {
	for name, cases := range map[string][]stepCase{"job": jobCases(), "queue": queueCases()} {
		m := machine(t, name)
		taken := map[string]bool{}
		for _, c := range cases {
			got := step(t, m, c.phase, c.action, c.facts)
			if got != c.want {
				t.Errorf("%s in phase %q: %s\ngot  %s\nwant %s", name, c.phase, c.action, got, c.want)
			}
			_, row, _ := strings.Cut(got, " by ")
			taken[row] = true
		}
		for _, mv := range m.moves {
			if row := mv.from + "/" + mv.event; !taken[row] {
				t.Errorf("%s: no case takes %s to %s", name, row, mv.to)
			}
		}
	}
}

// TestShared checks that one machine serves many jobs at the same time.
func TestShared(t *testing.T) {
	m, cases := machine(t, "job"), jobCases()
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range cases {
				c := cases[(i+w*7)%len(cases)]
				s, err := m.Step(c.phase, c.action, c.facts)
				if err != nil {
					t.Error(err)
					return
				}
				o, err := m.Next(s, c.facts)
				if err != nil || !strings.HasSuffix(c.want, " by "+o.Row) {
					t.Errorf("%s in %s: %+v, %v, want %s", c.action, c.phase, o, err, c.want)
				}
			}
		})
	}
	all.Wait()
}

// TestTransitionsAreRun checks that looplab/fsm decides: without the transition, Next fails although its row exists.
func TestTransitionsAreRun(t *testing.T) {
	m := machine(t, "job")
	m.moves = slices.DeleteFunc(m.moves, func(x move) bool { return x.from == "Running" && x.event == "AbortJob" })
	s, err := m.Step("Running", "AbortJob", twoTasks(nil))
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Next(s, twoTasks(nil))
	if _, ok := errors.AsType[fsm.InvalidEventError](err); !ok {
		t.Fatalf("Next gives %v, want an InvalidEventError", err)
	}
	// The instance that failed is not reused, and the others still work.
	if got, want := step(t, m, "Pending", "AbortJob", twoTasks(nil)), `kill finished -> "Aborting" by Pending/AbortJob`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestStepErrors(t *testing.T) {
	m := machine(t, "job")
	if _, err := m.Step("Gone", "SyncJob", Facts{}); err == nil || !strings.Contains(err.Error(), `no phase "Gone"`) {
		t.Errorf("an unknown phase gives %v", err)
	}
	if _, err := m.Next(Step{Phase: "Running"}, Facts{}); err == nil {
		t.Error("a step that Step did not make is taken")
	}
}

// TestGuardFails checks that the error of a guard contains its position, and affects only its own object.
func TestGuardFails(t *testing.T) {
	m := edited(t, "when: job.replicas == 0, to", `when: "job.annotations['deadline'] == 'x'", to`)
	s, err := m.Step("Running", "SyncJob", twoTasks(nil))
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Next(s, twoTasks(nil))
	var row *RowError
	if !errors.As(err, &row) {
		t.Fatalf("Next gives %v, want a RowError", err)
	}
	if row.Row != "Running/*/no-pods-wanted" || !strings.HasPrefix(row.Place, "job.yaml:") ||
		!strings.Contains(err.Error(), "no such key: deadline") {
		t.Errorf("the error does not say where: %v", err)
	}
	f := twoTasks(func(j *Job) { j.Annotations = map[string]string{"deadline": "x"} })
	if got, want := step(t, m, "Running", "SyncJob", f), `sync -> "Running" by Running/*/no-pods-wanted`; got != want {
		t.Errorf("another object: got %s, want %s", got, want)
	}
}

// TestPods checks that a guard can read the pods of a job, and that they are created only for guards that read them.
func TestPods(t *testing.T) {
	m := edited(t, "when: job.replicas == 0, to", `when: "job.pods.filter(p, p.phase == 'Failed' && p.role == 'ps').size() > 1", to`)
	made := 0
	with := func(pods ...Pod) Facts {
		return twoTasks(func(j *Job) { j.Pods = func() []Pod { made++; return pods } })
	}
	lost := Pod{Role: "ps", Phase: "Failed"}
	for _, c := range []struct {
		facts Facts
		want  string
	}{
		{twoTasks(nil), "Running/*"},
		{with(lost, Pod{Role: "ps", Phase: "Running"}, Pod{Role: "worker", Phase: "Failed"}), "Running/*"},
		{with(lost, lost), "Running/*/no-pods-wanted"},
	} {
		if got := step(t, m, "Running", "SyncJob", c.facts); !strings.HasSuffix(got, " by "+c.want) {
			t.Errorf("got %s, want it by %s", got, c.want)
		}
	}
	if made != 2 {
		t.Errorf("the list of pods was made %d times, want 2", made)
	}
	made = 0
	step(t, machine(t, "job"), "Running", "SyncJob", with(lost))
	if made != 0 {
		t.Error("the list of pods was made for a machine that does not read it")
	}
}

// edited returns the built-in machine of jobs with one change.
func edited(t testing.TB, old, changed string) *Machine {
	t.Helper()
	text, err := shipped.ReadFile("job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), old); n != 1 {
		t.Fatalf("%q stands %d times in job.yaml", old, n)
	}
	m, issues := LoadFile("job.yaml", []byte(strings.Replace(string(text), old, changed, 1)))
	if m == nil {
		t.Fatal(issues.Error())
	}
	return m
}

// TestTimers checks that a row with after applies once the phase has lasted, and only while its guard is true.
func TestTimers(t *testing.T) {
	m := edited(t, "        - {name: gang-runs,",
		"        - {name: late, when: status.running == 0, after: 1h, to: Failed, reason: Late}\n        - {name: gang-runs,")
	entered := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	at := func(d time.Duration, running int32) Facts {
		f := counted(JobStatus{Running: running})
		f.Since, f.Now = entered, entered.Add(d)
		return f
	}
	want := []Timer{{Row: "Pending/*/late", At: entered.Add(time.Hour)}}
	for _, c := range []struct {
		name  string
		facts Facts
		want  []Timer
		next  string
	}{
		{"before", at(59*time.Minute, 0), want, `sync -> "Pending" by Pending/*`},
		{"due", at(time.Hour, 0), want, `sync -> "Failed" by Pending/*/late`},
		{"the cause has gone", at(time.Hour, 1), nil, `sync -> "Pending" by Pending/*`},
		{"when it began is not known", Facts{Job: at(0, 0).Job, Now: entered}, want, `sync -> "Pending" by Pending/*`},
	} {
		got, err := m.Timers("Pending", c.facts)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if got := step(t, m, "Pending", "SyncJob", c.facts); got != c.next {
			t.Errorf("%s: got %s, want %s", c.name, got, c.next)
		}
	}
	if got, err := m.Timers("Running", at(0, 0)); got != nil || err != nil {
		t.Errorf("another phase has timers %v, error %v", got, err)
	}
}

// TestWalks lets arbitrary events happen to jobs. There must be no error, no unknown phase, no transition after a final phase, and no more
// restarts than maxRetry without a command to resume.
func TestWalks(t *testing.T) {
	m := machine(t, "job")
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.Int32Range(0, 3)
		j := &Job{MinAvailable: few.Draw(t, "minAvailable"), MaxRetry: few.Draw(t, "maxRetry")}
		if rapid.Bool().Draw(t, "minSuccess is set") {
			j.MinSuccess = new(few.Draw(t, "minSuccess"))
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "tasks") {
			j.Tasks = append(j.Tasks, Task{Name: fmt.Sprint(i), Replicas: few.Draw(t, "replicas")})
		}
		actions := append(m.PolicyActions(), "SyncJob", "EnqueueJob", "Nonsense")
		actions = slices.DeleteFunc(actions, func(a string) bool { return a == "ResumeJob" })
		phase := ""
		for range 20 {
			j.Status = JobStatus{
				Pending: few.Draw(t, "pending"), Running: few.Draw(t, "running"), Succeeded: few.Draw(t, "succeeded"), Failed: few.Draw(t, "failed"),
				Terminating: few.Draw(t, "terminating"), MinAvailable: j.MinAvailable, RetryCount: j.Status.RetryCount,
			}
			s, err := m.Step(phase, rapid.SampledFrom(actions).Draw(t, "action"), Facts{Job: j})
			if err != nil {
				t.Fatal(err)
			}
			o, err := m.Next(s, Facts{Job: j})
			if err != nil {
				t.Fatal(err)
			}
			if m.Final(phase) && (o.Changed || s.Retain == retainNone) {
				t.Fatalf("%s does more than to clean up: %+v, %+v", phase, s, o)
			}
			if o.Phase != "" && !slices.Contains(m.Phases(), o.Phase) {
				t.Fatalf("there is no phase %q", o.Phase)
			}
			phase = o.Phase
			j.Status.RetryCount += int32(o.Counters["retryCount"])
			if j.Status.RetryCount > max(j.MaxRetry, 1) {
				t.Fatalf("restarted %d times with maxRetry %d", j.Status.RetryCount, j.MaxRetry)
			}
		}
	})
}

// TestSumOfReplicas checks tasks that together request more pods than an int32 can store: they still request pods.
func TestSumOfReplicas(t *testing.T) {
	m := machine(t, "job")
	f := Facts{Job: &Job{MinAvailable: 1, Status: JobStatus{Running: 1}, Tasks: []Task{
		{Replicas: math.MaxInt32},
		{Replicas: math.MaxInt32},
		{Replicas: 2},
	}}}
	step, err := m.Step("Running", "SyncJob", f)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Next(step, f)
	if err != nil || out.Row != "Running/*" {
		t.Errorf("%s decides, %v", out.Row, err)
	}
}
