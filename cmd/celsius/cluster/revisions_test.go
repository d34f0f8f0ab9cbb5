package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/engine/live/serving"
)

// TestRevisions lists the revisions that served, prints one of them, and goes back to it.
func TestRevisions(t *testing.T) {
	w := newWorld(t)
	object := func(pipeline string) string {
		return fmt.Sprintf(`{"apiVersion":"scheduling.celsius.dev/v1alpha1","kind":"SchedulingPolicy","metadata":{"name":"house"},`+
			`"spec":{"pipeline":[%q],"rollback":{"rowErrors":3},"tiers":[{"name":"t","tables":[{"name":"overcommit","params":{"factor":2}}]}]}}`,
			pipeline)
	}
	for number, pipeline := range []string{1: "allocate", 2: "backfill", 3: "allocate"} {
		if number == 0 {
			continue
		}
		revision := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "celsius-system", Name: fmt.Sprintf("celsius-policy-%d", number),
				CreationTimestamp: metav1.NewTime(now().Add(time.Duration(number-4) * time.Hour)),
				Labels: map[string]string{
					serving.LabelScheduler: "celsius", serving.LabelPolicy: "house", serving.LabelGeneration: fmt.Sprint(number + 4),
				},
			},
			Revision: int64(number), Data: runtime.RawExtension{Raw: []byte(object(pipeline))},
		}
		if err := w.client.Create(t.Context(), revision); err != nil {
			t.Fatal(err)
		}
	}
	stored := &unstructured.Unstructured{}
	if err := stored.UnmarshalJSON([]byte(object("allocate"))); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, want string }{
		{"celsius policy revisions", `
REVISION   POLICY   GENERATION   SCHEDULER   AGE
3          house    7            celsius     60m
2          house    6            celsius     120m
1          house    5            celsius     3h
`},
		{"celsius policy revisions house --revision 2", `
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata:
  name: house
spec:
  pipeline:
  - backfill
  rollback:
    rowErrors: 3
  tiers:
  - name: t
    tables:
    - name: overcommit
      params:
        factor: 2
`},
		{"celsius policy revisions other", `
celsius: no policy other is known to have served: none is kept in namespace celsius-system; -n says where Celsius is
[exit code 1]
`},
		{"celsius policy revisions -n elsewhere", `
celsius: no policy served: none is kept in namespace elsewhere; -n says where Celsius is
[exit code 1]
`},
		{"celsius policy rollback house --to-revision 9", `
celsius: there is no revision 9; the newest is 3, the oldest 1
[exit code 1]
`},
		{"celsius policy rollback house --to-revision 1", `
celsius: policy house is what it was in revision 1
[exit code 1]
`},
		{"celsius policy rollback house --dry-run", "\npolicy house would be rolled back to revision 2 (generation 6)\n"},
		{"celsius policy rollback house", "\npolicy house is rolled back to revision 2 (generation 6); it is generation 0 now\n"},
		{"celsius policy rollback house", "\npolicy house is rolled back to revision 3 (generation 7); it is generation 0 now\n"},
		{"celsius policy rollback house --to-revision 2", "\npolicy house is rolled back to revision 2 (generation 6); it is generation 0 now\n"},
	} {
		if got := w.run(c.line); got != strings.TrimPrefix(c.want, "\n") {
			t.Errorf("$ %s\n%s\nwant\n%s", c.line, got, c.want)
		}
	}
	got := &unstructured.Unstructured{}
	got.SetGroupVersionKind(stored.GroupVersionKind())
	if err := w.client.Get(t.Context(), types.NamespacedName{Name: "house"}, got); err != nil {
		t.Fatal(err)
	}
	if pipeline, _, _ := unstructured.NestedStringSlice(got.Object, "spec", "pipeline"); fmt.Sprint(pipeline) != "[backfill]" {
		t.Errorf("stored is pipeline %v", pipeline)
	}
}

// TestRevisionOfTwoSchedulers requests a revision that two schedulers have. Then it names the policy, as the message tells it to do.
func TestRevisionOfTwoSchedulers(t *testing.T) {
	w := newWorld(t)
	for scheduler, policy := range map[string]string{"celsius": "house", "lab": "trial"} {
		object := fmt.Sprintf(`{"apiVersion":"scheduling.celsius.dev/v1alpha1","kind":"SchedulingPolicy","metadata":{"name":%q},`+
			`"spec":{"pipeline":["allocate"]}}`, policy)
		err := w.client.Create(t.Context(), &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "celsius-system", Name: scheduler + "-policy-1", CreationTimestamp: metav1.NewTime(now()),
				Labels: map[string]string{serving.LabelScheduler: scheduler, serving.LabelPolicy: policy, serving.LabelGeneration: "1"},
			},
			Revision: 1, Data: runtime.RawExtension{Raw: []byte(object)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := w.run("celsius policy revisions --revision 1"); !strings.Contains(got, "both have a revision 1: name the policy") {
		t.Errorf("two schedulers: %s", got)
	}
	if got := w.run("celsius policy revisions trial --revision 1"); !strings.Contains(got, "name: trial") {
		t.Errorf("after the remedy: %s", got)
	}
}
