package topology

import "sync/atomic"

// addedFrom is the number of tallies from which sums by domain are kept. Users can write thousands of terms that select the same pod.
// Without sums, each node that is a candidate for the pod would be compared with all of these terms. With 1, which tests set, sums are
// always used.
const addedFrom = 16

// others contains the tallies of the terms of other tasks that select a task.
type others struct {
	tallies []*Tally
	// spent is the number of evaluated tallies since the last change of a count, which is changes.
	spent, changes atomic.Uint64
	// sums is the latest result of add. Several goroutines may check nodes at the same time, so it is replaced and never changed.
	sums atomic.Pointer[sums]
}

// sums are the weighted counts of tallies, added up by topology and domain.
type sums struct {
	changes uint64 // Counts.changes when they were added up
	of      []domainSums
}

type domainSums struct {
	where *domains
	by    []int64 // by domain
}

// sum returns the weighted number of tasks that the tallies count in a row's domains.
func (p *Counts) sum(of *others, row int32) (sum int64) {
	if len(of.tallies) < p.addedFrom || p.apart {
		return of.each(row)
	}
	known := of.sums.Load()
	if known == nil || known.changes != p.changes {
		if p.addedFrom > 1 && !of.pays(p.changes) {
			return of.each(row)
		}
		known = of.add(p.changes)
		of.sums.Store(known)
	}
	for i := range known.of {
		x := &known.of[i]
		if d := x.where.at(row); d != nowhere && int(d) < len(x.by) { // a new domain has no tasks
			sum += x.by[d]
		}
	}
	return sum
}

// each evaluates each tally.
func (x *others) each(row int32) (sum int64) {
	for _, ta := range x.tallies {
		count, _ := ta.at(row)
		sum += ta.weight * count
	}
	return sum
}

// pays reports whether adding up the tallies costs less than the evaluations of each tally since the last change.
func (x *others) pays(changes uint64) bool {
	if x.changes.Swap(changes) != changes {
		x.spent.Store(0)
	}
	cost := 0
	for _, ta := range x.tallies {
		cost += len(ta.counts.few) + len(ta.counts.all)
	}
	return x.spent.Add(uint64(2*len(x.tallies))) > uint64(cost)
}

// add adds up the counts of all domains. It takes a step for each domain in which a tally counts a task.
func (x *others) add(changes uint64) *sums {
	out := &sums{changes: changes}
	at := map[*domains][]int64{}
	for _, ta := range x.tallies {
		by, known := at[ta.where]
		if !known {
			by = make([]int64, len(ta.where.rows))
			at[ta.where] = by
			out.of = append(out.of, domainSums{ta.where, by})
		}
		ta.counts.each(func(d int32, n int64) { by[d] += ta.weight * n })
	}
	return out
}
