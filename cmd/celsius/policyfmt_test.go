package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/facts"
	policytext "github.com/celsius-scheduler/celsius/engine/policy/text"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/layout"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// carelessPolicy is a correct policy that is not formatted.
const carelessPolicy = `# Whose nodes are whose.
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: "careless"}
spec:
    pipeline: [ allocate ]

    tiers:
        # rows of ours
        - name: house
          tables:
              - name: 'house'
                inline:
                    attributes: [{name: share, on: queue, sum: {over: job, when: job.priority>0, of: "job.allocated"}}]
                    predicates:    # all must hold
                        - {name: kept, when: "'team' in node.labels", message: "kept",
                            expression: "node.labels[?'team'].orValue('') == job.labels[?'team'].orValue('none')||task.priority>100"} # why
                    jobOrder:
                        - name: share
                          by: >
                              job.queue.share.cpu
                              + 1.0
        - {name: shipped, tables: [{name: gang}]}
`

func TestPolicyFmt(t *testing.T) {
	goldens := testdata(t)
	t.Chdir(files(t, map[string]string{
		"careless.yaml": carelessPolicy, "wrong.yaml": "a: [\n", "crlf.yaml": "a: 1\r\nb: 2\r\n",
	}))
	golden(t, filepath.Join(goldens, "policy-fmt.yaml"), printed(t, exitOK, "policy", "fmt", "careless.yaml"))
	for _, c := range []struct {
		args string
		code int
		want string // the output
	}{
		{"careless.yaml --check", exitMistakes, "careless.yaml\ncelsius: 1 of 1 files differ; celsius policy fmt -w writes them\n"},
		{"careless.yaml -w", exitOK, ""},
		{"careless.yaml --check", exitOK, ""},
		{"crlf.yaml", exitOK, "a: 1\nb: 2\n"},
		{"-", exitOK, "a: 1\n"},
		{"wrong.yaml --check", exitMistakes, "wrong.yaml:"},
		{"gone.yaml", exitMistakes, "gone.yaml: open gone.yaml: no such file or directory\n"},
		{"- -w", exitUsage, "celsius: -w is for files, and without --check\n"},
		{"careless.yaml -w --check", exitUsage, "celsius: -w is for files, and without --check\n"},
		{"", exitUsage, "celsius: name at least one file; see celsius policy fmt --help\n"},
	} {
		var out, errs strings.Builder
		code := run(append([]string{"policy", "fmt"}, strings.Fields(c.args)...), strings.NewReader("a:   1\n"), &out, &errs)
		if got := out.String() + errs.String(); code != c.code || !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: code %d, %q; want %d, %q", c.args, code, got, c.code, c.want)
		}
	}
}

// TestFormattedPoliciesAreTheSame checks that formatting does not change a compiled policy. It formats every shipped table and action, and
// every sample.
func TestFormattedPoliciesAreTheSame(t *testing.T) {
	t.Parallel()
	texts := map[string][]byte{}
	for _, name := range policy.ShippedNames() {
		texts[name] = []byte("apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: p}\nspec:\n" +
			"  pipeline: [enqueue, allocate, preempt, reclaim, backfill]\n  tiers: [{name: a, tables: [{name: " + name + "}]}]\n")
	}
	err := filepath.WalkDir("../../samples/policies", func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		texts[path], err = os.ReadFile(path)
		return err
	})
	if err != nil || len(texts) < 30 {
		t.Fatalf("%d policies, %v", len(texts), err)
	}
	for name, text := range texts {
		written := text
		if !strings.HasSuffix(name, ".yaml") {
			var issues source.Issues
			if written, issues = policytext.Resolve(parsed(t, text), nil); issues.Err() != nil {
				t.Fatal(issues)
			}
		}
		after, err := layout.Format(written, expressionKeys())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(compiledTo(t, written), compiledTo(t, after)); diff != "" {
			t.Errorf("%s: -before +after\n%s", name, diff)
		}
	}
}

func parsed(t *testing.T, text []byte) *source.Document {
	t.Helper()
	docs, issues := source.Parse("p.yaml", text)
	if issues.Err() != nil || len(docs) != 1 {
		t.Fatalf("%v\n%s", issues, text)
	}
	return docs[0]
}

// compiledTo returns the result of compiling a policy: the properties of each row, its settings, and its expressions as cel-go prints them.
func compiledTo(t *testing.T, text []byte) any {
	t.Helper()
	p, issues := policy.Load(parsed(t, text))
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	type row struct {
		Table, Name, Reason, OnError string
		Tier                         int
		Scaling                      policy.Scaling
		Veto, Curable, Descending    bool
	}
	var rows []row
	for _, r := range p.All {
		rows = append(rows, row{r.Table, r.Name, r.Reason, r.OnError, r.Tier, r.Scaling, r.Veto, r.Curable, r.Descending})
	}
	var expressions []string
	for _, e := range p.Expressions() {
		expressions = append(expressions, unparse(t, e))
	}
	return struct {
		Name, Mode      string
		Tiers, Pipeline []string
		Facts           []facts.Fact
		Rows            []row
		Expressions     []string
	}{p.Name, p.Mode, p.Tiers, p.Pipeline, facts.Of(p), rows, expressions}
}

func unparse(t *testing.T, e *eval.Expr) string {
	t.Helper()
	text, err := cel.ExprToString(e.Checked().Expr(), e.Checked().SourceInfo())
	if err != nil {
		t.Fatal(err)
	}
	return text
}
