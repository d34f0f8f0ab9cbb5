package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const helmConf = `apiVersion: v1
kind: ConfigMap
metadata: {name: volcano-scheduler-configmap}
data:
  volcano-scheduler.conf: |
    actions: "enqueue, allocate, backfill"
    tiers:
    - plugins:
      - name: priority
      - name: gang
        enablePreemptable: false
      - name: conformance
    - plugins:
      - name: overcommit
      - name: drf
        enablePreemptable: false
      - name: predicates
      - name: proportion
      - name: nodeorder
      - name: binpack
        arguments: {binpack.weight: "5"}
`

func TestPolicyConvert(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"helm.yaml":    helmConf,
		"typo.conf":    "actions: allocate\ntiers:\n- plugins:\n  - name: proportion\n    enableOverused: true\n",
		"extender.yml": "actions: allocate\ntiers:\n- plugins:\n  - {name: extender, arguments: {extender.preemptableVerb: p}}\n",
	})
	for _, c := range []struct {
		name     string
		args     []string
		code     int
		out, err string // what the two streams must contain
	}{
		{
			"a ConfigMap",
			[]string{filepath.Join(dir, "helm.yaml")},
			exitOK,
			"    - name: gang\n      params: {protect: tier}\n      without: [preemptable]\n", "",
		},
		{"arguments are params", []string{filepath.Join(dir, "helm.yaml"), "--name", "default"}, exitOK, "      params: {weight: 5}\n", ""},
		{
			"standard input",
			[]string{"-"},
			exitOK, "pipeline: [allocate, gangpreempt]",
			"-:2:50: warning: configurations[0].arguments.maxDomains: action gangpreempt: argument maxDomains has no effect",
		},
		{
			"what is not written is off",
			[]string{"-", "--flags", "explicit"},
			exitOK,
			"    - name: gang\n      params: {protect: tier}\n      only: []\n", "",
		},
		{
			"a key that Volcano ignores",
			[]string{filepath.Join(dir, "typo.conf")},
			exitMistakes, "",
			`typo.conf:5:5: tiers[0].plugins[0].enableOverused: unknown field "enableOverused"; did you mean "enabledOverused"?`,
		},
		{
			"an argument that is refused",
			[]string{filepath.Join(dir, "extender.yml")},
			exitMistakes, "",
			"argument extender.preemptableVerb is not supported: ",
		},
		{"a file that is not there", []string{filepath.Join(dir, "none")}, exitMistakes, "", "no such file"},
		{"unknown flags", []string{"-", "--flags", "on"}, exitUsage, "", "--flags is default or explicit"},
	} {
		var out, errs bytes.Buffer
		code := run(append([]string{"policy", "convert"}, c.args...),
			strings.NewReader("actions: \"allocate, gangpreempt\"\n"+
				"configurations: [{name: gangpreempt, arguments: {maxDomains: 3}}]\ntiers: [{plugins: [{name: gang}]}]\n"), &out, &errs)
		if code != c.code || !strings.Contains(out.String(), c.out) {
			t.Errorf("%s: code %d, want %d\nstdout, want %q:\n%s\nstderr:\n%s", c.name, code, c.code, c.out, out.String(), errs.String())
		}
		if !strings.Contains(errs.String(), c.err) {
			t.Errorf("%s: stderr, want %q:\n%s", c.name, c.err, errs.String())
		}
		if code != exitOK && out.Len() > 0 {
			t.Errorf("%s: a policy although it was refused:\n%s", c.name, out.String())
		}
	}
}

// TestPolicyConvertShowsAllMistakes checks that mistakes of form, of names and of arguments are printed together, in the order of the file.
// A misspelt plugin name is one mistake.
func TestPolicyConvertShowsAllMistakes(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"typo.conf": `actions: "allocate, backfil"
tiers:
- plugins:
  - name: proportion
    enableOverused: true
  - name: binpack
    arguments: {binpack.wieght: 5, binpack.cpuu: 1}
  - nam: gang
  - name: nodeordr
configurations:
- nam: allocate
`})
	var out, errs bytes.Buffer
	if code := run([]string{"policy", "convert", filepath.Join(dir, "typo.conf")}, nil, &out, &errs); code != exitMistakes || out.Len() > 0 {
		t.Errorf("code %d, stdout %q", code, out.String())
	}
	rest := errs.String()
	for _, want := range []string{
		`unknown action "backfil"`, `unknown field "enableOverused"`, `unknown argument "binpack.wieght"`, `unknown argument "binpack.cpuu"`,
		`unknown field "nam"`, `unknown plugin "nodeordr"`, `11:3: configurations[0]`, "7 mistake(s)",
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%s is missing, or not in the order of the file:\n%s", want, errs.String())
		}
		rest = after
	}
}

// TestPolicyConvertThenCheck checks that check accepts the output of convert.
func TestPolicyConvertThenCheck(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"helm.yaml": helmConf})
	var out, errs bytes.Buffer
	if code := run([]string{"policy", "convert", filepath.Join(dir, "helm.yaml")}, strings.NewReader(""), &out, &errs); code != exitOK ||
		errs.Len() > 0 {
		t.Fatalf("code %d: %s", code, errs.String())
	}
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if code := run([]string{"policy", "check", policy}, strings.NewReader(""), &out, &errs); code != exitOK ||
		!strings.Contains(out.String(), `policy "volcano" is right`) {
		t.Errorf("code %d: %s%s", code, out.String(), errs.String())
	}
}
