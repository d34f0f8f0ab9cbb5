package policy

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// nowhere is the domain of a node without the topology's label.
const nowhere = int32(-1)

// topology is the nodes by the value of one label: its domains.
type topology struct {
	key   string
	index map[string]int32
	of    []int32   // domain of a row
	rows  [][]int32 // of a domain
}

// place says which labels the node in a row has.
func (x *topology) place(row int32, labels map[string]string) {
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
func (x *topology) move(row, to int32) {
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

// allDomains stands in a tally's log for all domains.
const allDomains = int32(-2)

// tally is how many placed tasks of a kind there are in each domain of a topology.
type tally struct {
	id      int
	where   *topology
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

	// What changed, for classes with cursors of their own.
	start uint64
	log   []int32
}

// at is the count of a row's domain; ok is false where the node is in none.
func (ta *tally) at(row int32) (n int64, ok bool) {
	d := ta.where.of[row]
	if d == nowhere {
		return 0, false
	}
	if int(d) >= len(ta.counts) {
		return 0, true
	}
	return ta.counts[d], true
}

func (ta *tally) alsoIn(matched []*selector) bool {
	for _, x := range ta.also {
		if !slices.Contains(matched, x) {
			return false
		}
	}
	return true
}

// bump counts one task more, or less, on a row.
func (ta *tally) bump(row int32, sign int64) {
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
			ta.note(allDomains)
		}
	}
}

// note logs a domain whose watchers must look again.
func (ta *tally) note(d int32) {
	const most = 1 << 12
	if len(ta.log) == most {
		ta.start += most
		ta.log = ta.log[:0]
	}
	ta.log = append(ta.log, d)
}

func (ta *tally) next() uint64 { return ta.start + uint64(len(ta.log)) }

// since lists what changed from a cursor on; ok is false where that is not known any more.
func (ta *tally) since(cursor uint64) (domains []int32, ok bool) {
	if cursor < ta.start {
		return nil, false
	}
	return ta.log[cursor-ta.start:], true
}

