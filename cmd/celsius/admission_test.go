package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestAdmissionRender writes policies from the shipped rows and from the rows of a cluster. The rows that cannot be written are listed
// before them.
func TestAdmissionRender(t *testing.T) {
	render := func(args ...string) (string, error) {
		var out bytes.Buffer
		root := newRootCommand()
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append([]string{"admission", "render"}, args...))
		err := root.Execute()
		return out.String(), err
	}
	text, err := render("--as", "vap", "--admission-rules", "../../samples/admission", "--limit", "tasks=7", "--scheduler-name", "mine")
	if err != nil {
		t.Fatal(err)
	}
	comments, objects, _ := strings.Cut(text, "---\n")
	for _, want := range []string{
		"#   Job job: queue-exists reads queues, which is looked up in the cluster\n",
		"#   Job accounts-are-for-their-users: may-use-account asks the API server what the user may do\n",
		"#   CronJob cronjob: jobs-of-the-template asks the rows of Jobs\n",
		"#   JobFlow jobflow: patched-template-is-there reads jobTemplates, which is looked up in the cluster\n",
	} {
		if !strings.Contains(comments, want) {
			t.Errorf("lacks %q at the top:\n%s", want, comments)
		}
	}
	for _, want := range []string{"name: job.celsius.dev\n", "name: job-gpus-of-a-research-job.celsius.dev\n", "'mine'", "string(dyn(7))"} {
		if !strings.Contains(objects, want) {
			t.Errorf("lacks %q", want)
		}
	}
	if policies, bindings := strings.Count(objects, "kind: ValidatingAdmissionPolicy\n"), strings.Count(objects,
		"kind: ValidatingAdmissionPolicyBinding\n"); policies != bindings || policies != 10 {
		t.Errorf("%d policies and %d bindings", policies, bindings)
	}
	if _, err := render("--as", "rego"); err == nil || !strings.Contains(err.Error(), `--as is "rego"; write vap`) {
		t.Errorf("another form: %v", err)
	}
}
