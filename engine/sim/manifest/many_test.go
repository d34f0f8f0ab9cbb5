package manifest_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// cost is the CPU time and the memory that a function uses. Other programs do not change it.
type cost struct {
	cpu             time.Duration
	objects, memory uint64 // allocations
}

// costOf runs a function. No other test may run at the same time.
func costOf(t *testing.T, do func()) cost {
	t.Helper()
	read := func() (c cost) {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return cost{time.Duration(u.Utime.Nano() + u.Stime.Nano()), m.Mallocs, m.TotalAlloc}
	}
	before := read()
	do()
	after := read()
	return cost{after.cpu - before.cpu, after.objects - before.objects, after.memory - before.memory}
}

// TestManyNamesOfOneObject checks that the work to read an object is in proportion to its size, for every kind of list or mapping. The
// check of a name, or of a task, must not search among all of them. A search that allocates shows in the memory. One that does not allocate
// shows only in the time of the processor, for which the limit is wide.
func TestManyNamesOfOneObject(t *testing.T) { //nolint:paralleltest // it measures the process
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
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // it measures the process
			took := func(n int) cost {
				data := []byte(object(n))
				return costOf(t, func() {
					_, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: "a.yaml", Data: data})
					if err := issues.Err(); err != nil {
						t.Fatal(err)
					}
				})
			}
			few, many := took(300), took(3_000)
			if many.objects > 15*few.objects || many.memory > 15*few.memory {
				t.Fatalf("10 times as many take %+v instead of %+v", many, few)
			}
			few, many = took(3_000), took(30_000)
			if many.cpu > 40*few.cpu {
				t.Errorf("10 times as many take %+v instead of %+v", many, few)
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
