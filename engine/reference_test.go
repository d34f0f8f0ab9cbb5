package engine_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/digest"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/proof"
	"github.com/celsius-scheduler/celsius/engine/reference"
	_ "github.com/celsius-scheduler/celsius/engine/seeds"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// byReference goes through the history of a world like run.plans, but the reference decides.
func byReference(t *rapid.T, r run, seen *seenWorlds) []string {
	c := model.NewCluster(model.Options{Volumes: volume.New})
	var out []string
	decide := new(proof.Run).Checked(new(reference.Run).Decide, func(plan *model.Plan, wrong []proof.Violation) {
		for _, v := range wrong {
			// Some findings are allowed, and counted; there are few of them. The search spares victims by node, and does not go back over the nodes
			// of earlier promises. The reasons of an eviction may describe the state before other victims were spared. Rows that read little may say
			// something about one room that is no longer true when the next room is made.
			doubtful := []proof.Kind{
				proof.Needed, proof.Idle, proof.Certificate, proof.Fit, proof.Legal, proof.Row, proof.Candidate, proof.Stable, proof.AtEnd,
				proof.Lost,
			}
			if slices.Contains(doubtful, v.Kind) {
				seen.doubtful.Add(1)
				continue
			}
			t.Errorf("%s: %v", plan.Now, v)
		}
	})
	now := time.Unix(1_700_000_100, 0).UTC()
	for n, deltas := range r.history() {
		c.Apply(deltas...)
		for _, pause := range pauses() {
			plan := decide(c, r.policies[0], now.Add(time.Duration(n)*time.Minute+pause))
			if err := c.Check(); err != nil {
				t.Fatalf("cycle %d, %v later: %v", n, pause, err)
			}
			withoutErrors(plan)
			out = append(out, written(t, plan))
			c.Apply(started(c, plan)...)
		}
	}
	return out
}

// TestReference checks that the engine decides exactly what the reference decides, to the byte. It covers every policy that ships, the
// policies of other properties, and as many drawn policies.
func TestReference(t *testing.T) {
	t.Parallel()
	var seen seenWorlds
	decided := newDecided(t)
	t.Cleanup(func() { seen.check(t) })
	tried := samplePolicies(t)
	for _, p := range policies(t) {
		tried[p.name] = p.policies[0]
	}
	maps.Copy(tried, joinedPolicies(t))
	for seed := range uint64(drawnPolicies) {
		tried[fmt.Sprint("drawn-", seed)] = newDrawer(seed).policy(t)
	}
	for i, name := range slices.Sorted(maps.Keys(tried)) {
		p := tried[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sum := decided.of(t)
			rapid.Check(t, func(t *rapid.T) {
				// All checks begin with the same seed. Each policy continues from another place, so that it has worlds of its own.
				rapid.SliceOfN(rapid.Byte(), i, i).Draw(t, "place in the seed")
				sameByReference(t, answered(t, drawRichWorld(t), p), p, &seen, sum)
			})
		})
	}
}

// TestReferenceTakesBack checks the same in worlds where pods fill the nodes and others take their room.
func TestReferenceTakesBack(t *testing.T) {
	t.Parallel()
	var seen seenWorlds
	decided := newDecided(t)
	t.Cleanup(func() {
		all, evicted, several := seen.all.Load(), seen.evicted.Load(), seen.several.Load()
		gangs, whole := seen.gangs.Load(), seen.whole.Load()
		t.Logf("%d worlds; in %d somebody is evicted, in %d several for one, in %d for gangs, in %d gangs as a whole", all, evicted, several,
			gangs, whole)
		seen.few(t)
		if all >= 3000 && (evicted < 150 || several < 30) {
			t.Errorf("of %d worlds somebody is evicted in %d, several for one in %d: want 150 and 30", all, evicted, several)
		}
		if all >= 3000 && (gangs < 40 || whole < 5) {
			t.Errorf("of %d worlds somebody is evicted for gangs in %d, gangs as a whole in %d: want 40 and 5", all, gangs, whole)
		}
	})
	tried := joinedPolicies(t)
	for _, p := range policies(t) {
		if strings.HasPrefix(p.name, "taking back") {
			tried[p.name] = p.policies[0]
		}
	}
	for seed := range uint64(38) {
		d := newDrawer(1000 + seed)
		d.forced = true
		tried[fmt.Sprint("drawn-", seed)] = d.policy(t)
	}
	for name, p := range tried {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sum := decided.of(t)
			rapid.Check(t, func(t *rapid.T) { sameByReference(t, drawFullWorld(t), p, &seen, sum) })
		})
	}
}

