package policy

import (
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// lint warns about legal constructs that are most likely mistakes.
func (c *compiler) lint(spec source.Value, entries []*entry) {
	if len(c.p.rules[JobReady]) > 0 && len(c.p.rules[JobPipelined]) == 0 {
		c.warn(spec.Get("tiers").Issuef("add a row of jobPipelined that says when a job may keep places it cannot use yet",
			"there are rows of jobReady, but none of jobPipelined: a job that is not ready holds its places until the cycle ends"))
	}
	for _, site := range []string{Preemptable, Reclaimable, Evictable} {
		for _, r := range c.p.rules[site] {
			if !r.Veto {
				c.lintTaking(r)
			}
		}
	}
	c.lintDue(entries)
	if at := spec.Get("pipeline"); at.Kind() == source.List && len(c.p.Actions) == 0 && c.issues.Err() == nil {
		c.warn(at.Issuef("name actions, such as [enqueue, allocate, backfill]; to pause the scheduler, set mode: Paused",
			"the pipeline is empty: no job is admitted, and no pod is placed"))
	}
}

func (c *compiler) warn(i source.Issue) {
	i.Severity = source.Warning
	c.report(i)
}

// lintTaking warns about a row that permits evictions by a value that can change in both directions. Then two pods may evict each other in
// turns.
func (c *compiler) lintTaking(r *Rule) {
	at := func(said, instead string) {
		c.warn(r.Expression.Text.Issue(0, len([]rune(r.Expression.Text.Value)), said, instead))
	}
	if slices.ContainsFunc(r.Asked(), (*eval.Expr).Timely) {
		at("the permission to evict changes with time alone: two pods may evict each other in turns",
			"write it as a row with veto: true, which can only protect pods; or do not read the time")
	}
	for _, x := range r.Expression.Comparisons() {
		field, smallerGoes := sameOfBoth(x)
		switch {
		case field == "":
		case changesByTaking(r, field):
			at(field+" is compared as it is before the eviction, and the eviction changes it: two pods may evict each other in turns",
				"compare the values after the eviction, as drf does; or permit evictions only if the two values differ by a margin")
		case strings.HasPrefix(field, "job.") && !c.ordersJobs(field, smallerGoes):
			at("pods are evicted by "+field+", and no row of jobOrder sorts by it: the job whose pods were evicted may come first again",
				"add to jobOrder a row by: "+field+map[bool]string{true: ", descending: true"}[smallerGoes])
		}
	}
}

// lintDue warns about a table that states which queues may reclaim, and which pods they may evict, but no amount that each eviction lowers.
// With such a table, queues may take resources from each other in turns.
func (c *compiler) lintDue(entries []*entry) {
	across := slices.ContainsFunc(c.p.Displacing(), func(s *Step) bool {
		return s.Word(KeyScope) == ScopeOtherQueues && s.Gate(Preemptive)
	})
	truce := slices.ContainsFunc(slices.Concat(c.p.rules[Reclaimable], c.p.rules[Evictable]), func(r *Rule) bool {
		return r.Veto && slices.ContainsFunc(r.Reads.All, func(read rules.Read) bool { return strings.HasSuffix(read.String(), "job.takers") })
	})
	if !across || truce {
		return
	}
	for _, e := range entries {
		has := func(site string) bool {
			return slices.ContainsFunc(c.p.rules[site], func(r *Rule) bool { return r.Table == e.name && !r.Veto })
		}
		if has(Preemptive) && (has(Reclaimable) || has(Evictable)) && !has(BeyondDue) {
			c.warn(e.at.Get("name").Issuef(
				"add the table truce, which stops jobs from evicting each other in turns, or add rows of beyondDue to this table",
				"the table %s permits evictions for other queues, and its beyondDue has no row that these evictions reduce: queues may "+
					"evict each other's pods in turns", e.name))
		}
	}
}

// sameOfBoth returns the field that a comparison compares between victim and preemptor, and whether the victim's value must be the smaller
// one. It returns "" for any other comparison.
func sameOfBoth(x eval.Comparison) (field string, smallerGoes bool) {
	gives, takes := x.Less, x.More
	smallerGoes = strings.HasPrefix(gives, "victim.")
	if !smallerGoes {
		gives, takes = takes, gives
	}
	field, ofVictim := strings.CutPrefix(gives, "victim.")
	if !ofVictim || strings.TrimPrefix(takes, "preemptor.") != field {
		return "", false
	}
	return field, smallerGoes
}

// changesByTaking reports whether a field of a victim that the row reads changes while tasks are placed and evicted.
func changesByTaking(r *Rule, field string) bool {
	return slices.ContainsFunc(r.Reads.All, func(read rules.Read) bool {
		return read.String() == "victim."+field && read.Changes >= rules.ByStep
	})
}

// ordersJobs reports whether a row orders jobs by this field in this direction. For a row that orders by more than the field, the direction
// is unknown, and ordersJobs returns true.
func (c *compiler) ordersJobs(field string, largerFirst bool) bool {
	return slices.ContainsFunc(c.p.rules[JobOrder], func(r *Rule) bool {
		if strings.TrimSpace(r.Expression.Text.Value) == field {
			return r.Descending == largerFirst
		}
		return slices.ContainsFunc(r.Reads.All, func(read rules.Read) bool { return read.String() == field })
	})
}
