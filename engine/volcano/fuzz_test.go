package volcano

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// FuzzConvert converts any Volcano configuration. Nothing panics, and every issue lies inside the file. The result compiles, or reports
// what is wrong with the actions.
func FuzzConvert(f *testing.F) {
	for _, seed := range []string{
		"actions: \"enqueue, allocate, backfill\"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n    enablePreemptable: false\n- " +
			"plugins:\n  - name: overcommit\n    arguments: {overcommit-factor: 1.5}\n  - name: drf\n  - name: proportion\n",
		"actions: [allocate]\ntiers:\n- plugins:\n  - name: binpack\n    arguments:\n      binpack.weight: \"10\"\n      binpack.resources: " +
			"nvidia.com/gpu, example.com/foo\n      binpack.resources.nvidia.com/gpu: 7\nconfigurations:\n- name: allocate\n  arguments: " +
			"{predicateErrorCacheEnable: true}\n",
		"tiers:\n- plugins:\n  - {name: nodeorder, arguments: {leastrequested.weight: 2, nodeaffinity.weight: x}}\n  - {name: predicates, " +
			"enablePredicate: no}\n  - {name: gang}\n  - {name: gang}\n",
		"actions: preempt\ntiers: [{plugins: [{name: conformance, enableHierarchy: true}]}]\n",
		"apiVersion: v1\nkind: ConfigMap\ndata:\n  volcano-scheduler.conf: |\n    actions: \"enqueue, allocat\"\n    tiers:\n    - plugins:\n  " +
			"    - name: gang\n        enableOverused: true\n---\nkind: List\nitems: []\n",
		"kind: ConfigMap\ndata: {x.conf: \"actions: allocate\\ntiers: [{plugins: [{name: usage, arguments: {thresholds: {cpu: 80}}}]}]\\n\"}\n",
	} {
		f.Add([]byte(seed))
	}
	shipped, issues := policy.Shipped()
	if issues.Err() != nil {
		f.Fatal(issues)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<12 {
			t.Skip("takes only time")
		}
		conf, issues := Parse("conf.yaml", data)
		insideFile(t, placed(issues), "conf.yaml", data)
		if issues.Err() != nil {
			return
		}
		for _, flags := range []Flags{FlagsDefault, FlagsExplicit} {
			got, err := Convert(conf, Options{Flags: flags, Tables: shipped})
			var found source.Issues
			if err != nil && !errors.As(err, &found) {
				t.Fatal(err)
			}
			for _, n := range got.Notes {
				found = append(found, n.Issue)
			}
			insideFile(t, placed(found), "conf.yaml", data)
			if err == nil {
				converts(t, got.Policy)
			}
		}
	})
}

// placed leaves out issues without a place in the file: that the file is empty, and issues inside of a quoted text.
func placed(issues source.Issues) source.Issues {
	return slices.DeleteFunc(issues, func(i source.Issue) bool { return i.Line == 0 || i.File != "conf.yaml" })
}

// converts fails the test if a converted policy does not compile. Tables that exclude each other are allowed to fail.
func converts(t *testing.T, out []byte) {
	t.Helper()
	docs, issues := source.Parse("converted.yaml", out)
	if len(docs) != 1 || issues.Err() != nil {
		t.Fatalf("what Convert writes is not YAML: %v\n%s", issues, out)
	}
	_, issues = policy.Load(docs[0])
	for _, i := range issues.Errors() {
		if !strings.Contains(i.Message, "attribute") {
			t.Errorf("what Convert writes does not compile: %s\n%s", i.Render(), out)
		}
	}
}

// insideFile fails the test if an issue lies outside of its file.
func insideFile(t *testing.T, issues source.Issues, file string, data []byte) {
	t.Helper()
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(data), "\ufeff")), "\n")
	for _, i := range issues {
		if i.File != file || i.Line < 1 || i.Line > len(lines) || i.Column < 1 || i.Width < 1 {
			t.Errorf("an issue lies outside of the file: %s", i.Render())
			continue
		}
		if line := lines[i.Line-1]; utf8.ValidString(line) && i.Column+i.Width-2 > utf8.RuneCountInString(line) {
			t.Errorf("an issue lies outside of its line %q: %s", line, i.Render())
		}
	}
}
