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
	of    []int32   // domain of a row
	rows  [][]int32 // of a domain
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
	from := x.of[row]
	if from == to {
		return
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
	also    []*selector // that a task must match as well
	staying bool        // those that are being released are left out
	weight  int64       // of each, for scores
	// alone says that it matters whether there is anybody at all.
	alone bool
	// includes says which nodes' tasks are counted, included the answer by row; nil: all.
	includes *inclusion
	included []bool
	limit    *limit

	askers int // templates in use whose placed tasks it counts, of a tally of those
	filled bool
	counts []int64 // by domain
	total  int64

	// Log names the domains whose counts changed; AllDomains stands for all.
	Log follow.Log[int32]
}

// at is the count of a row's domain; ok is false where the node is in none.
func (ta *Tally) at(row int32) (n int64, ok bool) {
	d := ta.where.of[row]
	if d == nowhere {
		return 0, false
	}
	if int(d) >= len(ta.counts) {
		return 0, true
	}
	return ta.counts[d], true
}

// Domains is how many there are, each told by a number from 0.
func (ta *Tally) Domains() int { return len(ta.where.rows) }

// Rows are those of a domain's nodes.
func (ta *Tally) Rows(domain int32) []int32 { return ta.where.rows[domain] }

func (ta *Tally) alsoIn(matched []*selector) bool {
	for _, x := range ta.also {
		if !slices.Contains(matched, x) {
			return false
		}
	}
	return true
}

// bump counts one task more, or less, on a row.
func (ta *Tally) bump(row int32, sign int64) {
	d := ta.where.of[row]
	if d == nowhere || ta.included != nil && !ta.included[row] {
		return
	}
	for int(d) >= len(ta.counts) {
		ta.counts = append(ta.counts, 0)
	}
	was := ta.counts[d]
	ta.counts[d] += sign
	before := ta.total
	ta.total += sign
	switch {
	case !ta.filled:
	case ta.use == amount:
		ta.note(d)
	case ta.use == bound:
		ta.limit.moved(ta, d, was)
	default:
		if (was > 0) != (ta.counts[d] > 0) {
			ta.note(d)
		}
		if ta.alone && (before == 0) != (ta.total == 0) {
			ta.note(AllDomains)
		}
	}
}

// note logs a domain whose watchers must look again.
func (ta *Tally) note(d int32) { ta.Log.AddOf(d, len(ta.counts)) }

// inclusion says which nodes a spread constraint counts.
type inclusion struct {
	keys             []string    // labels that a node must have
	pod              *model.Task // its node affinity and tolerations only
	affinity, taints bool        // which of them are heeded
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

// limit says which domains can take no more pods of a required spread constraint: those where the count, and the pod
// itself if it matches, would exceed the least count of any domain by more than maxSkew.
type limit struct {
	self, maxSkew, minDomains int64

	present []int32 // included nodes, by domain
	domains int64   // with any
	min     int64
	atMin   int
	full    []bool // by domain
}

// settle computes everything from the tally's counts, in proportion to the number of nodes.
func (x *limit) settle(ta *Tally) {
	for len(ta.counts) < len(ta.where.rows) {
		ta.counts = append(ta.counts, 0)
	}
	x.present = slab.Resized(x.present, len(ta.where.rows))
	for row, in := range ta.included {
		if in {
			x.present[ta.where.of[row]]++
		}
	}
	x.domains = 0
	for _, n := range x.present {
		if n > 0 {
			x.domains++
		}
	}
	for len(x.full) < len(ta.where.rows) {
		x.full = append(x.full, false)
	}
	x.least(ta)
	x.judgeAll(ta)
}

// least finds the least count of a domain with included nodes.
func (x *limit) least(ta *Tally) {
	x.min, x.atMin = 0, 0
	for d, n := range x.present {
		if n == 0 {
			continue
		}
		switch v := ta.counts[d]; {
		case x.atMin == 0 || v < x.min:
			x.min, x.atMin = v, 1
		case v == x.min:
			x.atMin++
		}
	}
}

// floor is the least count that a domain is compared with: 0 where there are fewer domains than there must be.
func (x *limit) floor() int64 {
	if x.domains < x.minDomains || x.domains == 0 {
		return 0
	}
	return x.min
}

// moved follows one domain's count; the domain has an included node. Others are looked at only where the
// least count moved with it.
func (x *limit) moved(ta *Tally, d int32, was int64) {
	if int(d) >= len(x.full) {
		return // a domain that is new: all is settled when every node has its place
	}
	floor, now := x.floor(), ta.counts[d]
	switch {
	case now < x.min:
		x.min, x.atMin = now, 1
	case now == x.min:
		x.atMin++
	case was == x.min:
		if x.atMin--; x.atMin == 0 {
			x.least(ta)
		}
	}
	if x.floor() != floor {
		x.judgeAll(ta)
		return
	}
	x.judge(ta, d)
}

func (x *limit) judgeAll(ta *Tally) {
	for d := range x.full {
		x.judge(ta, int32(d))
	}
}

func (x *limit) judge(ta *Tally, d int32) {
	full := ta.counts[d]+x.self-x.floor() > x.maxSkew
	if full != x.full[d] {
		x.full[d] = full
		if ta.filled {
			ta.note(d)
		}
	}
}
