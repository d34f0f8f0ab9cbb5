package live

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	_ "github.com/celsius-scheduler/celsius/engine/seeds"
)

// TestRandomHistories runs random histories of a small cluster against the loop. Objects are created, changed and deleted, and their events
// come late. Bindings are refused, time out before or after they were carried out, or are carried out long after their time limit. After
// each step no node is overcommitted. At the end every pod that fits is bound, and was bound once. A replay of the recording makes the same
// decisions.
func TestRandomHistories(t *testing.T) {
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	folder, played, packs := t.TempDir(), 0, shadowOf(t, "packs", "{name: binpack}")
	synctest.Test(t, func(t *testing.T) {
		// Without its type, because a bubble does not support a deadline of the real clock.
		rapid.Check(struct{ rapid.TB }{t}, func(t *rapid.T) {
			f := newFakeServer(nil)
			f.t = t
			h := &randomHistory{rig: newRigOf(f, p), t: t, bound: map[string]string{}}
			if rapid.Bool().Draw(t, "shadow") {
				decidingBeside(h.loop, packs)
			}
			folder := filepath.Join(folder, strconv.Itoa(played))
			played++
			plans, end := recordingTo(folder, rapid.SampledFrom([]int64{oneFile, manyFiles}).Draw(t, "recording"), h.loop)
			h.play()
			end()
			playAgain(t, folder, plans)
		})
	})
}

type randomHistory struct {
	*rig
	t     *rapid.T
	late  []*corev1.Binding // requests that are still under way after their time limit
	bound map[string]string // pod by UID -> the node to which it was first bound
	made  int
}

func (h *randomHistory) play() {
	f := h.server
	f.put(testQueue("default"), testQueue("other"), testNode("n1", "3"), testGroup("g1", 1), testPod("p1", "g1", "2"),
		testPod("p2", "g1", "2"))
	f.onBind = h.onBind
	f.onGet = func(string) error {
		if rapid.IntRange(0, 9).Draw(h.t, "get") == 0 {
			return errNoAnswer
		}
		return nil
	}
	for range rapid.IntRange(5, 60).Draw(h.t, "steps") {
		h.step()
		h.check()
	}
	// Calm phase: all events arrive, and nothing fails.
	f.onBind, f.onGet = nil, nil
	h.land(len(h.late))
	h.settle(70) // longer than any back-off
	h.check()
	h.finish()
}

func (h *randomHistory) step() {
	f := h.server
	step := rapid.SampledFrom([]string{
		"pod", "pod", "pod", "group", "node", "cordon", "uncordon", "drop node", "drop pod", "finish", "delete",
		"deliver", "deliver", "cycle", "cycle", "work", "work", "round", "round", "round", "time", "time", "late",
	}).Draw(h.t, "step")
	switch step {
	case "pod":
		h.made++
		p := testPod(fmt.Sprintf("p%d", rapid.IntRange(0, 7).Draw(h.t, "name")), rapid.SampledFrom([]string{"", "g1", "g2"}).Draw(h.t, "group"),
			rapid.SampledFrom([]string{"1", "2"}).Draw(h.t, "cpu"))
		if f.pods["default/"+p.Name] == nil {
			f.put(p)
		}
	case "group":
		g := testGroup(rapid.SampledFrom([]string{"g1", "g2"}).Draw(h.t, "group"), int32(rapid.IntRange(0, 3).Draw(h.t, "min")))
		g.Spec.Queue = rapid.SampledFrom([]string{"default", "other"}).Draw(h.t, "queue")
		if old := f.groups["default/"+g.Name]; old == nil {
			f.put(g)
		} else if rapid.Bool().Draw(h.t, "drop") {
			f.drop(old)
		}
	case "node":
		name := rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(h.t, "node")
		if f.nodes[name] == nil && !h.occupied(name) {
			f.put(testNode(name, "3"))
		}
	default:
		h.happen(step)
	}
}

// happen changes an object, or advances the clock.
func (h *randomHistory) happen(step string) {
	f := h.server
	switch step {
	case "cordon", "uncordon":
		if n := h.anyNode(); n != nil {
			n = n.DeepCopy()
			n.Spec.Unschedulable = !n.Spec.Unschedulable
			f.put(n)
		}
	case "drop node":
		if n := h.anyNode(); n != nil {
			f.drop(n)
		}
	case "drop pod":
		if p := h.anyPod(); p != nil {
			f.drop(p)
		}
	case "finish":
		if p := h.anyPod(); p != nil && p.Spec.NodeName != "" && !finished(p) {
			f.as("default/"+p.Name, func(p *corev1.Pod) {
				p.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed}).Draw(h.t, "phase")
			})
		}
	case "delete":
		if p := h.anyPod(); p != nil {
			f.as("default/"+p.Name, func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(time.Now().Truncate(time.Second))) })
		}
	default:
		h.goOn(step)
	}
}

// goOn advances the scheduler, the API server and the clock.
func (h *randomHistory) goOn(step string) {
	f := h.server
	switch step {
	case "deliver":
		f.deliver(rapid.IntRange(1, 8).Draw(h.t, "changes"))
	case "cycle":
		h.tick()
	case "work":
		h.work()
	case "round":
		f.deliver(-1)
		h.tick()
		for range 2 {
			h.work()
		}
	case "time":
		time.Sleep(time.Duration(rapid.IntRange(1, 2000).Draw(h.t, "ms")) * time.Millisecond)
		synctest.Wait()
	case "late":
		h.land(1)
	}
}

