package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// nightly returns a CronJob that starts a Job each hour, as a user writes it. Stages begin at twelve o'clock.
func nightly(t *testing.T) *batchv1alpha1.CronJob {
	t.Helper()
	text := `
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: nightly, namespace: team}
spec:
  concurrencyPolicy: Allow
  schedule: "0 * * * *"
  timeZone: Etc/UTC
  jobTemplate:
    metadata: {labels: {app: report}, annotations: {why: nightly}}
    spec:
      schedulerName: volcano
      minAvailable: 1
      tasks: [{name: main, replicas: 1, template: {spec: {containers: [{name: main, image: busybox}]}}}]
`
	c := &batchv1alpha1.CronJob{}
	if err := yaml.UnmarshalStrict([]byte(text), c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *stage) cronJob() *batchv1alpha1.CronJob {
	s.t.Helper()
	c := &batchv1alpha1.CronJob{}
	if err := s.api.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "nightly"}, c); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// at sets the clock to a time of day and reconciles. It returns the existing Jobs and the status as a text.
func (s *stage) at(clock string) string {
	s.t.Helper()
	at, err := time.Parse("15:04", clock)
	if err != nil {
		s.t.Fatal(err)
	}
	s.now = time.Date(2026, 11, 21, at.Hour(), at.Minute(), 0, 0, time.UTC)
	s.settle()
	list := &batchv1alpha1.JobList{}
	if err := s.api.List(context.Background(), list); err != nil {
		s.t.Fatal(err)
	}
	hour := func(name string) string {
		var minutes int64
		if _, err := fmt.Sscanf(name, "nightly-%d", &minutes); err != nil {
			return name
		}
		return time.Unix(minutes*60, 0).UTC().Format("15h")
	}
	var jobs, active []string
	for _, j := range list.Items {
		jobs = append(jobs, hour(j.Name))
	}
	c := s.cronJob()
	for _, ref := range c.Status.Active {
		active = append(active, hour(ref.Name))
	}
	clockOf := func(t *metav1.Time) string {
		if t == nil {
			return "never"
		}
		return t.UTC().Format("15:04")
	}
	return fmt.Sprintf("jobs %s; active %s; last %s, successful %s", strings.Join(jobs, " "), strings.Join(active, " "),
		clockOf(c.Status.LastScheduleTime), clockOf(c.Status.LastSuccessfulTime))
}

// end sets the final phase of the Job of an hour.
func (s *stage) end(hour int, phase batchv1alpha1.JobPhase) {
	s.t.Helper()
	at := time.Date(2026, 11, 21, hour, 0, 0, 0, time.UTC)
	job := &batchv1alpha1.Job{}
	key := types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("nightly-%d", at.Unix()/60)}
	if err := s.api.Get(context.Background(), key, job); err != nil {
		s.t.Fatal(err)
	}
	job.Status.State = batchv1alpha1.JobState{Phase: phase, LastTransitionTime: metav1.NewTime(s.now)}
	if err := s.api.Status().Update(context.Background(), job); err != nil {
		s.t.Fatal(err)
	}
}

