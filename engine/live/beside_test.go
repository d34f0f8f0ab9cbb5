package live

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/beside"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// shadowed is a scheduler of pods of the name volcano, and a shadow beside it that is told of the same changes, each at its own time.
type shadowed struct {
	*rig
	shadow *beside.Shadow
	told   *feed
	late   []change // that the shadow was not told of yet
}

func newShadowed(t *testing.T, others *policy.Policy, o beside.Options) *shadowed {
	t.Helper()
	s := &shadowed{rig: newRigOf(newFakeServer(t), others), told: newFeed()}
	s.shadow = newShadow(o.WithDefaults(), s.told)
	return s
}

// hear tells the scheduler of all that happened, and the shadow later.
func (s *shadowed) hear() {
	s.late = append(s.late, s.server.history...)
	s.server.deliver(-1)
}

// see tells the shadow of so many changes, all if n is below 0, and has it make a cycle.
func (s *shadowed) see(n int) {
	s.late = append(s.late, s.server.history...)
	s.server.deliver(-1)
	if n < 0 || n > len(s.late) {
		n = len(s.late)
	}
	for _, c := range s.late[:n] {
		s.told.add(c, true)
	}
	s.late = s.late[n:]
	for _, err := range s.shadow.Cycle(time.Now()) {
		s.server.t.Fatalf("%v", err)
	}
}

func volcanos(p *corev1.Pod) *corev1.Pod {
	p.Spec.SchedulerName = volcanoName
	return p
}

// TestBesideItself has a scheduler and its shadow decide by the same policy for more than 1,000 cycles of each, while jobs come, run and go:
// all that the one does is what the other would have done.
func TestBesideItself(t *testing.T) {
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	synctest.Test(t, func(t *testing.T) {
		s := newShadowed(t, p, beside.Options{Policy: p})
		f, random := s.server, rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
		f.put(testQueue("default"), testQueue("research"))
		for i := range 6 {
			f.put(testNode(fmt.Sprintf("n%d", i), fmt.Sprint(4+i)))
		}
		s.see(-1)
		for step := range 1200 {
			if step%4 == 0 && pending(f) < 12 {
				s.come(step, random)
			}
			if step%5 == 0 {
				s.leave(random)
			}
			s.see(-1) // what came; what was bound meanwhile it sees when it comes to it
			s.hear()
			s.tick()
			for s.work() {
				if random.IntN(2) == 0 {
					s.see(random.IntN(len(f.history) + len(s.late) + 1))
				}
			}
			time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
		}
		r := s.shadow.Report()
		t.Log(r.Text())
		if r.Cycles < 1000 || r.Decisions < 1000 || r.Agreement != 1 || r.Missed != 0 || len(r.Differences) > 0 {
			t.Errorf("%d cycles, %d decisions, agreement %v, %d missed", r.Cycles, r.Decisions, r.Agreement, r.Missed)
		}
	})
}

// come has a gang of one to three pods come.
func (s *shadowed) come(step int, random *rand.Rand) {
	name, size := fmt.Sprintf("g%d", step), 1+random.IntN(3)
	g := testGroup(name, int32(size))
	g.Spec.Queue = []string{"default", "research"}[random.IntN(2)]
	s.server.put(g)
	for i := range size {
		s.server.put(volcanos(testPod(fmt.Sprintf("%s-%d", name, i), name, fmt.Sprint(1+random.IntN(3)))))
	}
}

// leave has some of the pods that are bound go.
func (s *shadowed) leave(random *rand.Rand) {
	for _, key := range slices.Sorted(maps.Keys(s.server.pods)) {
		if p := s.server.pods[key]; p.Spec.NodeName != "" && random.IntN(3) == 0 {
			s.server.drop(p)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.server.groups)) {
		if !slices.ContainsFunc(slices.Collect(maps.Values(s.server.pods)), func(p *corev1.Pod) bool {
			return p.Annotations[v1beta1.KubeGroupNameAnnotationKey] == s.server.groups[key].Name
		}) {
			s.server.drop(s.server.groups[key])
		}
	}
}
