package topology

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// nowhere is the domain of a node without the topology's label.
const nowhere = int32(-1)

// domains are the nodes by the value of one label: its domains.
type domains struct {
	key   string
	index map[string]int32
	of    []int32   // domain of a row; rows beyond its end are nowhere
	rows  [][]int32 // of a domain
}

// at is the domain of a row.
func (x *domains) at(row int32) int32 {
	if int(row) >= len(x.of) {
		return nowhere
	}
	return x.of[row]
}

// place says which labels the node in a row has.
func (x *domains) place(row int32, labels map[string]string) {
	to := nowhere
	if value, ok := labels[x.key]; ok {
		known := false
		if to, known = x.index[value]; !known {
			to = int32(len(x.rows))
			x.index[value], x.rows = to, append(x.rows, nil)
		}
	}
	x.move(row, to)
}

// move puts a row into a domain, or nowhere.
func (x *domains) move(row, to int32) {
	from := x.at(row)
	if from == to {
		return
	}
	for int(row) >= len(x.of) {
		x.of = append(x.of, nowhere)
	}
	if from != nowhere {
		x.rows[from] = slices.DeleteFunc(x.rows[from], func(r int32) bool { return r == row })
	}
	if to != nowhere {
		x.rows[to] = append(x.rows[to], row)
	}
	x.of[row] = to
}

// use is what of a count matters to those who watch it.
type use uint8

const (
	presence use = iota // whether anybody is there
	amount              // how many
	bound               // whether one more would be too many
)

// AllDomains stands in a tally's log for all domains.
const AllDomains = int32(-2)

// Tally is how many placed tasks of a kind there are in each domain of a topology.
type Tally struct {
	id      int
	where   *domains
	use     use
	also    *conjunction // that a task must match as well; nil: nothing
	staying bool         // those that are being released are left out
	weight  int64        // of each, for scores
	// alone says that it matters whether there is anybody at all.
	alone bool
	// includes says which nodes' tasks are counted; nil: all.
	includes *inclusion
	limit    *limit

	askers int // templates in use whose placed tasks it counts, of a tally of those
	filled bool
	counts byDomain
	total  int64

	// Log names the domains whose counts changed; AllDomains stands for all.
	Log follow.Log[int32]
}

// fewDomains is up to how many domains counts are kept as a list. Most terms select few pods, and there may be many terms.
const fewDomains = 16

// byDomain counts by domain. What it takes grows with the domains that count something, until these are many.
type byDomain struct {
	few  []domainCount // that are not 0, in no order; while all is nil
	all  []int64
	some int // domains that are not 0
}

type domainCount struct {
	domain int32
	count  int64
}

func (x *byDomain) at(d int32) int64 {
	if x.all != nil {
		if int(d) < len(x.all) {
			return x.all[d]
		}
		return 0
	}
	for i := range x.few {
		if x.few[i].domain == d {
			return x.few[i].count
		}
	}
	return 0
}

// add changes the count of a domain, and gives it as it was.
func (x *byDomain) add(d int32, by int64) (was int64) {
	if was = x.at(d); was == 0 {
		x.some++
	}
	if was+by == 0 {
		x.some--
	}
	if x.all == nil && was == 0 && len(x.few) == fewDomains {
		x.all = make([]int64, d+1)
		for _, of := range x.few {
			x.set(of.domain, of.count)
		}
		x.few = nil
	}
	if x.all != nil {
		x.set(d, was+by)
		return was
	}
	for i := range x.few {
		if x.few[i].domain == d {
			if x.few[i].count += by; x.few[i].count == 0 {
				x.few = slices.Delete(x.few, i, i+1)
			}
			return was
		}
	}
	x.few = append(x.few, domainCount{d, by})
	return was
}

func (x *byDomain) set(d int32, n int64) {
	for int(d) >= len(x.all) {
		x.all = append(x.all, 0)
	}
	x.all[d] = n
}

// at is the count of a row's domain; ok is false where the node is in none.
func (ta *Tally) at(row int32) (n int64, ok bool) {
	d := ta.where.at(row)
	if d == nowhere {
		return 0, false
	}
	return ta.counts.at(d), true
}

// Domains is how many there are, each told by a number from 0.
func (ta *Tally) Domains() int { return len(ta.where.rows) }

// Rows are those of a domain's nodes.
func (ta *Tally) Rows(domain int32) []int32 { return ta.where.rows[domain] }

// conjunction is a list of selectors that a task must match, all of them.
type conjunction struct{ all []*selector }

func (x *conjunction) in(matched []*selector) bool {
	for _, one := range x.all {
		if !slices.Contains(matched, one) {
			return false
		}
	}
	return true
}