// TestCronJobs plays CronJobs with a clock that the test sets. Each line of a play is a time with the expected state, or a time with an
// action: "13 Completed" ends a Job.
func TestCronJobs(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		play       []string
		told       []string
	}{
		{
			name: "three starts",
			play: []string{
				"12:30: jobs ; active ; last never, successful never",
				"13:00: jobs 13h; active 13h; last 13:00, successful never",
				"13:20 13 Completed",
				"13:30: jobs 13h; active ; last 13:00, successful 13:20",
				"14:00: jobs 13h 14h; active 14h; last 14:00, successful 13:20",
				"15:00: jobs 13h 14h 15h; active 14h 15h; last 15:00, successful 13:20",
			},
			told: []string{"Normal SuccessfulCreate: made Job nightly-", "Normal SawCompletedJob: Job nightly-"},
		},
		{
			name: "only as many as are kept", spec: "  successfulJobsHistoryLimit: 1\n  failedJobsHistoryLimit: 0",
			play: []string{
				"13:00: jobs 13h; active 13h; last 13:00, successful never", "13:10 13 Completed",
				"14:00: jobs 13h 14h; active 14h; last 14:00, successful 13:10", "14:10 14 Completed",
				"14:20: jobs 14h; active ; last 14:00, successful 14:10",
				"15:00: jobs 14h 15h; active 15h; last 15:00, successful 14:10", "15:10 15 Terminated",
				"15:20: jobs 14h; active ; last 15:00, successful 14:10",
				"16:00: jobs 14h 16h; active 16h; last 16:00, successful 14:10", "16:10 16 Aborted", // it can be resumed
				"16:20: jobs 14h 16h; active 16h; last 16:00, successful 14:10",
			},
			told: []string{"Normal SuccessfulDelete: deleted Job nightly-"},
		},
		{
			name: "forbidden while one has not ended", spec: "  concurrencyPolicy: Forbid",
			play: []string{
				"13:00: jobs 13h; active 13h; last 13:00, successful never",
				"14:00: jobs 13h; active 13h; last 13:00, successful never",
				"14:30 13 Completed",
				"14:30: jobs 13h 14h; active 14h; last 14:00, successful 14:30",
			},
			told: []string{"Warning ForbidConcurrent: a Job is due, and waits until those that have not ended have"},
		},
		{
			name: "too late after one that forbids it", spec: "  concurrencyPolicy: Forbid\n  startingDeadlineSeconds: 600",
			play: []string{
				"13:00: jobs 13h; active 13h; last 13:00, successful never",
				"14:30 13 Completed",
				"14:30: jobs 13h; active ; last 13:00, successful 14:30",
				"15:09: jobs 13h 15h; active 15h; last 15:00, successful 14:30",
			},
		},
		{
			name: "in place of those before", spec: "  concurrencyPolicy: Replace",
			play: []string{
				"13:00: jobs 13h; active 13h; last 13:00, successful never",
				"14:00: jobs 14h; active 14h; last 14:00, successful never",
			},
			told: []string{
				"Warning ReplaceConcurrent: a Job is due, and those that have not ended make way for it", "Normal SuccessfulDelete: deleted Job",
			},
		},
		{
			name: "suspended and resumed", spec: "  failedJobsHistoryLimit: 0",
			play: []string{
				"13:00: jobs 13h; active 13h; last 13:00, successful never",
				"13:10 suspend",
				"14:10: jobs 13h; active 13h; last 13:00, successful never",
				"14:20 13 Failed",
				"14:30: jobs ; active ; last 13:00, successful never", // Jobs that have ended are deleted anyway
				"14:40 resume",
				"14:40: jobs 14h; active 14h; last 14:00, successful never",
			},
		},
		{
			name: "many missed",
			spec: "  suspend: true",
			play: []string{
				"12:10: jobs ; active ; last never, successful never",
				"12:20 schedule * * * * *",
				"14:00 resume",
				"14:00: jobs 14h; active 14h; last 14:00, successful never",
			},
			told: []string{"Warning TooManyMissedTimes: 120 starts were missed, and the last is made up for"},
		},
		{
			name: "what is no schedule",
			play: []string{
				"12:10 schedule often",
				"13:10: jobs ; active ; last never, successful never",
				"13:20 schedule 0 * * * *",
				"13:20: jobs 13h; active 13h; last 13:00, successful never",
			},
			told: []string{"Warning UnParseableCronJobSchedule: no Job is started: spec.schedule is \"often\": "},
		},
		{
			name: "what is no time zone",
			play: []string{"12:10 zone Mars/Olympus", "13:10: jobs ; active ; last never, successful never"},
			told: []string{
				"Warning InvalidTimeZone: no Job is started: spec.timeZone is \"Mars/Olympus\", and there is no such time zone; write one such as",
			},
		},
		{
			name: "in another time zone",
			play: []string{
				"12:10 schedule 30 23 * * *", "12:10 zone Asia/Tokyo", // nine hours ahead
				"14:29: jobs ; active ; last never, successful never",
				"14:30: jobs 14h; active 14h; last 14:30, successful never",
			},
		},
		{
			name: "never due",
			play: []string{"12:10 schedule 0 0 30 2 *", "13:10: jobs ; active ; last never, successful never"},
			told: []string{"Warning InvalidSchedule: no Job is started: spec.schedule is \"0 0 30 2 *\": the schedule has no start from here on"},
		},
		{
			name: "one of that name is there",
			play: []string{
				"12:10 stranger 13",
				"13:00: jobs 13h; active ; last never, successful never",
				"14:00: jobs 13h 14h; active 14h; last 14:00, successful never",
			},
			told: []string{"Warning ForeignJob: no Job is started: there is a Job nightly-"},
		},
		{
			name: "somebody deletes a Job",
			play: []string{
				"13:00: jobs 13h; active 13h; last 13:00, successful never",
				"13:10 gone 13",
				"13:20: jobs ; active ; last 13:00, successful never",
			},
			told: []string{"Warning StaleReference: Job nightly-"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, Options{}, openQueue())
			cronJob := nightly(t)
			if c.spec != "" {
				text := strings.TrimPrefix(c.spec, "  ")
				if err := yaml.Unmarshal([]byte("{"+strings.ReplaceAll(text, "\n  ", ", ")+"}"), &cronJob.Spec); err != nil {
					t.Fatal(err)
				}
			}
			s.add(cronJob)
			for _, line := range c.play {
				if clock, want, ok := strings.Cut(line, ": "); ok && !strings.Contains(clock, " ") {
					if got := s.at(clock); got != want {
						t.Fatalf("at %s:\n got %s\nwant %s\n%s", clock, got, want, strings.Join(s.lines, "\n"))
					}
					continue
				}
				s.happens(line)
			}
			for _, text := range c.told {
				if !s.told(text) {
					t.Errorf("no event %q in\n%s", text, strings.Join(s.lines, "\n"))
				}
			}
		})
	}
}

