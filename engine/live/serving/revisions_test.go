package serving

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Edits of one policy do not displace revisions of another one. The earlier policy for all queues is available when it is needed, and a
// rollback stays recorded.
func TestRevisionsOfEachPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		p, stop := w.start("default", "celsius")
		w.put("default", rightSpec)
		w.put("default", guarded(`{"rowErrors":0}`))
		for range 10 {
			w.put("lab", labSpec)
		}
		p.Observe(p.Current(), erred(1), time.Now())
		time.Sleep(guardLook)
		synctest.Wait()
		w.check("rolled back", serving(p), "default@1 Active")
		for range 10 {
			w.put("lab", labSpec)
		}
		stop()
		p, stop = w.start("default", "celsius")
		w.check("after a start", serving(p), "default@1 Active")
		got := w.revisions()
		of := func(name string) int {
			return len(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.Contains(s, name) }))
		}
		w.check("kept", []int{of(" default@"), of(" lab@"), len(got)}, []int{2, 10, 13}) // one of them is the embedded default

		// Rolled back generations do not displace other ones, and their number is limited, too.
		for range 11 {
			w.put("default", guarded(`{"rowErrors":0}`))
			p.Observe(p.Current(), erred(1), time.Now())
			time.Sleep(guardLook)
			synctest.Wait()
			w.check("rolled back again", serving(p), "default@1 Active")
		}
		w.delete("lab")
		got = w.revisions()
		w.check("kept", []int{of(" default@"), of(" lab@"), len(got)}, []int{11, 10, 22})
		stop()
	})
}

// At most ten revisions of deleted policies are stored together.
func TestRevisionsOfWhatIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		_, stop := w.start("default", "celsius")
		w.put("default", rightSpec)
		for i := range 12 {
			name := fmt.Sprintf("lab-%d", i)
			w.put(name, labSpec)
			w.delete(name)
		}
		got := w.revisions()
		w.check("kept", []string{fmt.Sprint(len(got)), got[0], got[max(len(got)-2, 0)], got[len(got)-1]}, []string{
			"12", "celsius-policy-14 lab-11@1", "celsius-policy-2 default@1", "celsius-policy-1 the embedded default",
		})
		stop()
	})
}

// Each of many policies for their own queues is stored once. Then nothing is written any more.
func TestRevisionsOfManyPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		w.put("default", rightSpec)
		for i := range 11 {
			w.put(fmt.Sprintf("lab-%d", i), labSpec)
		}
		created := 0
		w.refusing(func(what string) error {
			if what == "create *v1.ControllerRevision" {
				created++
			}
			return nil
		})
		p, stop := w.start("default", "celsius")
		for range 30 {
			time.Sleep(10 * time.Second)
			p.Cycled(time.Now())
			synctest.Wait()
			w.settle()
		}
		w.check("created", created, 12)
		stop()
	})
}
