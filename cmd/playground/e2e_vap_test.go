package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/webhook"
)

// askedByTheWebhookAlone are the jobs of testdata/invalid that the API server takes in where no webhook serves, and the row of job.yaml
// that cannot be written for it.
var askedByTheWebhookAlone = map[string]string{
	"depends_on_itself_in_a_ring":  "depends-on-cycle",
	"plugin_mpi_without_master":    "plugins",
	"plugin_unknown":               "plugins",
	"queue_closed":                 "queue-open",
	"queue_unknown":                "queue-exists",
	"template_limit_below_request": "pod-template",
	"template_without_containers":  "pod-template",
	"topology_without_whole_cores": "numa-needs-whole-cpus",
}

// guessed is what the webhook alone adds to its words.
var guessed = regexp.MustCompile(`did you mean \w+\? ?`)

// TestE2EWithoutWebhook has the API server alone refuse the jobs of testdata/invalid, by what celsius admission render writes: with the
// same words, but for the rows that cannot be written. The webhook does not look at jobs of this test's scheduler.
func TestE2EWithoutWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	closed, alone := w.queue("closed", 1), w.Name+"-alone"
	w.Kubectl("patch", "queue", closed, "--subresource=status", "--type=merge", "-p", `{"status":{"state":"Closed"}}`)
	written, err := webhook.VAPs(webhook.Options{SchedulerNames: []string{alone}})
	if err != nil {
		t.Fatal(err)
	}
	jobs := written[slices.IndexFunc(written, func(v *webhook.VAP) bool { return v.Kind == "Job" })]
	w.applyVAP(jobs, alone)
	files, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d invalid jobs: %v", len(files), err)
	}
	create := func(file string) (said string, words []string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		job := strings.NewReplacer("CLOSED", closed, "schedulerName: celsius", "schedulerName: "+alone).Replace(string(text))
		return w.TryKubectl(job, "create", "--dry-run=server", "-f", "-").Err, wantedWords(job)
	}
	w.Wait("the policy is asked", func() error {
		if said, _ := create("testdata/invalid/min_available_over_replicas.yaml"); !strings.Contains(said, alone) {
			return errors.New(said)
		}
		return nil
	})
	left := map[string]bool{}
	for _, l := range jobs.LeftOut {
		left[l.Row] = true
	}
	refused, passed := 0, map[string]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		said, words := create(file)
		if row := askedByTheWebhookAlone[name]; row != "" {
			passed[name] = true
			if said != "" || !left[row] {
				t.Errorf("%s is listed as let pass, as %s is left out (%t): %s", name, row, left[row], said)
			}
			continue
		}
		refused++
		if !slices.ContainsFunc(words, func(want string) bool { return strings.Contains(said, guessed.ReplaceAllString(want, "")) }) {
			t.Errorf("%s: lacks each of %q:\n%s", name, words, said)
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
	w.t.Cleanup(func() { // the world clears what is in its namespace
		runCommand(w.t, playgroundCommand(context.Background(), "kubectl", "--kubeconfig", w.Kubeconfig, "delete",
			"validatingadmissionpolicybinding/"+name, "validatingadmissionpolicy/"+name))
	})
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
