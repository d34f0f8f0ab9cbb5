package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/webhook"
)

// TestE2EAdmissionOfOthers creates Pods, Commands and CronJobs with kubectl. Mistakes are refused, and likely mistakes cause warnings. Pods
// of other schedulers are not changed, and resource groups are written into pods of the world's scheduler.
func TestE2EAdmissionOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	queue := w.queue("a", 1)
	nobody := strings.Replace(w.commandText("CloseQueue", "Queue", queue), "kind: Queue", "kind: Nothing", 1)
	said := func(text string) string { return w.TryKubectl(text, "create", "--dry-run=server", "-f", "-").Err }
	pod := func(annotation, scheduler string) string {
		return `
apiVersion: v1
kind: Pod
metadata: {name: one, annotations: {` + annotation + `}}
spec: {schedulerName: ` + scheduler + `, containers: [{name: main, image: main}]}
`
	}
	for _, c := range []struct{ what, text, want string }{
		{"a pod in a queue", pod("scheduling.volcano.sh/queue-name: ${queue.a}", "${scheduler}"), ""},
		{"a pod in no queue that is there", pod("scheduling.volcano.sh/queue-name: nowhere", "${scheduler}"), "there is no queue nowhere"},
		{"the same of another scheduler", pod("scheduling.volcano.sh/queue-name: nowhere", "other"), ""},
		{"a pod of no group that is there", pod("scheduling.k8s.io/group-name: none", "${scheduler}"), "Warning: " +
			`metadata.annotations["scheduling.k8s.io/group-name"]: there is no PodGroup none in namespace ${namespace}`},
		{"disruption", pod("volcano.sh/jdb-min-available: half", "${scheduler}"), "write a number of pods"},
		{"a command for nobody", nobody, "Warning: target.kind: nobody obeys a Command on a Nothing"},
		{"a schedule", cronJob("0 3 * * *", "${queue.a}"), ""},
		{"no schedule", cronJob("daily", "${queue.a}"), "spec.schedule: is no schedule"},
		{"a template that is wrong", cronJob("0 3 * * *", "root"), "spec.jobTemplate.spec.queue: the queue root only holds other queues"},
	} {
		got, want := said(c.text), w.Expand(c.want)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", c.what, got, want)
		}
	}

	groups, issues := webhook.LoadFile("groups.yaml", []byte(w.Expand(`
apiVersion: rules.celsius.dev/v1alpha1
kind: ResourceGroups
metadata: {name: pools}
resourceGroups:
- resourceGroup: pool
  object: {key: namespace, value: ["${namespace}"]}
  labels: {pool: batch}
  tolerations: [{key: pool, operator: Exists}]
`)))
	if groups == nil {
		t.Fatal(issues.Error())
	}
	w.run("webhook", func(ctx context.Context) error {
		return webhook.Run(ctx, w.Config, webhook.Options{
			SchedulerNames: []string{w.SchedulerName}, AdmissionRules: groups, Address: "127.0.0.1:0", URLHost: "127.0.0.1",
			ConfigurationName: "celsius-" + w.Name, UnregisterOnExit: true,
		})
	})
	made := func(scheduler string) corev1.PodSpec {
		p := &corev1.Pod{}
		text := w.TryKubectl(pod("", scheduler), "create", "--dry-run=server", "-o", "json", "-f", "-").Out
		if err := json.Unmarshal([]byte(text), p); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return p.Spec
	}
	w.Wait("the groups are written", func() error {
		spec := made("${scheduler}") // the API server adds its own tolerations
		tolerates := slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "pool" })
		if spec.NodeSelector["pool"] != "batch" || !tolerates {
			return fmt.Errorf("the pod has %v and %v", spec.NodeSelector, spec.Tolerations)
		}
		return nil
	})
	if spec := made("other"); len(spec.NodeSelector) > 0 {
		t.Errorf("a pod of another scheduler has %v", spec.NodeSelector)
	}
}

func cronJob(schedule, queue string) string {
	return `
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "` + schedule + `"
  jobTemplate:
    spec:
      schedulerName: ${scheduler}
      queue: ` + queue + `
      tasks:
      - replicas: 1
        template: {spec: {restartPolicy: Never, containers: [{name: main, image: main}]}}
`
}
