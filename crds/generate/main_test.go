package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFinishTwice holds that what is finished stays as it is.
func TestFinishTwice(t *testing.T) {
	files, err := filepath.Glob("../manifests/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := finish(want)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestFinish(t *testing.T) {
	const raw = `
spec:
  names: {kind: Job}
  versions:
  - schema:
      openAPIV3Schema:
        description: ours
        properties:
          kind: {description: theirs, type: string}
          spec:
            description: ours
            properties:
              tasks:
                items:
                  properties:
                    name: {description: ours, type: string}
                    template:
                      description: ours
                      properties:
                        metadata: {description: theirs, type: object}
                        spec:
                          description: theirs
                          properties:
                            containers: {items: {description: theirs, type: object}, type: array}
                      type: object
                  type: object
                type: array
            type: object
        type: object
`
	got, err := finish([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(got), "theirs") {
		t.Errorf("a description that is not ours was left:\n%s", got)
	}
	if n := strings.Count(string(got), "description: ours"); n != 4 {
		t.Errorf("%d of our descriptions were left, want 4:\n%s", n, got)
	}
	if n := strings.Count(string(got), "x-kubernetes-preserve-unknown-fields: true"); n != 2 {
		t.Errorf("%d places keep unknown fields, want the template's metadata, and in it what field managers own:\n%s", n, got)
	}
	if !strings.Contains(string(got), "creationTimestamp:\n") {
		t.Errorf("the template's metadata is kept, and not described:\n%s", got)
	}
}

func TestUnbroken(t *testing.T) {
	for in, want := range map[string]string{
		"one line":               "one line",
		"two\nlines":             "two lines",
		"a paragraph\n\nanother": "a paragraph\n\nanother",
		"a list:\n- of\n- two":   "a list:\n- of\n- two",
		"code:\n  x = 1\nends":   "code:\n  x = 1\nends",
	} {
		if got := unbroken(in); got != want {
			t.Errorf("unbroken(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFinishErrors(t *testing.T) {
	for raw, want := range map[string]string{
		"a: [":            "parse:",
		"kind: ConfigMap": "not a CustomResourceDefinition",
		"spec: {names: {kind: Pod}, versions: [{schema: {openAPIV3Schema: {}}}]}": "kind Pod has no Go type " +
			"here",
		"spec: {names: {kind: Job}, versions: [{schema: {openAPIV3Schema: {properties: {speck: {}}}}}]}": "Job.speck: v1alpha1.Job " +
			"has no such field",
		"spec: {names: {kind: Job}, versions: [{schema: {openAPIV3Schema: {properties: {kind: {type: integer}}}}}]}": "Job.kind: it is not " +
			"known what of integer a string cannot decode",
		"spec: {versions: [{name: a}]}": "spec.versions[0].schema.openAPIV3Schema is missing",
	} {
		if _, err := finish([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("finish(%q) = %v, want an error with %q", raw, err, want)
		}
	}
	if err := finishAll(t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no manifest") {
		t.Errorf("an empty folder gave %v", err)
	}
}