// happens performs an action of a play: "13:10 suspend".
func (s *stage) happens(line string) {
	s.t.Helper()
	clock, what, _ := strings.Cut(line, " ")
	at, err := time.Parse("15:04", clock)
	if err != nil {
		s.t.Fatal(err)
	}
	s.now = time.Date(2026, 11, 21, at.Hour(), at.Minute(), 0, 0, time.UTC)
	word, rest, _ := strings.Cut(what, " ")
	c := s.cronJob()
	var hour int
	jobOf := func(text string) *batchv1alpha1.Job {
		if _, err := fmt.Sscanf(text, "%d", &hour); err != nil {
			s.t.Fatal(err)
		}
		due := time.Date(2026, 11, 21, hour, 0, 0, 0, time.UTC)
		return &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("nightly-%d", due.Unix()/60)}}
	}
	switch word {
	case "suspend", "resume":
		c.Spec.Suspend = new(word == "suspend")
	case "schedule":
		c.Spec.Schedule = rest
	case "zone":
		c.Spec.TimeZone = &rest
	case "stranger":
		s.add(jobOf(rest))
		return
	case "gone":
		if err := s.api.Delete(context.Background(), jobOf(rest)); err != nil {
			s.t.Fatal(err)
		}
		return
	default:
		jobOf(word)
		s.end(hour, batchv1alpha1.JobPhase(rest))
		return
	}
	if err := s.api.Update(context.Background(), c); err != nil {
		s.t.Fatal(err)
	}
}

// TestCronJobMakes checks the content of a created Job.
func TestCronJobMakes(t *testing.T) {
	s := newStage(t, Options{}, openQueue())
	c := nightly(t)
	c.Spec.TimeZone = new("Asia/Tokyo")
	s.add(c)
	s.at("13:00")
	list := &batchv1alpha1.JobList{}
	if err := s.api.List(context.Background(), list); err != nil || len(list.Items) != 1 {
		t.Fatal(list.Items, err)
	}
	job := list.Items[0]
	if diff := cmp.Diff(c.Spec.JobTemplate.Spec, job.Spec); diff != "" {
		t.Errorf("spec (-of the CronJob +of the Job):\n%s", diff)
	}
	owner := metav1.GetControllerOf(&job)
	if owner == nil || owner.UID != s.cronJob().UID || owner.Kind != "CronJob" || owner.APIVersion != "batch.volcano.sh/v1alpha1" {
		t.Errorf("the owner is %v", owner)
	}
	if job.Labels["app"] != "report" || job.Annotations["why"] != "nightly" ||
		job.Annotations["volcano.sh/cronjob-scheduled-timestamp"] != "2026-11-21T22:00:00+09:00" {
		t.Errorf("labels %v, annotations %v", job.Labels, job.Annotations)
	}
}

// TestCronJobBrokenOff interrupts each write of a start, before and after the write. In the end there is exactly one Job for each start.
func TestCronJobBrokenOff(t *testing.T) {
	for _, policy := range []batchv1alpha1.ConcurrencyPolicy{batchv1alpha1.AllowConcurrent, batchv1alpha1.ReplaceConcurrent} {
		for call := 1; call <= 12; call++ {
			for _, how := range []trouble{{call: call}, {call: call, after: true}, {call: call, dies: true}, {call: call, after: true, dies: true}} {
				s := newStage(t, Options{}, openQueue())
				c := nightly(t)
				c.Spec.ConcurrencyPolicy = policy
				s.add(c)
				s.at("12:30")
				s.calls, s.trouble = 0, how
				s.at("13:00")
				got := s.at("14:00")
				want := "jobs 13h 14h; active 13h 14h; last 14:00, successful never"
				if policy == batchv1alpha1.ReplaceConcurrent {
					want = "jobs 14h; active 14h; last 14:00, successful never"
				}
				if got != want {
					t.Errorf("%s, %+v: %s\n%s", policy, how, got, strings.Join(s.lines, "\n"))
				}
				for made, times := range s.made {
					if strings.Contains(made, "Job") && times > 1 {
						t.Errorf("%s, %+v: %s was made %d times", policy, how, made, times)
					}
				}
			}
		}
	}
}

// TestCronJobsOfOthers checks that a CronJob whose Jobs belong to another scheduler is ignored. A CronJob with a wrong status must not
// affect Jobs of other owners.
func TestCronJobsOfOthers(t *testing.T) {
	s := newStage(t, Options{}, openQueue())
	c := nightly(t)
	c.Spec.JobTemplate.Spec.SchedulerName = "another"
	s.add(c)
	if got := s.at("14:00"); got != "jobs ; active ; last never, successful never" {
		t.Error(got)
	}

	s = newStage(t, Options{}, openQueue())
	c = nightly(t)
	c.Spec.ConcurrencyPolicy = batchv1alpha1.ReplaceConcurrent
	s.add(c)
	other := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "others", UID: "uid-of-others"}}
	s.add(other)
	c = s.cronJob()
	c.Status.Active = []corev1.ObjectReference{{Kind: "Job", Name: other.Name, UID: other.UID}}
	if err := s.api.Status().Update(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	if got := s.at("13:00"); got != "jobs 13h others; active 13h; last 13:00, successful never" {
		t.Error(got)
	}
}