// inclusion says which nodes a spread constraint counts.
type inclusion struct {
	keys           []string    // labels that a node must have
	pod            *model.Task // its node affinity and tolerations only
	affinity, tain bool        // which of them are heeded
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
	if x.tain {
		if _, found := firstUntolerated(x.pod, n); found {
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
func (x *limit) settle(ta *tally) {
	for len(ta.counts) < len(ta.where.rows) {
		ta.counts = append(ta.counts, 0)
	}
	x.present = resized(x.present, len(ta.where.rows))
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
func (x *limit) least(ta *tally) {
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
func (x *limit) moved(ta *tally, d int32, was int64) {
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

func (x *limit) judgeAll(ta *tally) {
	for d := range x.full {
		x.judge(ta, int32(d))
	}
}

func (x *limit) judge(ta *tally, d int32) {
	full := ta.counts[d]+x.self-x.floor() > x.maxSkew
	if full != x.full[d] {
		x.full[d] = full
		if ta.filled {
			ta.note(d)
		}
	}
}

// template is what tasks that ask the same of their peers have in common.
type template struct {
	id      int
	name    string // for keys
	terms   *model.PodTerms
	owners  int  // tasks that have it
	counted bool // owners were above 0 once

	near     []*tally // of required affinity, one a term
	nearSelf bool     // the pod is one of those whom it wants to be near
	apart    []*tally // of required anti-affinity
	drawn    []drawn  // of preferred terms
	hard     []*tally // of required spread
	soft     []soft   // of preferred spread
	tallies  []*tally // all of these
	asks     []*tally // that its placed tasks count in
}

// drawn is a tally with what each that it counts adds to a score.
type drawn struct {
	*tally
	weight int64
}

// soft is a preferred spread constraint.
type soft struct {
	*tally
	maxSkew int64
	// byNode says that each node is a domain: kube-scheduler then weighs by the number of nodes.
	byNode bool
}

// template of a task, nil where it asks nothing of its peers.
func (p *peers) template(t *model.Task) *template {
	terms := t.PodTerms
	if terms == nil {
		return nil
	}
	if rec := p.records[t]; rec != nil && rec.object == t.Object && rec.template != nil {
		return rec.template
	}
	var key strings.Builder
	key.WriteString(terms.Key)
	var selves []bool
	for i := range terms.RequiredAffinity {
		selves = append(selves, p.selects(&terms.RequiredAffinity[i].Who, t))
	}
	for i := range terms.Spread {
		selves = append(selves, p.selects(&terms.Spread[i].Who, t))
	}
	for _, self := range selves {
		key.WriteString(strconv.FormatBool(self)[:1])
	}
	if len(terms.Spread) > 0 {
		key.WriteString("\n" + t.NodeAffinityKey + "\n" + t.TolerationsKey)
	}
	if known := p.templates[key.String()]; known != nil {
		return known
	}
	p.ids++
	x := &template{id: p.ids, name: "t" + strconv.Itoa(p.ids), terms: terms}
	p.templates[key.String()] = x
	p.affinityOf(x, selves)
	p.spreadOf(x, t, selves[len(terms.RequiredAffinity):])
	for _, list := range [][]*tally{x.near, x.apart, x.hard} {
		x.tallies = append(x.tallies, list...)
	}
	for _, d := range x.drawn {
		x.tallies = append(x.tallies, d.tally)
	}
	for _, s := range x.soft {
		x.tallies = append(x.tallies, s.tally)
	}
	return x
}

func (p *peers) selects(who *model.PodSelector, t *model.Task) bool {
	return who.HasNamespace(t.Namespace, p.w.c.NamespaceLabels(t.Namespace)) && who.HasLabels(t.Labels)
}

// affinityOf makes the tallies of a template's affinity terms.
func (p *peers) affinityOf(x *template, selves []bool) {
	terms := x.terms
	x.nearSelf = true
	all := []*selector{}
	for i := range terms.RequiredAffinity {
		x.nearSelf = x.nearSelf && selves[i]
		if one := p.selector(&terms.RequiredAffinity[i].Who); !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	for i := range terms.RequiredAffinity {
		term := &terms.RequiredAffinity[i]
		x.near = append(x.near, p.tally("near", term.TopologyKey, all, func(ta *tally) { ta.alone = true }))
		x.asks = append(x.asks, p.asking("near", term, amount, hardAffinityWeight))
	}
	for i := range terms.RequiredAntiAffinity {
		term := &terms.RequiredAntiAffinity[i]
		x.apart = append(x.apart, p.tally("apart", term.TopologyKey, []*selector{p.selector(&term.Who)}, nil))
		x.asks = append(x.asks, p.asking("apart", term, presence, 0))
	}
	prefer := func(list []model.PodTerm, sign int64) {
		for i := range list {
			term := &list[i]
			ta := p.tally("drawn", term.TopologyKey, []*selector{p.selector(&term.Who)}, func(ta *tally) { ta.use = amount })
			x.drawn = append(x.drawn, drawn{ta, sign * term.Weight})
			x.asks = append(x.asks, p.asking("drawn", term, amount, sign*term.Weight))
		}
	}
	prefer(terms.PreferredAffinity, 1)
	prefer(terms.PreferredAntiAffinity, -1)
}

// hardAffinityWeight is what a placed pod's required affinity to a pod counts for in the pod's score: the default of
// kube-scheduler's hardPodAffinityWeight.
const hardAffinityWeight = 1

// spreadOf makes the tallies of a template's spread constraints. Nodes that lack the label of any constraint of the
// same mode are not counted.
func (p *peers) spreadOf(x *template, t *model.Task, selves []bool) {
	keys := map[bool][]string{}
	for i := range x.terms.Spread {
		term := &x.terms.Spread[i]
		keys[term.Required] = append(keys[term.Required], term.TopologyKey)
	}
	like := &model.Task{Template: t.Template}
	for i := range x.terms.Spread {
		term := &x.terms.Spread[i]
		name := "spread\n" + strings.Join(keys[term.Required], ",") + "\n"
		if term.HonorAffinity {
			name += t.NodeAffinityKey
		}
		name += "\n"
		if term.HonorTaints {
			name += "t" + t.TolerationsKey
		}
		who := []*selector{p.selector(&term.Who)}
		if term.Who.Labels != nil && term.Who.Labels.Empty() {
			who, name = nil, name+"nobody" // as kube-scheduler has it: an empty selector counts nobody
		}
		includes := &inclusion{keys: keys[term.Required], pod: like, affinity: term.HonorAffinity, tain: term.HonorTaints}
		if !term.Required {
			one := soft{maxSkew: term.MaxSkew, byNode: term.TopologyKey == corev1.LabelHostname}
			if one.byNode {
				includes, name = nil, "spread of all\n"
			}
			one.tally = p.tally(name, term.TopologyKey, who, func(ta *tally) { ta.use, ta.staying, ta.includes = amount, true, includes })
			x.soft = append(x.soft, one)
			continue
		}
		bounds := &limit{maxSkew: term.MaxSkew, minDomains: term.MinDomains}
		if selves[i] {
			bounds.self = 1
		}
		for _, n := range []int64{bounds.self, bounds.maxSkew, bounds.minDomains} {
			name += " " + strconv.FormatInt(n, 10)
		}
		x.hard = append(x.hard, p.tally(name, term.TopologyKey, who, func(ta *tally) { ta.use, ta.staying, ta.includes, ta.limit = bound, true, includes, bounds }))
	}
}

// selector makes what is not known yet.
func (p *peers) selector(who *model.PodSelector) *selector {
	if known := p.selectors[who.Key]; known != nil {
		return known
	}
	p.ids++
	x := &selector{PodSelector: *who, id: p.ids, namespaces: map[string]bool{}}
	p.selectors[who.Key] = x
	p.byLabels = p.byLabels || who.ByLabels != nil
	if key, value, ok := who.Equality(); ok {
		p.byLabel[label{key, value}] = append(p.byLabel[label{key, value}], x)
	} else {
		p.rest = append(p.rest, x)
	}
	return x
}

// tally finds or makes the tally of the placed tasks that all selectors speak of; none: it counts nobody.
func (p *peers) tally(kind, topologyKey string, who []*selector, with func(*tally)) *tally {
	key := []string{kind, topologyKey}
	for _, x := range who {
		key = append(key, x.Key)
	}
	ta, fresh := p.tallyNamed(strings.Join(key, "\n"), topologyKey)
	if !fresh {
		return ta
	}
	if with != nil {
		with(ta)
	}
	if len(who) > 0 {
		ta.also = who[1:]
		who[0].counted = append(who[0].counted, ta)
	}
	if ta.includes != nil {
		p.inclusive = append(p.inclusive, ta)
		ta.included = make([]bool, len(p.rows))
		for row := range p.rows {
			node := p.w.c.Nodes.Rows[row]
			ta.included[row] = node != nil && ta.where.of[row] != nowhere && ta.includes.node(node)
		}
	}
	return ta
}

// asking finds or makes the tally of the placed tasks that have a term.
func (p *peers) asking(kind string, term *model.PodTerm, of use, weight int64) *tally {
	x := p.selector(&term.Who)
	key := strings.Join([]string{"asking", kind, strconv.FormatInt(weight, 10), term.TopologyKey, x.Key}, "\n")
	ta, fresh := p.tallyNamed(key, term.TopologyKey)
	if fresh {
		ta.use, ta.weight = of, weight
		x.asking = append(x.asking, ta)
	}
	return ta
}

func (p *peers) tallyNamed(key, topologyKey string) (ta *tally, fresh bool) {
	if known := p.tallies[key]; known != nil {
		return known, false
	}
	p.ids++
	ta = &tally{id: p.ids, where: p.topology(topologyKey)}
	p.tallies[key] = ta
	p.fresh = append(p.fresh, ta)
	return ta, true
}

// topology finds or makes the domains of a label.
func (p *peers) topology(key string) *topology {
	if known := p.topologies[key]; known != nil {
		return known
	}
	x := &topology{key: key, index: map[string]int32{}}
	for row := range p.rows {
		x.of = append(x.of, nowhere)
		x.place(int32(row), p.rows[row].labels)
	}
	p.topologies[key] = x
	return x
}
