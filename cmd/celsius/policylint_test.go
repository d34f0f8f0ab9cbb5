package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// oddPolicy is a valid policy with a row, a param and a condition that are probably mistakes.
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

// TestMistakesShownAreBounded checks that every command that reads files prints a limited number of mistakes. The last line counts all
// mistakes.
func TestMistakesShownAreBounded(t *testing.T) {
	t.Parallel()
	rows := func(row string) string {
		text := "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: p}\nspec:\n  mode: Active\n" +
			"  pipeline: [allocate]\n  tiers:\n  - name: t\n    tables:\n    - name: x\n      inline:\n        predicates:\n"
		for n := range source.MostShown + 20 {
			text += fmt.Sprintf(row, n)
		}
		return text
	}
	pods, arguments := "", "actions: allocate\ntiers:\n- plugins:\n  - name: binpack\n    arguments:\n"
	for n := range source.MostShown + 20 {
		pods += fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec: {contaners: []}\n", n)
		arguments += fmt.Sprintf("      unknown%d: 1\n", n)
	}
	dir := files(t, map[string]string{
		"wrong.yaml": rows("        - {name: r%d, expression: nod.ready}\n"),
		"odd.yaml":   rows("        - {name: r%d, expression: 'true', message: m}\n"),
		"pods.yaml":  pods,
		"many.conf":  arguments,
	})
	for _, c := range []struct{ args, more string }{
		{"policy check wrong.yaml", "… and 20 more errors"},
		{"policy lint wrong.yaml", "… and 20 more errors"},
		{"policy lint odd.yaml", "… and "},
		{"policy show --resolved wrong.yaml", "… and 20 more errors"},
		{"policy convert many.conf", "… and 20 more errors"},
		{"simulate pods.yaml", "… and 20 more errors"},
	} {
		var out, errs bytes.Buffer
		args := strings.Fields(c.args)
		args[len(args)-1] = filepath.Join(dir, args[len(args)-1])
		run(args, nil, &out, &errs)
		text := out.String() + errs.String()
		if n := strings.Count(text, args[len(args)-1]+":"); n != source.MostShown || !strings.Contains(text, c.more) {
			t.Errorf("%s: %d places are shown, want %d and %q:\n%.2000s", c.args, n, source.MostShown, c.more, text)
		}
	}
}
