package manifest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// TestManyNamesOfOneObject checks that the time to read an object is in proportion to its size, whatever it has many of. The check of a
// name, or of a task, must not search among all of them.
func TestManyNamesOfOneObject(t *testing.T) { //nolint:paralleltest // it measures time
	for name, object := range map[string]func(n int) string{
		"minTaskMember": func(n int) string {
			var out strings.Builder
			out.WriteString("apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g, uid: g}\nspec:\n  minTaskMember:\n")
			for i := range n {
				fmt.Fprintf(&out, "    role-%d: 1\n", i)
			}
			return out.String()
		},
		"tasks": func(n int) string {
			var out strings.Builder
			out.WriteString("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j, uid: j}\nspec:\n  tasks:\n")
			for i := range n {
				fmt.Fprintf(&out, "  - {name: t%d, replicas: 0, template: {spec: {containers: [{name: c, image: i}]}}}\n", i)
			}
			return out.String()
		},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // it measures time
			took := func(n int) time.Duration {
				best := time.Hour
				for range 3 {
					began := time.Now()
					_, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: "a.yaml", Data: []byte(object(n))})
					best = min(best, time.Since(began))
					if err := issues.Err(); err != nil {
						t.Fatal(err)
					}
				}
				return best
			}
			if few, many := took(3_000), took(30_000); many > 40*few {
				t.Errorf("10 times as many take %s instead of %s", many, few)
			}
		})
	}
	_, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: "a.yaml", Data: []byte(
		"apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: {minTaskMember: {a: 1, b: -1}}\n")})
	want := "a.yaml:4:33: spec.minTaskMember.b: must not be negative, found -1"
	if len(issues) != 1 || !strings.Contains(issues[0].Error(), want) {
		t.Errorf("got %v, want %s", issues, want)
	}
}
