package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines"
)

// treeOfQueues returns root above a and b, a above a1, a2 and a3, and a1 above a11. c names no parent.
func treeOfQueues() []client.Object {
	var out []client.Object
	for _, q := range [][2]string{
		{"root", ""},
		{"a", "root"},
		{"b", "root"},
		{"a1", "a"},
		{"a2", "a"},
		{"a3", "a"},
		{"a11", "a1"},
		{"c", ""},
	} {
		queue := &schedulingv1beta1.Queue{}
		queue.Name, queue.Spec.Parent = q[0], q[1]
		out = append(out, queue)
	}
	return out
}

// tree returns the queues as one line: name/parent and state.
func (s *stage) tree() string {
	s.t.Helper()
	var out []string
	for _, q := range s.names("queue") {
		queue := s.queue(q.Name)
		out = append(out, fmt.Sprintf("%s/%s:%s", queue.Name, queue.Spec.Parent, stateOf(queue)))
	}
	return strings.Join(out, " ")
}

// stateOf returns a queue's state, with a star if its parent closed it.
func stateOf(queue *schedulingv1beta1.Queue) string {
	if queue.Annotations["volcano.sh/closed-by-parent"] == "true" {
		return string(queue.Status.State) + "*"
	}
	return string(queue.Status.State)
}

// closeAndOpen closes and opens a branch of the tree, and returns the state of the queues after each Command. A Command is executed at most
// once: if it was lost with a controller, the user sends another one.
func closeAndOpen(s *stage) []string {
	s.t.Helper()
	s.guarded()
	s.settle()
	out := []string{s.tree()}
	for _, c := range []struct {
		action, queue string
		done          []string
	}{
		{"CloseQueue", "a2", []string{"Closed"}},
		{"CloseQueue", "a", []string{"Closed", "Closing"}},
		{"OpenQueue", "a1", []string{"Closed*"}},
		{"CloseQueue", "a3", []string{"Closed"}},
		{"OpenQueue", "a", []string{"Open"}},
		{"CloseQueue", "root", []string{"Open"}},
	} {
		for range 2 {
			s.commandTo(c.action, c.queue)
			if slices.Contains(c.done, stateOf(s.queue(c.queue))) {
				break
			}
		}
		out = append(out, c.action+" "+c.queue+": "+s.tree())
	}
	return out
}

// TestQueueTree checks that queues at any depth are closed with their parent and opened with it, except queues that were closed by their
// own command. No queue is opened before its parent. A queue without a parent gets root.
func TestQueueTree(t *testing.T) {
	objects := append(treeOfQueues(), &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "work"}, Spec: schedulingv1beta1.PodGroupSpec{Queue: "a"},
	}, &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deep"}, Spec: schedulingv1beta1.PodGroupSpec{Queue: "a11"},
	})
	s := newStage(t, Options{}, objects...)
	const closed = "a/root:Closing a1/a:Closed* a11/a1:Closing* a2/a:Closed a3/a:Closed* b/root:Open c/root:Open root/:Open"
	want := []string{
		"a/root:Open a1/a:Open a11/a1:Open a2/a:Open a3/a:Open b/root:Open c/root:Open root/:Open",
		"CloseQueue a2: a/root:Open a1/a:Open a11/a1:Open a2/a:Closed a3/a:Open b/root:Open c/root:Open root/:Open",
		"CloseQueue a: " + closed,
		"OpenQueue a1: " + closed,
		"CloseQueue a3: " + strings.Replace(closed, "a3/a:Closed*", "a3/a:Closed", 1),
		"OpenQueue a: a/root:Open a1/a:Open a11/a1:Open a2/a:Closed a3/a:Closed b/root:Open c/root:Open root/:Open",
		"CloseQueue root: a/root:Open a1/a:Open a11/a1:Open a2/a:Closed a3/a:Closed b/root:Open c/root:Open root/:Open",
	}
	if diff := cmp.Diff(want, closeAndOpen(s)); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	for _, text := range []string{
		"a1 Warning OpenQueue: OpenQueue has no effect, the queue stays Closed: the queue above it is closed, or closing; open that first",
		"root Warning CloseQueue: CloseQueue has no effect, the queue stays Open: the queue root is above all others, and cannot be closed",
	} {
		if !s.told(text) {
			t.Errorf("no event %q in %q", text, s.lines)
		}
	}
}

