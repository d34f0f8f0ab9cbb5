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

// byReference goes through a world's history as run.plans does, decided by the reference.
func byReference(t *rapid.T, r run, seen *seenWorlds) []string {
	c := model.NewCluster(model.Options{Volumes: volume.New})
	var out []string
	decide := new(proof.Run).Checked(new(reference.Run).Decide, func(plan *model.Plan, wrong []proof.Violation) {
		for _, v := range wrong {
			// The search spares victims by node, and does not go back over the nodes of earlier promises; what was needed, and by which rows,
			// may be noted as it was before others were spared; and rows that read little may say of one room what they no longer say when the
			// next is made. These are few, and counted.
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

// The engine decides what the reference decides, to the byte: under every policy that ships, under those that other properties use, and
// under as many that are drawn.
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
				// All checks begin with the same seed. So that each policy has worlds of its own, each goes on from another place.
				rapid.SliceOfN(rapid.Byte(), i, i).Draw(t, "place in the seed")
				sameByReference(t, answered(t, drawRichWorld(t), p), p, &seen, sum)
			})
		})
	}
}

// The same, where pods fill the nodes and others are to have their room.
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

// sameByReference goes through a world's history twice, and adds what is decided to a digest.
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

// decisionsFile is where the digests of what random worlds decide are written, so that those before and after a change can be compared. The
// worlds follow the language, so a file in the repository would change too often.
var decisionsFile = flag.String("decisions", "", "append the digests of what random worlds decide to this file")

// decided are the digests of a test, by subtest.
type decided struct {
	mu   sync.Mutex
	sums map[string]*digest.Sum
}

// newDecided returns the digests of a test, which its end writes to decisionsFile.
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

// of is the digest of a subtest.
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

// seenWorlds counts the worlds that were gone through: all, those with volumes, and of these those in which a bind needs something done
// for its volumes, those in which a row about volumes refuses something, and those in which somebody is evicted, several for one, some for
// a gang, and a gang as a whole. doubtful counts what the checker finds of evictions and lets pass.
type seenWorlds struct {
	all, volumes, bound, refused, evicted, several, gangs, whole, doubtful atomic.Int64
}

// few wants hardly any doubtful evictions: a few in a hundred of the worlds in which somebody is evicted.
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

// check wants as many worlds as the property is meant to go through, where it went through all.
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

// leastWorlds is how many a run goes through that is not cut short.
const leastWorlds = 10_000

// drawnPolicies is how many are drawn: with a hundred worlds each, and those under policies that ship, they are ten thousand and more.
const drawnPolicies = 90
