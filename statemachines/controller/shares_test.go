package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// sharing returns a queue with a parent, created the given seconds after noon, with a guarantee and a deserved share in CPUs.
func sharing(name, parent string, after int, guaranteed, deserved string) *schedulingv1beta1.Queue {
	q := &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Date(2026, 11, 21, 12, 0, after, 0, time.UTC)),
	}}
	q.Spec.Parent = parent
	if guaranteed != "" {
		q.Spec.Guarantee.Resource = corev1.ResourceList{"cpu": resource.MustParse(guaranteed)}
	}
	if deserved != "" {
		q.Spec.Deserved = corev1.ResourceList{"cpu": resource.MustParse(deserved)}
	}
	return q
}

// lookAtShares reconciles queues.
func lookAtShares(c *shares, s *stage, names ...string) {
	s.t.Helper()
	for _, name := range names {
		if _, err := c.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: queueKey(name)}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// changeDeserved changes the deserved share of a queue, and returns the queues that may be affected.
func changeDeserved(c *shares, s *stage, name, deserved string) (concerned []string) {
	s.t.Helper()
	q := &schedulingv1beta1.Queue{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Name: name}, q); err != nil {
		s.t.Fatal(err)
	}
	q.Spec.Deserved["cpu"] = resource.MustParse(deserved)
	if err := s.api.Update(s.t.Context(), q); err != nil {
		s.t.Fatal(err)
	}
	for _, r := range c.concerned(s.t.Context(), q) {
		concerned = append(concerned, r.Name)
	}
	return concerned
}

// marksOf lists the conditions of all queues, each with its time after noon.
func marksOf(s *stage) (out []string) {
	s.t.Helper()
	list := &schedulingv1beta1.QueueList{}
	if err := s.api.List(s.t.Context(), list); err != nil {
		s.t.Fatal(err)
	}
	for _, q := range list.Items {
		for _, c := range q.Status.Conditions {
			since := c.LastTransitionTime.UTC().Format("04:05")
			out = append(out, fmt.Sprintf("%s %s=%s %s since %s: %s", q.Name, c.Type, c.Status, c.Reason, since, c.Message))
		}
	}
	return out
}

// TestSharesOverParent has queues that were admitted at the same time and together exceed their parent. The later one is marked, in any
// order of events, and reported once until something changes. When it fits again, the mark states this.
func TestSharesOverParent(t *testing.T) {
	const words = "z Warning SharesOverParent: spec.deserved.cpu: with its sibling queues that came earlier makes 11, and queue org above " +
		"them deserves 10; write less, or raise that of org"
	for name, order := range map[string][]string{"as they were made": {"a", "m", "z"}, "the last first": {"z", "m", "a"}} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, Options{}, sharing("root", "", 0, "", ""), sharing("org", "root", 0, "5", "10"),
				sharing("m", "org", 1, "2", "4"), sharing("a", "org", 2, "2", "4"), sharing("z", "org", 2, "1", "3"))
			c := &shares{s.parts}
			look := func(names ...string) { lookAtShares(c, s, names...) }
			change := func(name, deserved string) {
				t.Helper()
				look(changeDeserved(c, s, name, deserved)...)
			}
			look(append(order, "root", "org", "gone")...)
			if diff := cmp.Diff([]string{words}, s.lines); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			wantMarks := func(want ...string) {
				t.Helper()
				if diff := cmp.Diff(want, marksOf(s)); diff != "" {
					t.Errorf("marks (-want +got):\n%s", diff)
				}
			}
			wantMarks("z SharesOverParent=True SharesOverParent since 00:00: " + strings.TrimPrefix(words, "z Warning SharesOverParent: "))
			s.now = s.now.Add(time.Minute)
			s.lines = nil
			if look("z"); len(s.lines) > 0 {
				t.Errorf("it is told again: %v", s.lines)
			}
			if change("org", "11"); len(s.lines) > 0 {
				t.Errorf("it fits, and is told: %v", s.lines)
			}
			wantMarks("z SharesOverParent=False SharesFit since 01:00: what the queue is guaranteed and deserves fits again")
			if change("m", "5"); len(s.lines) != 1 || !strings.Contains(s.lines[0], "makes 12") {
				t.Fatalf("what changed before it is told as %v", s.lines)
			}
			wantMarks("z SharesOverParent=True SharesOverParent since 01:00: " + strings.TrimPrefix(s.lines[0], "z Warning SharesOverParent: "))
		})
	}
}

// TestConcernedByShares checks which queues are reconciled when a queue changes.
func TestConcernedByShares(t *testing.T) {
	s := newStage(t, Options{}, sharing("root", "", 0, "", ""), sharing("org", "root", 0, "", "10"), sharing("other", "root", 1, "", "10"),
		sharing("a", "org", 1, "", "4"), sharing("b", "org", 2, "", "4"), sharing("c", "org", 3, "", ""), sharing("d", "org", 3, "1", ""))
	c := &shares{s.parts}
	for name, want := range map[string][]string{"org": {"a", "b", "d"}, "a": {"b", "d"}, "b": {"d"}, "d": nil, "root": nil} {
		q := &schedulingv1beta1.Queue{}
		if err := s.api.Get(t.Context(), client.ObjectKey{Name: name}, q); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range c.concerned(t.Context(), q) {
			got = append(got, r.Name)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s concerns %v, want %v", name, got, want)
		}
	}
}

// TestSharesManyTooMuch checks that a queue with too many excessive amounts lists only some of them.
func TestSharesManyTooMuch(t *testing.T) {
	q, parent := sharing("a", "org", 1, "", ""), sharing("org", "root", 0, "", "")
	q.Spec.Deserved = corev1.ResourceList{}
	for i := range 1000 {
		q.Spec.Deserved[corev1.ResourceName(fmt.Sprintf("example.com/r%03d", i))] = resource.MustParse("1")
	}
	got := tooMuch(q, parent, []*schedulingv1beta1.Queue{q})
	if strings.Count(got, "spec.deserved.") != 20 || !strings.HasSuffix(got, "; and 980 more; write less, or raise that of org") {
		t.Errorf("it says %s", got)
	}
}
