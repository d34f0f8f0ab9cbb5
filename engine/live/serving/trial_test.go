package serving

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/celsius-scheduler/celsius/engine/live/lease"
)

// A generation under which the scheduler died twice is not what the third start serves: the last good one is, and the status and an
// event say so. Another generation is tried anew.
func TestPolicyDiedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		_, die := w.start("default", "celsius")
		w.put("default", rightSpec)
		die()
		_, die = w.start("default", "celsius") // died once
		w.put("default", warnedSpec)
		die()
		p, die := w.start("default", "celsius") // died once of the second generation
		w.check("after one death", serving(p), "default@2 Active")
		die()
		w.take()

		p, die = w.start("default", "celsius")
		says := "serving default@1, because the scheduler died 2 times, each within 2m0s of beginning to serve generation 2; change the policy " +
			"to have it tried again"
		w.check("after two deaths", serving(p), "default@1 Active")
		w.check("event", w.take(), []string{"Warning PolicyFallback default: " + says})
		w.check("status", strings.Contains(w.status("default"), "Compiled=True Compiled: 1 rule, 1 warning\nActive=False SchedulerDied: "+
			says+"\n"), true)
		w.check("status", strings.Contains(w.status("default"), "celsius serves 1\n"), true)
		die()
		p, die = w.start("default", "celsius")
		w.check("and a fourth start", serving(p), "default@1 Active")

		w.put("default", rightSpec)
		w.check("changed", serving(p), "default@3 Active")
		w.check("changed", strings.Contains(w.status("default"), "Active=True Serving: serving default@3\n"), true)
		die()
	})
}

// What ended cleanly, and what had proved itself before it was killed, did not die of the policy.
func TestPolicyOutlivesOtherDeaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServedWorld(t, rightSpec)
		for range 5 { // rolling restarts
			p, stop := w.start("default", "celsius")
			w.check("after clean ends", serving(p), "default@1 Active")
			stop()
			p.End()
		}
		for range 5 { // killed after it had served for a while
			p, kill := w.start("default", "celsius")
			w.check("after deaths that come late", serving(p), "default@1 Active")
			for range 10 {
				time.Sleep(trialTime / 8)
				p.Cycled(time.Now())
			}
			time.Sleep(trialTime)
			synctest.Wait()
			kill()
		}
	})
}

// Who hangs in a cycle has not proved anything, however long that takes.
func TestPolicyHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServedWorld(t, rightSpec)
		for want := range 3 {
			p, kill := w.start("default", "celsius")
			w.check("serving", serving(p), []string{"default@1 Active", "default@0 Active", "default@0 Active"}[want])
			p.Cycled(time.Now())
			time.Sleep(time.Hour)
			synctest.Wait()
			kill()
		}
	})
}

// Two that lead in turn while one is on trial do not count each other as dead, if the first says that it ends.
func TestPolicyTrialOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		a, stopA := w.start("default", "celsius")
		w.put("default", rightSpec)
		stopA()
		b, stopB := w.start("default", "celsius") // before the first has said that it ends
		w.check("b", serving(b), "default@1 Active")
		a.End()
		stopB()
		b.End()
		c, stopC := w.start("default", "celsius")
		w.check("c", serving(c), "default@1 Active")
		if got := c.kept.deaths(c.serving, c.instance); got != 0 {
			t.Errorf("%d deaths, but none died", got)
		}
		stopC()
	})
}

// Who has lost the lease has not died: its number goes although nothing else can be written.
func TestPolicyOutlivesLostLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServedWorld(t, rightSpec)
		for range 5 {
			p, stop := w.start("default", "celsius")
			w.check("after lost leases", serving(p), "default@1 Active")
			w.refusing(func(what string) error { return fmt.Errorf("%s: %w", what, lease.ErrLapsed) })
			stop()
			p.End()
			w.refusing(nil)
		}
	})
}

// Deaths are looked up as soon as they can be: a list that fails at the start does not have the policy served on.
func TestPolicyDeathsAreSeenLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServedWorld(t, rightSpec) // died once
		_, die := w.start("default", "celsius")
		die()
		w.refusing(func(what string) error {
			if what == "list *v1.ControllerRevisionList" {
				return errors.New("busy")
			}
			return nil
		})
		p, stop := w.start("default", "celsius")
		w.check("while nobody knows", serving(p), "default@1 Active")
		w.refusing(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		w.check("then", serving(p), "default@0 Active")
		stop()
	})
}

// That a trial ended is stored later where it cannot be stored at once.
func TestPolicyTrialEndsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		p, stop := w.start("default", "celsius")
		w.put("default", rightSpec)
		first := p.serving
		w.refusing(func(what string) error {
			if what == "update *v1.ControllerRevision" {
				return errors.New("busy")
			}
			return nil
		})
		w.put("default", warnedSpec)
		w.check("serving", serving(p), "default@2 Active")
		w.refusing(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		w.check("who tries the first", triers(p.kept.of(first)), []string{})
		w.check("who tries the second", triers(p.kept.of(p.serving)), []string{p.instance})
		stop()
	})
}

// What cannot be stored of a trial does not keep a policy from serving; it is tried again.
func TestPolicyTrialIsStoredLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		w.refusing(func(what string) error {
			if what == "create *v1.ControllerRevision" || what == "update *v1.ControllerRevision" {
				return errors.New("no space left")
			}
			return nil
		})
		p, stop := w.start("default", "celsius")
		w.put("default", rightSpec)
		w.check("serving", serving(p), "default@1 Active")
		w.refusing(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !p.trials.trials[0].stored || len(triers(p.kept.of(p.serving))) != 1 {
			t.Error("who tries it does not stand at the revision")
		}
		stop()
	})
}

// What has no revision began last where it begins now, or its trial is yet to be stored; not where it served before.
func TestLatest(t *testing.T) {
	r := revisions{scheduler: "celsius", heads: map[string]*candidate{}}
	var all []*candidate
	for _, name := range []string{"none", "old", "new"} {
		data, err := dataOf(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &candidate{name: name, uid: "u", generation: 1, data: data})
	}
	none, older, newer := all[0], all[1], all[2]
	r.newest = append(r.newest, r.revision(newer, 2), r.revision(older, 1))
	for _, c := range []struct {
		all, settled []*candidate
		want         *candidate
	}{
		{[]*candidate{older, newer}, nil, newer},
		{all, nil, none},
		{all, all, newer},
		{[]*candidate{none}, all, none},
	} {
		if got := r.latest(c.all, c.settled); len(got) != 1 || got[0] != c.want {
			t.Errorf("of %v, where %v are settled: %v, want %v", c.all, c.settled, got, c.want)
		}
	}
}