// TestQueueTreeInTrouble lets every write fail once with which queues follow their parent. The result must be the same.
func TestQueueTreeInTrouble(t *testing.T) {
	calm := newStage(t, Options{}, treeOfQueues()...)
	closeAndOpen(calm)
	want := calm.tree()
	for call := 1; call <= calm.calls; call++ {
		for _, tr := range []trouble{{call, true, true}, {call, false, true}, {call, call%2 == 0, false}} {
			s := newStage(t, Options{}, treeOfQueues()...)
			s.trouble = tr
			closeAndOpen(s)
			if diff := cmp.Diff(want, s.tree()); diff != "" {
				t.Fatalf("%+v of %d calls (-calm +trouble):\n%s", tr, calm.calls, diff)
			}
		}
	}
}

// TestQueuesBelow checks that a changed queue wakes its children.
func TestQueuesBelow(t *testing.T) {
	s := newStage(t, Options{}, treeOfQueues()...)
	q, ok := s.reconcilers["queue"].(*queues)
	if !ok {
		t.Fatal("no controller of queues")
	}
	var got []types.NamespacedName
	for _, r := range q.children(t.Context(), s.queue("a")) {
		got = append(got, r.NamespacedName)
	}
	if diff := cmp.Diff([]types.NamespacedName{{Name: "a1"}, {Name: "a2"}, {Name: "a3"}}, got); diff != "" {
		t.Errorf("queues below a (-want +got):\n%s", diff)
	}
}

// TestQueueCountsLeaveTheStateAlone checks that a write of counts from an older state does not undo a newer state of the queue.
func TestQueueCountsLeaveTheStateAlone(t *testing.T) {
	s := newStage(t, Options{}, openQueue())
	s.settle()
	q, ok := s.reconcilers["queue"].(*queues)
	if !ok {
		t.Fatal("no controller of queues")
	}
	seen := s.queue(openQueue().Name)
	closing := seen.DeepCopy()
	closing.Status.State = schedulingv1beta1.QueueStateClosing
	if err := s.api.Status().Update(t.Context(), closing); err != nil {
		t.Fatal(err)
	}
	counts := &statemachines.Queue{Running: 1}
	s.now = s.now.Add(countsEvery)
	if _, err := q.write(t.Context(), seen, counts, string(seen.Status.State), q.memory.of(queueKey(seen.Name), seen.UID)); err != nil {
		t.Fatal(err)
	}
	is := s.queue(seen.Name)
	if is.Status.State != schedulingv1beta1.QueueStateClosing || is.Status.Running != 1 {
		t.Errorf("the queue is %s and counts %d running, want Closing and 1", is.Status.State, is.Status.Running)
	}
}

// TestQueueCountsAreWrittenOnceASecond checks that a queue's counts are written at the earliest one second after the last write, whatever
// causes a reconcile before that. A new state is written at once.
func TestQueueCountsAreWrittenOnceASecond(t *testing.T) {
	queue := openQueue()
	s := newStage(t, Options{}, queue)
	s.settle()
	q, ok := s.reconcilers["queue"].(*queues)
	if !ok {
		t.Fatal("no controller of queues")
	}
	look := func(pending int) {
		t.Helper()
		for i := range pending {
			group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("g", i)}}
			group.Spec.Queue = queue.Name
			q.groups.see(group)
		}
		result, err := q.Reconcile(t.Context(), reconcile.Request{NamespacedName: queueKey(queue.Name)})
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(result.RequeueAfter)
	}
	s.now = s.now.Add(countsEvery)
	look(1)
	before := s.now
	look(2)
	if is := s.queue(queue.Name).Status.Pending; is != 1 || s.now.Sub(before) != countsEvery {
		t.Errorf("%d pending are written within a second, and it is looked at again after %s", is, s.now.Sub(before))
	}
	look(2)
	if is := s.queue(queue.Name).Status.Pending; is != 2 {
		t.Errorf("%d pending are written, and a second is over", is)
	}
	seen := s.queue(queue.Name)
	closing := string(schedulingv1beta1.QueueStateClosing)
	counts := &statemachines.Queue{Pending: 2}
	if _, err := q.write(t.Context(), seen, counts, closing, q.memory.of(queueKey(seen.Name), seen.UID)); err != nil {
		t.Fatal(err)
	}
	if is := s.queue(queue.Name).Status.State; string(is) != closing {
		t.Errorf("the queue is %s", is)
	}
}
