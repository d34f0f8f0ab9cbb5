package policy

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestTimedQueueStaysSmall adds, changes and removes members for a long time. The queue's length stays proportional to the number of
// members, and each member is evaluated at its moment.
func TestTimedQueueStaysSmall(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	x := timed{on: true}
	x.restart(start)
	random := rand.New(rand.NewPCG(1, 2))
	due := map[int]time.Time{} // the due time of each existing member
	now := start
	for step := range 20_000 {
		of := random.IntN(50)
		x.begin()
		if delete(due, of); random.IntN(4) > 0 {
			due[of] = now.Add(time.Duration(1+random.IntN(3_000_000)) * time.Second)
			x.first = due[of]
		}
		x.end(of)
		if most := 64 + 2*len(x.due) + 1; len(x.queue) > most {
			t.Fatalf("step %d: %d moments are kept of %d members", step, len(x.queue), len(x.due))
		}
		now = now.Add(time.Duration(random.IntN(600)) * time.Second)
		asked := map[int]bool{}
		x.pass(now, func(of any) {
			asked[of.(int)] = true
			x.begin()
			x.end(of)
		})
		for member, at := range due {
			if reached := !at.After(now); reached != asked[member] {
				t.Fatalf("step %d: member %d is due at %s, now is %s; asked: %t", step, member, at, now, asked[member])
			} else if reached {
				delete(due, member)
			}
		}
	}
}
