package live

import (
	"fmt"
	"math"
	"runtime/debug"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/celsius-scheduler/celsius/engine/live/strip"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// TestChurn creates 200,000 pods in waves, half of them in gangs of ten. They are bound, end and are deleted. Their memory does not grow:
// the heap after the last wave is as large as after the first few.
func TestChurn(t *testing.T) {
	const (
		wave   = 2000
		waves  = 100
		warm   = 10 // after these waves, all caches that expire are filled
		window = 8  // the minimum over these waves counts, because caches grow and are cut
	)
	before := debug.SetGCPercent(800) // heap runs the garbage collector; between the waves there is enough memory
	t.Cleanup(func() { debug.SetGCPercent(before) })
	c := newChurn(t)
	c.cycle()
	empty, first, last := heap(), math.Inf(1), math.Inf(1)
	for n := range waves {
		c.come(n, wave)
		if bound := len(c.server.pods) - pending(c.server); bound != wave {
			t.Fatalf("wave %d: %d pods are bound", n, bound)
		}
		c.end(n, wave)
		c.leave()
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
	if kept := last - empty; kept > 60e6 { // the limit covers data about the last few thousand pods
		t.Errorf("%.1f MB are kept of what is gone", kept/1e6)
	}
	if len(c.cluster.Tasks)+len(c.cluster.Jobs)+len(c.intake.groups)+len(c.intake.member)+len(c.statuses.waits) > 0 {
		t.Errorf("kept: %d tasks, %d jobs, %d groups, %d members, %d waits", len(c.cluster.Tasks), len(c.cluster.Jobs), len(c.intake.groups),
			len(c.intake.member), len(c.statuses.waits))
	}
}

// churn is a rig with changes as informers deliver them: stripped copies that belong to the feed.
type churn struct {
	*rig
	strip *strip.Stripper
	tell  toolscache.ResourceEventHandler
	known map[string]*corev1.Pod
	now   time.Time
}

// newChurn returns a churn with a queue and 40 nodes.
func newChurn(t *testing.T) *churn {
	r := newRig(t)
	r.server.put(testQueue("default"))
	for i := range 40 {
		r.server.put(testNode(fmt.Sprintf("n%02d", i), "64"))
	}
	return &churn{rig: r, strip: newStripper(), tell: handler([]string{"celsius"}, r.feed), known: map[string]*corev1.Pod{}, now: time.Now()}
}

// come creates the pods of a wave, the first half in gangs of ten, and runs cycles until they are bound.
func (c *churn) come(n, pods int) {
	for i := range pods {
		name := fmt.Sprintf("w%d-%d", n, i)
		group, size := "g-"+name, 1
		if i < pods/2 {
			group, size = fmt.Sprintf("g-w%d-%d", n, i/10), 10
		}
		if i%size == 0 {
			c.server.put(testGroup(group, int32(size)))
		}
		p := testPod(name, group, "1")
		p.Spec.Hostname, p.Spec.Containers[0].Image = name, "image-"+name // no pod is like another
		c.server.put(p)
	}
	c.cycle()
	c.cycle()
}

// end lets half of a wave succeed. The others are deleted while they run.
func (c *churn) end(n, pods int) {
	for i := range pods / 2 {
		c.server.as(fmt.Sprintf("default/w%d-%d", n, i), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	}
	c.cycle()
}

// leave deletes all pods and groups.
func (c *churn) leave() {
	for _, p := range c.server.pods {
		c.server.drop(p)
	}
	for _, g := range c.server.groups {
		c.server.drop(g)
	}
	c.cycle()
	c.cycle()
}

// cycle delivers the changes, and runs a cycle and all its writes.
func (c *churn) cycle() {
	for _, happened := range c.server.history {
		if p, ok := happened.object.(*corev1.Pod); ok {
			c.deliver(happened.op, p)
			continue
		}
		c.feed.add(happened, true)
	}
	s := c.server
	s.history, s.events, s.messages, s.bindings, s.writes = nil, nil, nil, nil, nil
	c.now = c.now.Add(time.Second)
	c.once(c.now)
	for c.work() {
	}
}

func (c *churn) deliver(op model.Op, p *corev1.Pod) {
	if _, err := c.strip.Strip(p); err != nil {
		c.server.t.Fatalf("%v", err)
	}
	key := model.Key(p.Namespace, p.Name)
	old := c.known[key]
	if op == model.Delete {
		c.tell.OnDelete(p)
		delete(c.known, key)
		return
	}
	c.known[key] = p
	if old == nil {
		c.tell.OnAdd(p, false)
	} else {
		c.tell.OnUpdate(old, p)
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
