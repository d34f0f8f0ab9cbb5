package cluster

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// TestShadows lists the shadow policies with their results. Then it makes one of them the policy that serves.
func TestShadows(t *testing.T) {
	w := newWorld(t)
	if got := w.run("celsius policy shadows"); got != "celsius: no policy is in mode Shadow\n[exit code 1]\n" {
		t.Errorf("without shadows: %s", got)
	}
	head := `{"apiVersion":"scheduling.celsius.dev/v1alpha1","kind":"SchedulingPolicy","metadata":`
	for _, object := range []string{
		head + `{"name":"default","generation":7},"spec":{"mode":"Active","pipeline":["allocate"]}}`,
		head + `{"name":"lab"},"spec":{"mode":"Active","queues":"queue.name == 'lab'","pipeline":["shuffle"]}}`,
		head + `{"name":"fresh"},"spec":{"mode":"Shadow","pipeline":["allocate"]}}`,
		head + `{"name":"changed","generation":4},"spec":{"mode":"Shadow","pipeline":["backfill"]},"status":{"shadows":[` +
			`{"name":"celsius","generation":3,"beside":"default@7+lab@1"}]}}`,
		head + `{"name":"late","generation":1},"spec":{"mode":"Shadow","pipeline":["backfill"]},"status":{"shadows":[` +
			`{"name":"celsius","generation":1,"beside":"default@6+lab@1"}]}}`,
		head + `{"name":"left","generation":1},"spec":{"mode":"Shadow","pipeline":["backfill"]},"status":{"shadows":[` +
			`{"name":"celsius","generation":1,"beside":"gone@6"}]}}`,
		head + `{"name":"trial","generation":3},"spec":{"mode":"Shadow","pipeline":["backfill"]},"status":{"shadows":[{"name":"celsius",` +
			`"generation":3,"beside":"default@7","since":"2026-01-01T00:00:00Z","cycles":{"decided":1200,"otherwise":7,"skipped":1,` +
			`"brokenOff":0,"mean":"1ms","longest":"3ms"},"pods":{"elsewhere":5,"later":1,"sooner":0,"evicted":2,"spared":0},"differences":` +
			`[{"time":"2026-01-01T10:11:12Z","kind":"Later","queue":"lab","pod":"a/train-0","text":"bound to n1; by the shadow it waits"}]}]}}`,
	} {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(object)); err != nil {
			t.Fatal(err)
		}
		if err := w.client.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ line, want string }{
		{"celsius policy shadows", `
POLICY    SCHEDULER   BESIDE            CYCLES   OTHERWISE   ELSEWHERE   LATER   SOONER   EVICTED   SPARED   ERRORS
changed   celsius     default@7+lab@1   0        0           0           0       0        0         0        0
fresh     <none>      <none>            0
late      celsius     default@6+lab@1   0        0           0           0       0        0         0        0
left      celsius     gone@6            0        0           0           0       0        0         0        0
trial     celsius     default@7         1200     7           5           1       0        2         0        0
`},
		{"celsius policy shadows trial", `
POLICY   SCHEDULER   BESIDE      CYCLES   OTHERWISE   ELSEWHERE   LATER   SOONER   EVICTED   SPARED   ERRORS
trial    celsius     default@7   1200     7           5           1       0        2         0        0

TIME       POD         QUEUE   WHAT
10:11:12   a/train-0   lab     bound to n1; by the shadow it waits
`},
		{"celsius policy shadows default", "\ncelsius: policy default is no shadow: its spec.mode is Active\n[exit code 1]\n"},
		{"celsius policy promote default", "\ncelsius: policy default is no shadow: its spec.mode is Active\n[exit code 1]\n"},
		{"celsius policy promote fresh", "\ncelsius: policy fresh was compared with none yet: write --to POLICY\n[exit code 1]\n"},
		{"celsius policy promote fresh --to fresh", `
celsius: policy fresh is to be served already: set its spec.mode to Active
[exit code 1]
`},
		{"celsius policy promote fresh --to default", `
celsius: policy fresh has not decided yet: wait until it has, or write --force
[exit code 1]
`},
		{"celsius policy promote fresh --to default --force", "\ncelsius: policy default is what fresh is already\n[exit code 1]\n"},
		{"celsius policy promote changed --dry-run", `
celsius: policy changed decided as it was in generation 3, and not yet in generation 4: wait until it has, or write --force
[exit code 1]
`},
		{"celsius policy promote late", `
celsius: policy late was compared with generation 6 of default, and not yet with generation 7: wait until it has, or write --force
[exit code 1]
`},
		{"celsius policy promote left", `
celsius: policy left was compared with generation 6 of gone, which is gone: wait until it has, or write --force
[exit code 1]
`},
		{"celsius policy promote late --force --dry-run", "\npolicy default would be what late is in generation 1\n"},
		{"celsius policy promote left --to new --dry-run", "\npolicy new would be what left is in generation 1\n"},
		{"celsius policy promote trial --dry-run", "\npolicy default would be what trial is in generation 3\n"},
		{"celsius policy promote trial", "\npolicy default is what trial is in generation 3\n"},
		{"celsius policy promote fresh --to other --force", "\npolicy other is what fresh is in generation 0\n"},
		{"celsius policy promote lab", "\ncelsius: policy lab serves queues of its own: write --to POLICY\n[exit code 1]\n"},
		{"celsius policy promote lab --to all", "\npolicy all is what lab is in generation 0\n"},
	} {
		if got := w.run(c.line); got != strings.TrimPrefix(c.want, "\n") {
			t.Errorf("$ %s\n%s\nwant\n%s", c.line, got, c.want)
		}
	}
	for _, name := range []string{"default", "other", "all"} {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("scheduling.celsius.dev/v1alpha1")
		u.SetKind("SchedulingPolicy")
		u.SetName(name)
		if err := w.client.Get(t.Context(), types.NamespacedName{Name: name}, u); err != nil {
			t.Fatal(err)
		}
		pipeline, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "pipeline")
		mode, _, _ := unstructured.NestedString(u.Object, "spec", "mode")
		_, ofQueues, _ := unstructured.NestedString(u.Object, "spec", "queues")
		want := map[string]string{"default": "backfill", "other": "allocate", "all": "shuffle"}[name]
		if pipeline[0] != want || mode != "Active" || ofQueues {
			t.Errorf("%s is %v", name, u.Object["spec"])
		}
	}
}
