package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/statemachines/controller"
)

// CronJobs through kubectl, with controllers whose clock the test sets.

// clock is a clock that is ahead of the real time.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// moveTo sets the time, and makes the controllers reconcile the CronJobs.
func (c *clock) moveTo(w *world, at time.Time) {
	w.t.Helper()
	c.ahead.Store(int64(time.Until(at)))
	w.Kubectl("annotate", "cronvcjob", "--all", "--overwrite", "clock="+at.Format(time.RFC3339))
}

// hourly returns a CronJob that starts a Job each hour, whose pod runs for the given time.
func hourly(name, run, more string) string {
	return fmt.Sprintf(`
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: %s}
spec:
  schedule: "0 * * * *"
  timeZone: Etc/UTC
  startingDeadlineSeconds: 600
%s
  jobTemplate:
    metadata: {labels: {of: %s}}
    spec:
      schedulerName: ${scheduler}
      queue: ${queue.a}
      policies: [{event: TaskCompleted, action: CompleteJob}]
      tasks:
      - name: main
        replicas: 1
        template:
          metadata: {annotations: {celsius.dev/sim: '{run: %s}'}}
          spec:
            restartPolicy: Never
            containers: [{name: main, image: main, resources: {requests: {cpu: "1", memory: 1Gi}}}]
`, name, more, name, run)
}

// TestE2ECronJob starts Jobs at four hours. It covers history limits, the policies Forbid and Replace, suspension and resumption, and the
// deletion of all Jobs with the CronJobs.
func TestE2ECronJob(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t), &clock{}
	w.StartScheduler()
	w.StartControllers(func(o *controller.Options) { o.Now = c.now })
	w.queue("a", 1)
	w.Nodes(1, "cpu=16,memory=64Gi")
	w.Apply(hourly("report", "2s", "  successfulJobsHistoryLimit: 1"))
	w.Apply(hourly("long", "1h", "  concurrencyPolicy: Forbid"))
	last := time.Time{}
	for _, name := range []string{"report", "long"} {
		made, err := time.Parse(time.RFC3339, w.field("cronvcjob/"+name, ".metadata.creationTimestamp"))
		if err != nil {
			t.Fatal(err)
		}
		if made.After(last) {
			last = made
		}
	}
	hour := func(n int) time.Time { return last.UTC().Truncate(time.Hour).Add(time.Duration(n) * time.Hour) }
	jobOf := func(name string, n int) string { return fmt.Sprintf("%s-%d", name, hour(n).Unix()/60) }
	jobsAre := func(of string, want ...string) {
		t.Helper()
		w.Wait("the Jobs of "+of, func() error {
			got := strings.Fields(w.Kubectl("get", "vcjob", "-l", "of="+of, "-o", "jsonpath={.items[*].metadata.name}"))
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Errorf("are %v, want %v", got, want)
			}
			return nil
		})
	}
	told := func(of, reason, words string) {
		t.Helper()
		w.Wait("an event of "+of+" says "+reason, func() error {
			said := w.Kubectl("get", "events", "--field-selector", "involvedObject.name="+of+",reason="+reason, "-o", "jsonpath={.items[*].message}")
			if !strings.Contains(said, words) {
				return errors.New(said)
			}
			return nil
		})
	}

	// 1. The first hour: each CronJob has its Job, named after the time, and the Job of report completes.
	c.moveTo(w, hour(1).Add(time.Second))
	w.Kubectl("wait", "vcjob/"+jobOf("report", 1), "--for=create")
	w.phase(jobOf("report", 1), "Completed")
	w.Kubectl("wait", "cronvcjob/report", "--for=jsonpath={.status.lastSuccessfulTime}")
	if got, want := w.field("cronvcjob/report", ".status.lastScheduleTime"), hour(1).Format(time.RFC3339); got != want {
		t.Errorf("the last start was at %s, want %s", got, want)
	}
	w.Kubectl("wait", "vcjob/"+jobOf("long", 1), "--for=create")
	w.phase(jobOf("long", 1), "Running")

	// 2. The second hour: one completed Job is kept, and a second Job of long is forbidden until the first has ended.
	c.moveTo(w, hour(2).Add(time.Second))
	w.Kubectl("wait", "vcjob/"+jobOf("report", 2), "--for=create")
	w.phase(jobOf("report", 2), "Completed")
	jobsAre("report", jobOf("report", 2))
	told("long", "ForbidConcurrent", "waits until those that have not ended have")
	jobsAre("long", jobOf("long", 1))
	w.command("CompleteJob", "Job", jobOf("long", 1))
	w.Kubectl("wait", "vcjob/"+jobOf("long", 2), "--for=create")
	w.phase(jobOf("long", 2), "Running")

	// 3. The third hour: report is suspended, and the next Job of long replaces the previous one.
	w.Kubectl("patch", "cronvcjob/report", "--type=merge", "-p", `{"spec": {"suspend": true}}`)
	w.Kubectl("patch", "cronvcjob/long", "--type=merge", "-p", `{"spec": {"concurrencyPolicy": "Replace"}}`)
	c.moveTo(w, hour(3).Add(time.Second))
	w.Kubectl("wait", "vcjob/"+jobOf("long", 3), "--for=create")
	jobsAre("long", jobOf("long", 1), jobOf("long", 3))
	told("long", "ReplaceConcurrent", "make way for it")
	w.phase(jobOf("long", 3), "Running")

	// 4. report is resumed when it is too late for the third start, and continues with the fourth. Its Job of the second hour is deleted.
	c.moveTo(w, hour(3).Add(30*time.Minute))
	w.Kubectl("patch", "cronvcjob/report", "--type=merge", "-p", `{"spec": {"suspend": false}}`)
	c.moveTo(w, hour(4).Add(time.Second))
	w.Kubectl("wait", "vcjob/"+jobOf("report", 4), "--for=create")
	w.phase(jobOf("report", 4), "Completed")
	jobsAre("report", jobOf("report", 4))
	told("report", "SuccessfulCreate", "made Job "+jobOf("report", 4))
	if said := w.Kubectl("get", "events", "-o", "jsonpath={.items[*].message}"); strings.Contains(said, jobOf("report", 3)) {
		t.Errorf("a suspended CronJob had a Job: %s", said)
	}

	// 5. The deletion of the CronJobs deletes their Jobs and pods.
	w.Kubectl("delete", "cronvcjob/report", "cronvcjob/long")
	w.Kubectl("wait", "vcjob", "-l", "of in (report,long)", "--for=delete")
	w.Wait("the pods are gone", func() error {
		if pods := w.Pods(""); len(pods) > 0 {
			return fmt.Errorf("%d are there", len(pods))
		}
		return nil
	})
}
