package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// oddPolicy is legal, and a row, a param and a condition of it are hardly meant.
const oddPolicy = `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: odd}
spec:
  pipeline: [allocate]
  tiers:
  - name: first
    tables:
    - name: house
      inline:
        params: {factor: {type: double, default: 1}}
        predicates:
        - name: of-a-team
          expression: job.name == 'a' && job.name == 'b'
        jobOrder:
        - {name: by-priority, by: job.priority, descending: true}
        - {name: again, by: job.priority}
`

func TestPolicyLint(t *testing.T) {
	goldens := testdata(t)

	t.Chdir(files(t, map[string]string{
		"odd.yaml": oddPolicy, "good.yaml": keptPolicy, "wrong.yaml": strings.Replace(oddPolicy, "job.name", "job.nam", 1), "none.yaml": "",
	}))
	golden(t, filepath.Join(goldens, "policy-lint.txt"), printed(t, exitOK, "policy", "lint", "odd.yaml", "good.yaml"))
	golden(t, filepath.Join(goldens, "policy-lint.json"), printed(t, exitOK, "policy", "lint", "-o", "json", "odd.yaml"))
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"odd.yaml --error", exitMistakes, "celsius: 3 findings\n"},
		{"good.yaml default --error", exitOK, ""},
		{"good.yaml -o json", exitOK, "[]\n"},
		{"odd.yaml wrong.yaml", exitMistakes, `Job has no field "nam"`},
		{"none.yaml", exitMistakes, "there is no SchedulingPolicy in it"},
		{"gone.yaml", exitMistakes, "no such file"},
		{"", exitUsage, "name at least one file"},
		{"odd.yaml -o yaml", exitUsage, "--output must be text or json"},
	} {
		got := printed(t, c.code, append([]string{"policy", "lint"}, strings.Fields(c.args)...)...)
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: want %q in\n%s", c.args, c.want, got)
		}
	}
}
