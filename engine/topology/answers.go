package topology

import (
	"math"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// The questions of a pod's terms about a node, answered as in kube-scheduler. The task itself does not count: it is not its own peer.

// AffinityFits reports whether a row's node satisfies the required affinity and anti-affinity of a task, and the required anti-affinity of
// the placed tasks: kube-scheduler's filter InterPodAffinity.
func (p *Counts) AffinityFits(co *Context, t *model.Task, row int32) (fits bool) {
	p.without(t, func() { fits = co.fits(row) && p.sum(&co.against, row) == 0 })
	return fits
}

// AffinityScore returns the sum of the weights of the preferred terms that placed tasks satisfy in a row's domains. These are the task's
// own terms, and terms of other tasks that select it.
func (p *Counts) AffinityScore(co *Context, t *model.Task, row int32) (sum int64) {
	p.without(t, func() {
		sum = p.sum(&co.preferred, row)
		if co.template == nil {
			return
		}
		for _, d := range co.template.preferred {
			count, _ := d.at(row)
			sum += d.weight * count
		}
	})
	return sum
}

// SpreadFits reports whether a row's node satisfies the required spread constraints of a task: kube-scheduler's filter PodTopologySpread.
func (p *Counts) SpreadFits(co *Context, t *model.Task, row int32) bool {
	if co.template == nil {
		return true
	}
	fits := true
	p.without(t, func() {
		for _, ta := range co.template.requiredSpread {
			d := ta.where.at(row)
			fits = fits && d != nowhere && !ta.limit.full(ta.counts.at(d), ta.limit.floor())
		}
	})
	return fits
}

// SpreadApplies reports whether a task has preferred spread constraints, and a row's node has the labels of all of them.
func (co *Context) SpreadApplies(row int32) bool {
	return co.spreads() && co.template.softIn(row)
}

// spreads reports whether there are preferred spread constraints.
func (co *Context) spreads() bool { return co.template != nil && len(co.template.preferredSpread) > 0 }

// SpreadScore returns how many of the pods that the preferred constraints count are in the domains of a row's node. Each constraint is
// weighted by the logarithm of its number of domains among the nodes to choose from. sizes contains these numbers; nil: those of all ready
// nodes.
func (p *Counts) SpreadScore(co *Context, t *model.Task, row int32, sizes []int32) float64 {
	if !co.SpreadApplies(row) {
		return 0
	}
	if sizes == nil {
		sizes = p.sizesOfAll(co)
	}
	sum := 0.0
	p.without(t, func() {
		for i := range co.template.preferredSpread {
			x := &co.template.preferredSpread[i]
			count, _ := x.at(row)
			sum += float64(count)*p.logarithm(sizes[i]+2) + float64(x.maxSkew-1)
		}
	})
	return math.Round(sum)
}

// fits reports whether a row's node satisfies the task's own required affinity and anti-affinity.
func (co *Context) fits(row int32) bool {
	x := co.template
	return x == nil || x.affinityFits(row) && areEmpty(x.antiAffinity, row)
}

// areEmpty reports whether the tallies count no task in the row's domains.
func areEmpty(tallies []*Tally, row int32) bool {
	for _, ta := range tallies {
		if n, _ := ta.at(row); n > 0 {
			return false
		}
	}
	return true
}

// affinityFits reports whether each domain of a node has a pod that the affinity selects. If no such pod exists anywhere, a pod that its
// own affinity selects fits, because otherwise no pod of its kind could be placed first.
func (x *template) affinityFits(row int32) bool {
	somebody, everyone := true, int64(0)
	for _, ta := range x.affinity {
		n, ok := ta.at(row)
		if !ok {
			return false
		}
		somebody = somebody && n > 0
		everyone += ta.total
	}
	return somebody || everyone == 0 && x.selfMatch
}

// softIn reports whether the row's node has the label of each preferred constraint.
func (x *template) softIn(row int32) bool {
	for i := range x.preferredSpread {
		if x.preferredSpread[i].where.at(row) == nowhere {
			return false
		}
	}
	return true
}

// logarithm returns the logarithm of a number of domains. It caches the last one, because few terms differ in this number.
func (p *Counts) logarithm(n int32) float64 {
	if p.log.of != n {
		p.log.of, p.log.is = n, math.Log(float64(n))
	}
	return p.log.is
}
