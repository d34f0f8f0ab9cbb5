package live

import (
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/lease"
)

// TestNoControllers reports the objects that wait for controllers that do not run: Jobs without a status, and pods with an owner and
// without a PodGroup.
func TestNoControllers(t *testing.T) {
	begin := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	meta := func(name string, age time.Duration, change ...func(*metav1.ObjectMeta)) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Name: name, Namespace: "nlp", UID: types.UID(name), CreationTimestamp: metav1.NewTime(begin.Add(-age))}
		for _, c := range change {
			c(&m)
		}
		return m
	}
	owned := func(m *metav1.ObjectMeta) {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}}
	}
	grouped := func(m *metav1.ObjectMeta) {
		m.Annotations = map[string]string{v1beta1.KubeGroupNameAnnotationKey: "podgroup-web"}
	}
	job := func(m metav1.ObjectMeta, scheduler string, phase batchv1alpha1.JobPhase) client.Object {
		j := &batchv1alpha1.Job{ObjectMeta: m}
		j.Spec.SchedulerName, j.Status.State.Phase = scheduler, phase
		return j
	}
	pod := func(m metav1.ObjectMeta, scheduler, node string) client.Object {
		return &corev1.Pod{ObjectMeta: m, Spec: corev1.PodSpec{SchedulerName: scheduler, NodeName: node}}
	}
	const old = 10 * time.Minute
	objects := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(
		job(meta("bert-large", old), "celsius", ""),
		job(meta("resnet-50", old), "", ""),
		job(meta("pending", old), "volcano", batchv1alpha1.Pending),
		job(meta("of-kueue", old), "kueue", ""),
		job(meta("new", -time.Minute), "volcano", ""),
		pod(meta("web-1", old, owned), "celsius", ""),
		pod(meta("web-2", old, owned), "celsius", "gpu-node-17"),
		pod(meta("web-3", old, owned, grouped), "celsius", ""),
		pod(meta("alone", old), "celsius", ""),
		pod(meta("other", old, owned), "default-scheduler", ""),
	).Build()
	var told []string
	w := &controllersWatch{
		lease: lease.Watch{Name: types.NamespacedName{Namespace: "celsius-system", Name: "celsius-controllers"}},
		names: []string{"celsius", "volcano"}, server: objects, objects: objects, log: logr.Discard(),
		tell: func(on client.Object, v *lease.Vacancy) {
			if got := v.String(); got != "Lease celsius-system/celsius-controllers does not exist" {
				t.Errorf("%s: %s", on.GetName(), got)
			}
			told = append(told, on.GetName())
		},
	}
	look := func(after time.Duration, want ...string) {
		t.Helper()
		told = nil
		if err := w.look(t.Context(), begin.Add(after)); err != nil {
			t.Fatal(err)
		}
		slices.Sort(told)
		if !slices.Equal(told, want) {
			t.Errorf("after %s: reported on %q, want %q", after, told, want)
		}
	}
	look(0)
	look(15 * time.Second)
	look(30*time.Second, "bert-large", "resnet-50", "web-1")
	look(45 * time.Second) // each object gets one event
	look(2*time.Minute, "new")
}
