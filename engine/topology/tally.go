package topology

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// nowhere is the domain of a node without the topology's label.
const nowhere = int32(-1)

// domains contains the nodes by the value of one label. Each value is a domain.
type domains struct {
	key   string
	index map[string]int32
	of    []int32   // domain by row; rows beyond its end are nowhere
	rows  [][]int32 // rows by domain
}

// at returns the domain of a row.
func (x *domains) at(row int32) int32 {
	if int(row) >= len(x.of) {
		return nowhere
	}
	return x.of[row]
}

// place sets the labels of the node in a row.
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

// move moves a row to a domain, or to nowhere.
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

// use states which part of a count matters to its watchers.
type use uint8

const (
	presence use = iota // whether there is any task
	amount              // the number of tasks
	bound               // whether one more task would be too many
)

// AllDomains means all domains in a tally's log.
const AllDomains = int32(-2)

// Tally is the number of placed tasks of a kind in each domain of a topology.
type Tally struct {
	id      int
	where   *domains
	use     use
	also    *conjunction // selectors that a task must match as well; nil: none
	staying bool         // releasing tasks are left out
	weight  int64        // of each task, for scores
	// alone states that it matters whether there is any task at all.
	alone bool
	// includes selects the nodes whose tasks count; nil: all.
	includes *inclusion
	limit    *limit

	askers int // number of templates in use whose placed tasks the tally counts, if it counts these
	filled bool
	counts byDomain
	total  int64

	// Log lists the domains whose counts changed; AllDomains means all.
	Log follow.Log[int32]
}

// fewDomains is the maximum number of domains whose counts are stored as a list. Most terms select few pods, and there may be many terms.
const fewDomains = 16

// byDomain contains counts by domain. Its size grows with the number of domains with a count, up to a limit.
type byDomain struct {
	few  []domainCount // counts other than 0, in no order; used while all is nil
	all  []int64
	some int // number of domains with a count other than 0
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

// add changes the count of a domain, and returns the old count.
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

// at returns the count of a row's domain; ok is false if the node is in none.
func (ta *Tally) at(row int32) (n int64, ok bool) {
	d := ta.where.at(row)
	if d == nowhere {
		return 0, false
	}
	return ta.counts.at(d), true
}

// Domains returns the number of domains, which are numbered from 0.
func (ta *Tally) Domains() int { return len(ta.where.rows) }

// Rows returns the rows of a domain's nodes.
func (ta *Tally) Rows(domain int32) []int32 { return ta.where.rows[domain] }

// conjunction is a list of selectors; a task must match all of them.
type conjunction struct{ all []*selector }

func (x *conjunction) in(matched []*selector) bool {
	for _, one := range x.all {
		if !slices.Contains(matched, one) {
			return false
		}
	}
	return true
}

// bump adds or removes one task on a row.
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

// note logs a domain, so that its watchers read it again.
func (ta *Tally) note(d int32) { ta.Log.AddOf(d, len(ta.where.rows)) }

// inclusion states which nodes a spread constraint counts. Constraints with the same keys, node affinity and tolerations share it.
type inclusion struct {
	keys             []string    // labels that a node must have
	pod              *model.Task // its node affinity and tolerations only
	affinity, taints bool        // which of them are used
	rows             []bool      // the answer by row
}

func (x *inclusion) node(n *model.Node) bool {
	for _, key := range x.keys {
		if _, ok := n.Labels[key]; !ok {
			return false
		}
	}
	if x.affinity && x.pod.NodeAffinityKey != "" {
		// Terms with an error match nothing, as in kube-scheduler.
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

// scope contains the domains of a topology that have nodes of an inclusion.
type scope struct {
	of      *inclusion
	where   *domains
	present []int32 // number of included nodes, by domain
	domains int64   // number of domains with any
}

type scopeKey struct {
	of    *inclusion
	where *domains
}

// settle computes the scope from scratch, in time proportional to the number of nodes.
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

// limit determines which domains can receive no more pods of a required spread constraint. In these, the count, plus the pod itself if it
// matches, would exceed the smallest count of any domain by more than maxSkew.
type limit struct {
	self, maxSkew, minDomains int64

	scope  *scope
	min    int64 // smallest count of a domain with included nodes
	atMin  int64
	judged int64 // the floor that watchers know
}

// settle computes the smallest count again, after nodes changed.
func (x *limit) settle(ta *Tally) {
	x.least(ta)
	if x.floor() != x.judged || ta.filled {
		x.judgeAll(ta)
	}
}

// least computes the smallest count of a domain with included nodes. If some of these domains count nothing, the others need not be
// compared.
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

// each calls do for the domains with a count other than 0.
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

// floor returns the smallest count for the comparison: 0 if there are fewer domains than required.
func (x *limit) floor() int64 {
	if x.scope.domains < x.minDomains || x.scope.domains == 0 {
		return 0
	}
	return x.min
}

// full reports whether a domain with this count can receive no more.
func (x *limit) full(count, floor int64) bool { return count+x.self-floor > x.maxSkew }

// moved updates the limit after a change of one domain's count; the domain has an included node. It reads the other domains only if the
// smallest count changed.
func (x *limit) moved(ta *Tally, d int32, was int64) {
	if !x.scope.has(d) {
		return // a new domain: settle runs when every node is in its domain
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

// judgeAll makes watchers read all domains again, because the smallest count changed, or nodes changed.
func (x *limit) judgeAll(ta *Tally) {
	x.judged = x.floor()
	if ta.filled {
		ta.note(AllDomains)
	}
}
