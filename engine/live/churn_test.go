package live

import (
	"fmt"
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// TestChurn has 200,000 pods come, be bound, end and go, a wave after the other, half of them in gangs of ten, and
// holds that what is kept of them does not grow: after the last wave there is as much on the heap as after the first few.
func TestChurn(t *testing.T) { //nolint:gocyclo // one case after the other
	const (
		wave   = 2000
		waves  = 100
		warm   = 10 // waves after which all that is remembered for a while has been
		window = 8  // waves of which the least is taken: what is remembered grows and is cut
	)
	r := newRig(t)
	server := r.server
	server.put(testQueue("default"))
	for i := range 40 {
		server.put(testNode(fmt.Sprintf("n%02d", i), "64"))
	}
	shared := newStripper()
	seen := handler([]string{"celsius"}, r.feed)
	known := map[string]*corev1.Pod{}
	// deliver tells the feed as informers do: of objects that are the feed's own, stripped.
	deliver := func() {
		for _, c := range server.history {
			if p, ok := c.object.(*corev1.Pod); ok {
				if _, err := shared.strip(p); err != nil {
					t.Fatal(err)
				}
				key := model.Key(p.Namespace, p.Name)
				switch old := known[key]; {
				case c.op == model.Delete:
					seen.OnDelete(p)
					delete(known, key)
				case old == nil:
					seen.OnAdd(p, false)
					known[key] = p
				default:
					seen.OnUpdate(old, p)
					known[key] = p
				}
				continue
			}
			r.feed.add(c, true)
		}
		server.history, server.events, server.messages, server.bindings, server.writes = nil, nil, nil, nil, nil
	}
	now := time.Now()
	cycle := func() {
		deliver()
		now = now.Add(time.Second)
		r.once(now)
		for r.work() {
		}
	}
	cycle()
	empty, first, last := heap(), math.Inf(1), math.Inf(1)
	for n := range waves {
		for i := range wave {
			name := fmt.Sprintf("w%d-%d", n, i)
			group, size := "g-"+name, 1
			if i < wave/2 {
				group, size = fmt.Sprintf("g-w%d-%d", n, i/10), 10
			}
			if i%size == 0 {
				server.put(testGroup(group, int32(size)))
			}
			p := testPod(name, group, "1")
			p.Spec.Hostname, p.Spec.Containers[0].Image = name, "image-"+name // each pod is like no other
			server.put(p)
		}
		cycle()
		cycle()
		if bound := len(server.pods) - pending(server); bound != wave {
			t.Fatalf("wave %d: %d pods are bound", n, bound)
		}
		for i := range wave / 2 { // the others are deleted while they run
			server.as(fmt.Sprintf("default/w%d-%d", n, i), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
		}
		cycle()
		for _, p := range server.pods {
			server.drop(p)
		}
		for _, g := range server.groups {
			server.drop(g)
		}
		cycle()
		cycle()
		switch {
		case n >= warm && n < warm+window:
			first = min(first, heap())
		case n >= waves-window:
			last = min(last, heap())
		}
	}
	t.Logf("%.1f MB before, %.1f MB after %d pods, %.1f MB after %d", empty/1e6, first/1e6, (warm+window)*wave, last/1e6, waves*wave)
	if last-first > 10e6 {
		t.Errorf("%.1f MB more are kept after %d pods more", (last-first)/1e6, (waves-warm-window)*wave)
	}
	if kept := last - empty; kept > 60e6 { // what is remembered of the last few thousand
		t.Errorf("%.1f MB are kept of what is gone", kept/1e6)
	}
	if len(r.cluster.Tasks)+len(r.cluster.Jobs)+len(r.intake.groups)+len(r.intake.member)+len(r.statuses.waits) > 0 {
		t.Errorf("kept: %d tasks, %d jobs, %d groups, %d members, %d waits", len(r.cluster.Tasks), len(r.cluster.Jobs), len(r.intake.groups), len(r.intake.member), len(r.statuses.waits))
	}
}

// pending counts the pods without a node.
func pending(f *fakeServer) int {
	n := 0
	for _, p := range f.pods {
		if p.Spec.NodeName == "" {
			n++
		}
	}
	return n
}