// bump counts one task more, or less, on a row.
func (ta *Tally) bump(row int32, sign int64) {
	d := ta.where.at(row)
	if d == nowhere || ta.includes != nil && !ta.includes.rows[row] {
		return
	}
	was := ta.counts.add(d, sign)
	before := ta.total
	ta.total += sign
	switch {
	case !ta.filled:
	case ta.use == amount:
		ta.note(d)
	case ta.use == bound:
		ta.limit.moved(ta, d, was)
	default:
		if (was > 0) != (was+sign > 0) {
			ta.note(d)
		}
		if ta.alone && (before == 0) != (ta.total == 0) {
			ta.note(AllDomains)
		}
	}
}

// note logs a domain whose watchers must look again.
func (ta *Tally) note(d int32) { ta.Log.AddOf(d, len(ta.where.rows)) }

// inclusion states which nodes a spread constraint counts. Constraints with the same keys, node affinity and tolerations share it.
type inclusion struct {
	keys             []string    // labels that a node must have
	pod              *model.Task // its node affinity and tolerations only
	affinity, taints bool        // which of them are heeded
	rows             []bool      // the answer by row
}

func (x *inclusion) node(n *model.Node) bool {
	for _, key := range x.keys {
		if _, ok := n.Labels[key]; !ok {
			return false
		}
	}
	if x.affinity && x.pod.NodeAffinityKey != "" {
		// Terms that err match nothing, as kube-scheduler has it here.
		if ok, _ := x.pod.NodeAffinity.Match(n.Object); !ok {
			return false
		}
	}
	if x.taints {
		if _, found := x.pod.FirstUntolerated(n); found {
			return false
		}
	}
	return true
}

// scope is the domains of a topology that have nodes of an inclusion.
type scope struct {
	of      *inclusion
	where   *domains
	present []int32 // included nodes, by domain
	domains int64   // with any
}

type scopeKey struct {
	of    *inclusion
	where *domains
}

// settle computes all, in proportion to the number of nodes.
func (x *scope) settle() {
	x.present = slab.Resized(x.present, len(x.where.rows))
	for row, in := range x.of.rows {
		if d := x.where.at(int32(row)); in && d != nowhere {
			x.present[d]++
		}
	}
	x.domains = 0
	for _, n := range x.present {
		if n > 0 {
			x.domains++
		}
	}
}

func (x *scope) has(d int32) bool { return int(d) < len(x.present) && x.present[d] > 0 }

// limit says which domains can take no more pods of a required spread constraint: those where the count, and the pod
// itself if it matches, would exceed the least count of any domain by more than maxSkew.
type limit struct {
	self, maxSkew, minDomains int64

	scope  *scope
	min    int64 // least count of a domain with included nodes
	atMin  int64
	judged int64 // the floor that watchers know of
}

// settle finds the least count again, after nodes changed.
func (x *limit) settle(ta *Tally) {
	x.least(ta)
	if x.floor() != x.judged || ta.filled {
		x.judgeAll(ta)
	}
}

// least finds the least count of a domain with included nodes. Where some of them count nothing this takes a look at the others.
func (x *limit) least(ta *Tally) {
	x.min, x.atMin = 0, 0
	if int64(ta.counts.some) < x.scope.domains {
		some := int64(0)
		ta.counts.each(func(d int32, _ int64) {
			if x.scope.has(d) {
				some++
			}
		})
		x.atMin = x.scope.domains - some
		return
	}
	for d, n := range x.scope.present {
		if n == 0 {
			continue
		}
		switch v := ta.counts.at(int32(d)); {
		case x.atMin == 0 || v < x.min:
			x.min, x.atMin = v, 1
		case v == x.min:
			x.atMin++
		}
	}
}

// each gives the domains that count something.
func (x *byDomain) each(do func(d int32, n int64)) {
	for _, of := range x.few {
		do(of.domain, of.count)
	}
	for d, n := range x.all {
		if n != 0 {
			do(int32(d), n)
		}
	}
}

// floor is the least count that a domain is compared with: 0 where there are fewer domains than there must be.
func (x *limit) floor() int64 {
	if x.scope.domains < x.minDomains || x.scope.domains == 0 {
		return 0
	}
	return x.min
}

// full says whether a domain with so many pods can take no more.
func (x *limit) full(count, floor int64) bool { return count+x.self-floor > x.maxSkew }

// moved follows one domain's count; the domain has an included node. Others are looked at only where the
// least count moved with it.
func (x *limit) moved(ta *Tally, d int32, was int64) {
	if !x.scope.has(d) {
		return // a domain that is new: all is settled when every node has its place
	}
	now := ta.counts.at(d)
	switch {
	case now < x.min:
		x.min, x.atMin = now, 1
	case was == x.min && now != was:
		if x.atMin--; x.atMin == 0 {
			x.least(ta)
		}
	case now == x.min:
		x.atMin++
	}
	if x.floor() != x.judged {
		x.judgeAll(ta)
	}
	if x.full(was, x.judged) != x.full(now, x.judged) {
		ta.note(d)
	}
}

// judgeAll has watchers look at all domains again: the least count is another, or nodes changed.
func (x *limit) judgeAll(ta *Tally) {
	x.judged = x.floor()
	if ta.filled {
		ta.note(AllDomains)
	}
}