// sameByReference goes through the history of a world twice, and adds the decisions to a digest.
func sameByReference(t *rapid.T, w *world, p *policy.Policy, seen *seenWorlds, sum *digest.Sum) {
	r := run{world: w, policies: []*policy.Policy{p}, noErrors: true}
	plans := byReference(t, r, seen)
	seen.add(w, plans)
	r.after = func(_ *model.Cluster, _ *engine.Decider, plan *model.Plan) {
		if err := sum.Add(plan); err != nil {
			t.Fatal(err)
		}
	}
	if diff := gocmp.Diff(plans, r.plans(t)); diff != "" {
		w.Log(t)
		t.Fatalf("-reference +engine:\n%s", diff)
	}
}

// decisionsFile receives the digests of the decisions in random worlds, so that a change can be compared with its predecessor. The worlds
// follow the language, so a file in the repository would change too often.
var decisionsFile = flag.String("decisions", "", "append the digests of what random worlds decide to this file")

// decided contains the digests of a test, by subtest.
type decided struct {
	mu   sync.Mutex
	sums map[string]*digest.Sum
}

// newDecided returns the digests of a test. The end of the test writes them to decisionsFile.
func newDecided(t *testing.T) *decided {
	d := &decided{sums: map[string]*digest.Sum{}}
	t.Cleanup(func() {
		if *decisionsFile == "" {
			return
		}
		f, err := os.OpenFile(*decisionsFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(d.sums)) {
			if _, err := fmt.Fprintf(f, "%s: %s\n", name, d.sums[name]); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	})
	return d
}

// of returns the digest of a subtest.
func (d *decided) of(t *testing.T) *digest.Sum {
	t.Helper()
	sum, err := digest.New()
	if err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sums[t.Name()] = sum
	return sum
}

// seenWorlds counts worlds: all, and those with volumes. Of those with volumes it counts two kinds: a bind needs work for its volumes, or a
// row about volumes refuses something. It also counts worlds with an eviction, with several for one pod, with some for a gang, and with a
// whole gang. doubtful counts the findings about evictions that are allowed.
type seenWorlds struct {
	all, volumes, bound, refused, evicted, several, gangs, whole, doubtful atomic.Int64
}

// few requires that hardly any evictions are doubtful: a few in a hundred of the worlds with evictions.
func (s *seenWorlds) few(t *testing.T) {
	t.Helper()
	doubtful, evicted := s.doubtful.Load(), s.evicted.Load()
	if t.Logf("%d evictions are doubtful", doubtful); doubtful > 5+evicted/60 {
		t.Errorf("%d evictions are doubtful, in %d worlds with evictions", doubtful, evicted)
	}
}

func (s *seenWorlds) add(w *world, plans []string) {
	s.all.Add(1)
	says := func(what string) bool {
		return slices.ContainsFunc(plans, func(plan string) bool { return strings.Contains(plan, what) })
	}
	if says(`"evicts": [`) {
		s.evicted.Add(1)
	}
	if says(" pods are evicted for it") {
		s.several.Add(1)
	}
	if says("evicted for it and its gang") {
		s.gangs.Add(1)
	}
	if says(`"whole": true`) {
		s.whole.Add(1)
	}
	if !w.volumes {
		return
	}
	s.volumes.Add(1)
	if says(`"volumes": [`) {
		s.bound.Add(1)
	}
	if says(`"rule": "volume`) {
		s.refused.Add(1)
	}
}

// check requires as many worlds as the property is meant to cover, if the run was not cut short.
func (s *seenWorlds) check(t *testing.T) {
	all, volumes, bound, refused := s.all.Load(), s.volumes.Load(), s.bound.Load(), s.refused.Load()
	evicted, several := s.evicted.Load(), s.several.Load()
	t.Logf("%d worlds, %d of them with volumes, of which %d are bound and %d refused; in %d somebody is evicted, in %d several for one",
		all, volumes, bound, refused, evicted, several)
	s.few(t)
	if all >= leastWorlds && (evicted < 60 || several < 6) {
		t.Errorf("of %d worlds somebody is evicted in %d, several for one in %d: want 60 and 6", all, evicted, several)
	}
	if all >= leastWorlds && (volumes < 2000 || bound < 150 || refused < 500) {
		t.Errorf("of %d worlds %d have volumes, of which %d are bound and %d refused: want 2000, 150 and 500", all, volumes, bound, refused)
	}
}

// leastWorlds is the least number of worlds in a run that is not cut short.
const leastWorlds = 10_000

// drawnPolicies is the number of drawn policies. With a hundred worlds each, and the worlds under shipped policies, there are more than ten
// thousand worlds.
const drawnPolicies = 90
