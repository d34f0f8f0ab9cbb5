package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/live/recovery"
)

// TestReconcilersSurvivePanics has a reconciler that panics at one Job, itself or in a goroutine that it waits for. The panic is reported
// on the Job once, the Job is skipped until it changes, and all other Jobs are reconciled.
func TestReconcilersSurvivePanics(t *testing.T) {
	for name, fail := range map[string]func(){
		"itself": func() { panic("test panics") },
		"in a goroutine": func() {
			inParallel(make([]*corev1.Pod, 3), func(*corev1.Pod) error { panic("test panics") })
		},
	} {
		t.Run(name, func(t *testing.T) { survives(t, fail) })
	}
}

// reportsPanics checks that two panics are counted, and that one event names the Job.
func reportsPanics(t *testing.T, p *parts, said chan string) {
	t.Helper()
	if got := testutil.ToFloat64(p.metrics.panics.WithLabelValues(string(recovery.Reconciler))); got != 2 {
		t.Errorf("%v panics are counted", got)
	}
	if n := len(said); n != 1 {
		t.Fatalf("%d events", n)
	}
	if e := <-said; !strings.Contains(e, eventLeftOut) || !strings.Contains(e, "test panics") {
		t.Errorf("event %q", e)
	}
}

// survives runs TestReconcilersSurvivePanics for one way to panic.
func survives(t *testing.T, fail func()) {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	job := func(name string) *batchv1alpha1.Job {
		return &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nlp", Name: name, UID: types.UID(name)}}
	}
	wrong := job("bert-large-finetune")
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(wrong)
	for i := range 20 {
		b = b.WithObjects(job(fmt.Sprintf("resnet50-sweep-%d", i)))
	}
	c, said, now := b.Build(), events.NewFakeRecorder(100), time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	p := &parts{client: c, recorder: said, metrics: newMetrics(prometheus.NewRegistry()), now: func() time.Time { return now }}
	seen, tries := map[string]int{}, 0
	r := p.recovering(&batchv1alpha1.Job{}, reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		o := &batchv1alpha1.Job{}
		if err := c.Get(ctx, req.NamespacedName, o); err != nil {
			return reconcile.Result{}, err
		}
		if o.Name == wrong.Name && o.Annotations["corrected"] == "" {
			tries++
			fail()
		}
		seen[o.Name]++
		return reconcile.Result{}, nil
	}))
	look := func(name string) reconcile.Result {
		t.Helper()
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "team-nlp", Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	for range 3 { // its pods change, but the Job does not
		if again := look(wrong.Name).RequeueAfter; again != leftOutFor {
			t.Errorf("the Job is looked at again after %s", again)
		}
	}
	for i := range 20 {
		look(fmt.Sprintf("resnet50-sweep-%d", i))
	}
	now = now.Add(leftOutFor)
	look(wrong.Name)
	if len(seen) != 20 || tries != 2 {
		t.Errorf("%d other jobs were reconciled, and the wrong one %d times", len(seen), tries)
	}
	reportsPanics(t, p, said.Events)
	wrong.Annotations = map[string]string{"corrected": "true"}
	if err := c.Update(t.Context(), wrong); err != nil {
		t.Fatal(err)
	}
	if look(wrong.Name); seen[wrong.Name] != 1 {
		t.Error("the corrected Job is not reconciled")
	}
}
