package lease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/celsius-scheduler/celsius/engine/live/lease"
)

// TestWatch follows the Lease of another part through a start, renewals by a clock that is an hour late, a crash and a release.
func TestWatch(t *testing.T) {
	name := types.NamespacedName{Namespace: "celsius-system", Name: "celsius-scheduler"}
	var broken error
	server := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if broken != nil {
				return broken
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	w := lease.Watch{Name: name}
	look := func(after time.Duration, want string) {
		t.Helper()
		now = now.Add(after)
		v, err := w.Look(t.Context(), server, now)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if v != nil {
			got = v.String()
		}
		if got != want {
			t.Errorf("at %s: %q, want %q", now.Format(time.TimeOnly), got, want)
		}
	}
	look(0, "")
	look(20*time.Second, "")
	look(time.Second, "Lease celsius-system/celsius-scheduler does not exist")

	seconds := int32(15)
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name.Name, Namespace: name.Namespace}}
	if err := server.Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	renew := func(holder string) {
		t.Helper()
		at := metav1.NewMicroTime(now.Add(-time.Hour))
		l.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at, LeaseDurationSeconds: &seconds}
		if err := server.Update(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		renew("celsius-scheduler-6d5f_a")
		look(15*time.Second, "")
	}
	look(20*time.Second, "")
	broken = errors.New("etcdserver: request timed out")
	if _, err := w.Look(t.Context(), server, now); err == nil || !errors.Is(err, broken) {
		t.Errorf("an error of the API server is lost: %v", err)
	}
	broken = nil
	look(time.Second, "Lease celsius-system/celsius-scheduler was last renewed at 2026-11-27T08:02:36Z")
	renew("")
	look(0, "")
	look(21*time.Second, "nothing holds Lease celsius-system/celsius-scheduler")
}

// TestVacancyOf compares a Lease with the clock of the caller.
func TestVacancyOf(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	held := func(holder string, renewed time.Duration) *coordinationv1.Lease {
		l := &coordinationv1.Lease{}
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &holder, new(int32(15))
		l.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(-renewed)}
		return l
	}
	unstated := held("a", 14*time.Second)
	unstated.Spec.LeaseDurationSeconds = nil
	for _, c := range []struct {
		name  string
		lease *coordinationv1.Lease
		want  bool
	}{
		{"alive", held("a", 5*time.Second), true},
		{"dead", held("a", time.Minute), false},
		{"released", held("", time.Second), false},
		{"never held", &coordinationv1.Lease{}, false},
		{"no duration", unstated, true},
	} {
		if got := lease.VacancyOf(c.lease, now) == nil; got != c.want {
			t.Errorf("%s: held is %v", c.name, got)
		}
	}
}

// TestReports reports on the oldest objects first and on each object once. It forgets objects that no longer wait.
func TestReports(t *testing.T) {
	begin := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	pod := func(name string, age time.Duration) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(begin.Add(-age))}}
	}
	train, eval, flood := pod("train-0", time.Hour), pod("eval-0", time.Minute), []client.Object{}
	for i := range 5 {
		flood = append(flood, pod(fmt.Sprint("flood-", i), 30*time.Minute))
	}
	var r lease.Reports
	next := func(waiting []client.Object, want ...string) {
		t.Helper()
		var got []string
		for _, o := range r.Next(waiting, 3) {
			got = append(got, o.GetName())
		}
		if !slices.Equal(got, want) {
			t.Errorf("reports on %q, want %q", got, want)
		}
	}
	all := append([]client.Object{eval, train}, flood...)
	next(all, "train-0", "flood-0", "flood-1")
	next(all, "flood-2", "flood-3", "flood-4")
	next(all, "eval-0")
	next(all)
	next([]client.Object{eval})
	next([]client.Object{eval, train}, "train-0") // it did not wait in between
}
