package live

import (
	"fmt"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine/policy"
)

// BenchmarkCycle measures one cycle of the loop without the API server. A backlog of 5,000 pods waits for 1,000 nodes. One case places the
// backlog. The other one runs while the bindings of the backlog are under way.
func BenchmarkCycle(b *testing.B) {
	p, issues := policy.Default()
	if issues.Err() != nil {
		b.Fatal(issues.Err())
	}
	for _, size := range []int{10, 1} {
		backlog := func() *rig {
			f := newFakeServer(nil)
			f.t = b
			f.put(testQueue("default"))
			for i := range 1000 {
				f.put(testNode(fmt.Sprintf("n%04d", i), "32"))
			}
			for i := range 5000 {
				if i%size == 0 {
					f.put(testGroup(fmt.Sprintf("g%04d", i/size), int32(size)))
				}
				f.put(testPod(fmt.Sprintf("p%04d", i), fmt.Sprintf("g%04d", i/size), "100m"))
			}
			f.deliver(-1)
			return newRigOf(f, p)
		}
		b.Run(fmt.Sprintf("gangs-of-%d/placed", size), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				r := backlog()
				b.StartTimer()
				r.once(time.Now())
			}
		})
		b.Run(fmt.Sprintf("gangs-of-%d/on-their-way", size), func(b *testing.B) {
			r := backlog()
			r.once(time.Now())
			for b.Loop() {
				r.once(time.Now())
			}
		})
	}
}