func (h *randomHistory) anyNode() *corev1.Node {
	return h.server.nodes[rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(h.t, "node")]
}

func (h *randomHistory) anyPod() *corev1.Pod {
	return h.server.pods[fmt.Sprintf("default/p%d", rapid.IntRange(0, 7).Draw(h.t, "pod"))]
}

// occupied reports whether pods are on a deleted node, or a binding to it is under way.
func (h *randomHistory) occupied(node string) bool {
	for _, p := range h.server.pods {
		if p.Spec.NodeName == node {
			return true
		}
	}
	for _, b := range h.late {
		if b.Target.Name == node {
			return true
		}
	}
	return false
}

// onBind makes a binding fail in one of the possible ways.
func (h *randomHistory) onBind(b *corev1.Binding) (before, after error) {
	// A second request for a pod is carried out after the first one.
	for i, late := range h.late {
		if late.UID == b.UID {
			h.late = slices.Delete(h.late, i, i+1)
			_ = h.server.bind(late)
			break
		}
	}
	switch rapid.SampledFrom([]string{"done", "done", "done", "refused", "lost", "late", "done, no answer", "500", "done, 500"}).Draw(h.t,
		"bind") {
	case "refused":
		return apierrors.NewForbidden(podResource, b.Name, errUnderneath), nil
	case "lost":
		return errNoAnswer, nil
	case "late":
		h.late = append(h.late, b)
		return errNoAnswer, nil
	case "done, no answer":
		return nil, errNoAnswer
	case "500":
		return apierrors.NewInternalError(errUnderneath), nil
	case "done, 500":
		return nil, apierrors.NewInternalError(errUnderneath)
	}
	return nil, nil
}

// land carries out requests after their time limit.
func (h *randomHistory) land(n int) {
	for ; n > 0 && len(h.late) > 0; n-- {
		b := h.late[0]
		h.late = h.late[1:]
		_ = h.server.bind(b) // no client reads the response
	}
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// check checks the conditions that are always true.
func (h *randomHistory) check() {
	used := map[string]int64{}
	for key, p := range h.server.pods {
		node := p.Spec.NodeName
		if node == "" {
			continue
		}
		if was, ok := h.bound[string(p.UID)]; ok && was != node {
			h.t.Fatalf("pod %s moved from %s to %s", key, was, node)
		}
		h.bound[string(p.UID)] = node
		if !finished(p) {
			used[node] += p.Spec.Containers[0].Resources.Requests.Cpu().Value()
		}
	}
	for name, n := range h.server.nodes {
		if used[name] > n.Status.Allocatable.Cpu().Value() {
			h.t.Fatalf("node %s has cpu %s, and pods that ask for %d", name, n.Status.Allocatable.Cpu(), used[name])
		}
	}
}

// finish checks the conditions that are true at the end of the calm phase.
func (h *randomHistory) finish() {
	for key, task := range h.cluster.Tasks {
		p := h.server.pods[key]
		if p == nil || string(p.UID) != task.UID || p.Spec.NodeName != task.NodeName {
			h.t.Fatalf("pod %s is %s on %q in the model, and not so at the server", key, task.Status, task.NodeName)
		}
	}
	if len(h.cluster.Tasks) != len(h.server.pods) {
		h.t.Fatalf("%d pods, %d in the model", len(h.server.pods), len(h.cluster.Tasks))
	}
	h.finishMembers()
	for key, held := range h.intake.holds {
		if p := h.server.pods[key]; p == nil || string(p.UID) != held.uid || p.Spec.NodeName != "" || held.held {
			h.t.Fatalf("pod %s is in back-off still", key)
		}
	}
	for key, g := range h.server.groups {
		h.finishGroup(key, g)
	}
}

// finishMembers checks that a bare pod has an assumed or a created group, and that no data of deleted objects remains.
func (h *randomHistory) finishMembers() {
	for key, m := range h.intake.member {
		g := h.intake.groups[m.group]
		if h.server.pods[key] == nil {
			h.t.Fatalf("left behind: member %s", key)
		}
		if m.assumed && g.assumed.object == nil && g.object == nil {
			h.t.Fatalf("pod %s is alone, and its group %s is not assumed, and not there", key, m.group)
		}
	}
	for key, g := range h.intake.groups {
		if g.members.count() == 0 && h.server.groups[key] == nil {
			h.t.Fatalf("left behind: group %s", key)
		}
	}
}

// finishGroup checks that a group was bound as a whole at least once, or reports why not, and that its status matches its pods.
func (h *randomHistory) finishGroup(key string, g *v1beta1.PodGroup) {
	j := h.cluster.Jobs[key]
	if j == nil {
		h.t.Fatalf("PodGroup %s is not in the model", key)
	}
	if int64(g.Status.Running) != j.Counts[model.Running] {
		h.t.Fatalf("PodGroup %s says %d running pods of %d", key, g.Status.Running, j.Counts[model.Running])
	}
	if held := j.Holding(); held == 0 || held >= j.MinMember || j.Ready() >= j.MinMember || h.intake.groups[key].wasWhole {
		return
	}
	for _, c := range g.Status.Conditions {
		if c.Type == v1beta1.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue {
			return
		}
	}
	h.t.Fatalf("PodGroup %s is bound in part, and does not say so: %+v", key, g.Status)
}
