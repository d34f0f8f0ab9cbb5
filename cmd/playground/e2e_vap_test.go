package main

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/webhook"
)

// askedByTheWebhookAlone maps jobs of samples/invalid that the API server accepts without a webhook to the row of job.yaml that the API
// server cannot evaluate.
var askedByTheWebhookAlone = map[string]string{
	"job-depends-on-itself-in-a-ring":  "depends-on-cycle",
	"job-disruption-of-its-pods":       "disruption-of-pods",
	"job-disruption-said-twice":        "disruption-of-the-job",
	"job-plugin-argument-no-number":    "plugins",
	"job-plugin-argument-unknown":      "plugins",
	"job-plugin-half-a-pair-of-keys":   "plugins",
	"job-plugin-mpi-without-master":    "plugins",
	"job-plugin-ray-without-head":      "plugins",
	"job-plugin-unknown":               "plugins",
	"job-queue-closed":                 "queue-open",
	"job-queue-unknown":                "queue-exists",
	"job-template-limit-below-request": "pod-template",
	"job-template-without-containers":  "pod-template",
	"job-topology-without-whole-cores": "numa-needs-whole-cpus",
}

// otherScheduler matches the webhook's warning for each Job of another scheduler.
var otherScheduler = regexp.MustCompile(`(?m)^Warning: spec\.schedulerName: is .*\n?`)

// guessed matches what only the webhook adds to its messages.
var guessed = regexp.MustCompile(`did you mean \w+\? ?`)

// TestE2EWithoutWebhook checks that the API server alone refuses the jobs of samples/invalid, with the output of celsius admission render.
// The messages are the same, except for rows that cannot be written. The webhook refuses no jobs of this test's scheduler.
func TestE2EWithoutWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alone := w.Name + "-alone"
	jobsOnly := slices.DeleteFunc(theInvalid(w), func(m invalid) bool { return !strings.HasPrefix(m.name, "job-") })
	written, err := webhook.VAPs(webhook.Options{SchedulerNames: []string{alone}})
	if err != nil {
		t.Fatal(err)
	}
	jobs := written[slices.IndexFunc(written, func(v *webhook.VAP) bool { return v.Kind == "Job" })]
	w.applyVAP(jobs, alone)
	create := func(m invalid) string {
		text := strings.ReplaceAll(m.text, "schedulerName: "+w.SchedulerName, "schedulerName: "+alone)
		return otherScheduler.ReplaceAllString(w.TryKubectl(text, "create", "--dry-run=server", "-f", "-").Err, "")
	}
	w.Wait("the policy is asked", func() error {
		at := slices.IndexFunc(jobsOnly, func(m invalid) bool { return m.name == "job-min-available-over-replicas" })
		if said := create(jobsOnly[at]); !strings.Contains(said, alone) {
			return errors.New(said)
		}
		return nil
	})
	left := map[string]bool{}
	for _, l := range jobs.LeftOut {
		left[l.Row] = true
	}
	refused, passed := 0, map[string]bool{}
	for _, m := range jobsOnly {
		said := create(m)
		if row := askedByTheWebhookAlone[m.name]; row != "" {
			passed[m.name] = true
			if said != "" || !left[row] {
				t.Errorf("%s is listed as let pass, as %s is left out (%t): %s", m.name, row, left[row], said)
			}
			continue
		}
		refused++
		if !slices.ContainsFunc(m.says, func(want string) bool { return strings.Contains(said, guessed.ReplaceAllString(want, "")) }) {
			t.Errorf("%s: lacks each of %q:\n%s", m.name, m.says, said)
		}
	}
	if len(passed) != len(askedByTheWebhookAlone) {
		t.Errorf("let pass are %v, listed are %v", slices.Sorted(maps.Keys(passed)), askedByTheWebhookAlone)
	}
	t.Logf("%d jobs are refused by the API server alone, %d are not", refused, len(passed))
}

// applyVAP stores a policy and its binding under a name, until the test ends.
func (w *world) applyVAP(v *webhook.VAP, name string) {
	w.t.Helper()
	v.Policy.Name, v.Binding.Name, v.Binding.Spec.PolicyName = name, name, name
	w.deleteLater("validatingadmissionpolicybinding/"+name, "validatingadmissionpolicy/"+name)
	for _, object := range []any{v.Policy, v.Binding} {
		text, err := yaml.Marshal(object)
		if err != nil {
			w.t.Fatal(err)
		}
		if r := w.TryKubectl(string(text), "apply", "-f", "-"); r.Code != 0 {
			w.t.Fatalf("%s\n%s", r.Err, text)
		}
	}
}

// deleteLater deletes objects of the cluster after the test. It does not wait for the end of the deletion, because nothing else uses them.
// The world only deletes objects in its namespace.
func (w *world) deleteLater(objects ...string) {
	w.t.Cleanup(func() {
		args := append([]string{"kubectl", "--kubeconfig", w.Kubeconfig, "delete", "--wait=false"}, objects...)
		runCommand(w.t, playgroundCommand(context.Background(), args...))
	})
}
