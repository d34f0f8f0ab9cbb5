package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/webhook"
)

// TestE2EAdmissionRules uses the rules of samples/admission for the world's jobs. RBAC decides who may use which queue.
func TestE2EAdmissionRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rules, issues := webhook.LoadFS(os.DirFS("../../samples/admission"))
	if rules == nil {
		t.Fatal(issues.Error())
	}
	rules = slices.DeleteFunc(rules, func(r *webhook.Table) bool { return r.Kind != "Job" }) // groups of other worlds are not relevant
	w.run("webhook", func(ctx context.Context) error {
		return webhook.Run(ctx, w.Config, webhook.Options{
			SchedulerNames: []string{w.SchedulerName}, AdmissionRules: rules, Address: "127.0.0.1:0", URLHost: "127.0.0.1",
			ConfigurationName: "celsius-" + w.Name, UnregisterOnExit: true,
		})
	})
	for _, name := range []string{"a", "b"} {
		w.queue(name, 1)
	}
	w.Apply(strings.ReplaceAll(tenantRights, "verbs: [patch]", "verbs: [use]"))
	t.Cleanup(func() { // the world only deletes objects in its namespace
		runCommand(t, playgroundCommand(context.Background(), "kubectl", "--kubeconfig", w.Kubeconfig, "delete", "clusterrole/"+w.Name+"-owner",
			"clusterrolebinding/"+w.Name+"-owner"))
	})
	create := func(who, queue string) string {
		job := `
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: one}
spec:
  schedulerName: ${scheduler}
  queue: ${queue.` + queue + `}
  tasks:` + task("worker", 1, "{run: 3s}")
		return w.TryKubectl(job, "--as=${world}-"+who, "create", "--dry-run=server", "-f", "-").Err
	}
	mayNot := "spec.queue: user " + w.Name + "-tenant may not use queue " + w.Queue("a")
	w.Wait("the rules are asked", func() error {
		if got := create("tenant", "a"); !strings.Contains(got, mayNot) {
			return errors.New(got)
		}
		return nil
	})
	if got := create("owner", "a"); got != "" {
		t.Errorf("who may use the queue is refused: %s", got)
	}
	if got := create("owner", "b"); !strings.Contains(got, "may not use queue "+w.Queue("b")) {
		t.Errorf("who may use another queue alone is let into this: %s", got)
	}
	if r := w.TryKubectl("", "auth", "can-i", "use", "queues.scheduling.volcano.sh/"+w.Queue("a"), "--as=${world}-owner"); r.Code != 0 {
		t.Errorf("kubectl says otherwise: %s%s", r.Out, r.Err)
	}
}
