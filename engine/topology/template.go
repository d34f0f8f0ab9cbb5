package topology

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// template contains what tasks with equal terms have in common.
type template struct {
	id      int
	name    string // for keys
	terms   *model.PodTerms
	owners  int  // number of tasks that have it
	counted bool // owners was above 0 once

	affinity        []*Tally    // of required affinity, one per term
	selfMatch       bool        // the pod's own affinity selects it
	antiAffinity    []*Tally    // of required anti-affinity
	preferred       []preferred // of preferred terms
	requiredSpread  []*Tally    // of required spread
	preferredSpread []soft      // of preferred spread
	tallies         []*Tally    // all of these
	asks            []*Tally    // the tallies that count its placed tasks
}

// preferred is a tally, and what each counted task adds to a score.
type preferred struct {
	*Tally
	weight int64
}

// soft is a preferred spread constraint.
type soft struct {
	*Tally
	maxSkew int64
	// byNode states that each node is a domain: kube-scheduler then weights by the number of nodes.
	byNode bool
}

// template returns the template of a task, nil if it has no terms.
func (p *Counts) template(t *model.Task) *template {
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
		key.WriteString("\n" + p.name(t.NodeAffinityKey) + "\n" + p.name(t.TolerationsKey))
	}
	if known := p.templates[key.String()]; known != nil {
		return known
	}
	p.ids++
	x := &template{id: p.ids, name: "t" + strconv.Itoa(p.ids), terms: terms}
	p.templates[key.String()] = x
	p.affinityOf(x, selves)
	p.spreadOf(x, t, selves[len(terms.RequiredAffinity):])
	for _, list := range [][]*Tally{x.affinity, x.antiAffinity, x.requiredSpread} {
		x.tallies = append(x.tallies, list...)
	}
	for _, d := range x.preferred {
		x.tallies = append(x.tallies, d.Tally)
	}
	for _, s := range x.preferredSpread {
		x.tallies = append(x.tallies, s.Tally)
	}
	return x
}

func (p *Counts) selects(who *model.PodSelector, t *model.Task) bool {
	return who.HasNamespace(t.Namespace, p.c.NamespaceLabels(t.Namespace)) && who.HasLabels(t.Labels)
}

// affinityOf creates the tallies of a template's affinity terms.
func (p *Counts) affinityOf(x *template, selves []bool) {
	terms := x.terms
	x.selfMatch = true
	all := []*selector{}
	for i := range terms.RequiredAffinity {
		x.selfMatch = x.selfMatch && selves[i]
		if one := p.selector(&terms.RequiredAffinity[i].Who); !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	near := map[string]*Tally{}
	for i := range terms.RequiredAffinity {
		term := &terms.RequiredAffinity[i]
		if near[term.TopologyKey] == nil { // all terms count the same pods: one tally per topology is enough
			near[term.TopologyKey] = p.tally("near", term.TopologyKey, all, func(ta *Tally) { ta.alone = true })
			x.affinity = append(x.affinity, near[term.TopologyKey])
		}
		x.asks = append(x.asks, p.asking("near", term, amount, hardAffinityWeight))
	}
	for i := range terms.RequiredAntiAffinity {
		term := &terms.RequiredAntiAffinity[i]
		x.antiAffinity = append(x.antiAffinity, p.tally("apart", term.TopologyKey, []*selector{p.selector(&term.Who)}, nil))
		x.asks = append(x.asks, p.asking("apart", term, presence, 1))
	}
	prefer := func(list []model.PodTerm, sign int64) {
		for i := range list {
			term := &list[i]
			ta := p.tally("preferred", term.TopologyKey, []*selector{p.selector(&term.Who)}, func(ta *Tally) { ta.use = amount })
			x.preferred = append(x.preferred, preferred{ta, sign * term.Weight})
			x.asks = append(x.asks, p.asking("preferred", term, amount, sign*term.Weight))
		}
	}
	prefer(terms.PreferredAffinity, 1)
	prefer(terms.PreferredAntiAffinity, -1)
}

// hardAffinityWeight is the score of a placed pod's required affinity to a pod: the default of kube-scheduler's hardPodAffinityWeight.
const hardAffinityWeight = 1

// spreadOf creates the tallies of a template's spread constraints. Nodes without the label of any constraint of the same mode do not count.
func (p *Counts) spreadOf(x *template, t *model.Task, selves []bool) {
	keys := map[bool][]string{}
	for i := range x.terms.Spread {
		term := &x.terms.Spread[i]
		keys[term.Required] = append(keys[term.Required], term.TopologyKey)
	}
	for _, list := range keys {
		slices.Sort(list)
	}
	keys[true], keys[false] = slices.Compact(keys[true]), slices.Compact(keys[false])
	like := &model.Task{Template: t.Template}
	for i := range x.terms.Spread {
		term := &x.terms.Spread[i]
		includes, name := p.inclusion(keys[term.Required], term, like)
		who := []*selector{p.selector(&term.Who)}
		if term.Who.Labels != nil && term.Who.Labels.Empty() {
			who, name = nil, name+"nobody" // as in kube-scheduler, an empty selector counts no pod
		}
		if !term.Required {
			one := soft{maxSkew: term.MaxSkew, byNode: term.TopologyKey == corev1.LabelHostname}
			if one.byNode {
				includes, name = nil, "spread of all\n"
			}
			one.Tally = p.tally(name, term.TopologyKey, who, func(ta *Tally) { ta.use, ta.staying, ta.includes = amount, true, includes })
			x.preferredSpread = append(x.preferredSpread, one)
			continue
		}
		bounds := &limit{maxSkew: term.MaxSkew, minDomains: term.MinDomains, scope: p.scope(includes, p.topology(term.TopologyKey))}
		if selves[i] {
			bounds.self = 1
		}
		for _, n := range []int64{bounds.self, bounds.maxSkew, bounds.minDomains} {
			name += " " + strconv.FormatInt(n, 10)
		}
		x.requiredSpread = append(x.requiredSpread, p.tally(name, term.TopologyKey, who, func(ta *Tally) {
			ta.use, ta.staying, ta.includes, ta.limit = bound, true, includes, bounds
		}))
	}
}

// inclusion returns which nodes a constraint counts, and a short name of it for keys. A pod may have many constraints, and their names must
// not repeat what they have in common.
func (p *Counts) inclusion(keys []string, term *model.SpreadTerm, like *model.Task) (x *inclusion, name string) {
	text := strings.Join(keys, ",") + "\n"
	if term.HonorAffinity {
		text += like.NodeAffinityKey
	}
	text += "\n"
	if term.HonorTaints {
		text += "t" + like.TolerationsKey
	}
	name = "spread " + p.name(text)
	if known := p.inclusions[name]; known != nil {
		return known, name
	}
	x = &inclusion{keys: keys, pod: like, affinity: term.HonorAffinity, taints: term.HonorTaints, rows: make([]bool, len(p.rows))}
	for row := range p.rows {
		node := p.c.Nodes.Rows[row]
		x.rows[row] = node != nil && p.rows[row].object > 0 && x.node(node)
	}
	p.inclusions[name] = x
	return x, name
}

func (p *Counts) scope(of *inclusion, where *domains) *scope {
	key := scopeKey{of, where}
	if known := p.scopes[key]; known != nil {
		return known
	}
	x := &scope{of: of, where: where}
	x.settle()
	p.scopes[key] = x
	return x
}

// name returns a short name for a long text.
func (p *Counts) name(text string) string {
	known, ok := p.names[text]
	if !ok {
		known = strconv.Itoa(len(p.names))
		p.names[text] = known
	}
	return known
}

// selector returns the selector, and creates it if necessary.
func (p *Counts) selector(who *model.PodSelector) *selector {
	if known := p.selectors[who.Key]; known != nil {
		return known
	}
	p.ids++
	x := &selector{PodSelector: *who, id: p.ids, namespaces: map[string]bool{}}
	p.selectors[who.Key] = x
	p.byLabels = p.byLabels || who.ByLabels != nil
	if of, ok := who.Narrowest(func(of model.Label) int { return len(p.byLabel[of]) }); ok {
		p.byLabel[of] = append(p.byLabel[of], x)
	} else {
		p.rest = append(p.rest, x)
	}
	return x
}

// tally returns the tally of the placed tasks that all selectors select, and creates it if necessary. Without selectors it counts no task.
func (p *Counts) tally(kind, topologyKey string, who []*selector, with func(*Tally)) *Tally {
	key := []string{kind, topologyKey}
	switch {
	case len(who) == 1:
		key = append(key, who[0].Key)
	case len(who) > 1:
		var all []string
		for _, x := range who {
			all = append(all, x.Key)
		}
		key = append(key, p.name(strings.Join(all, "\n")), "together")
	}
	ta, fresh := p.tallyNamed(strings.Join(key, "\n"), topologyKey)
	if !fresh {
		return ta
	}
	if with != nil {
		with(ta)
	}
	if len(who) > 0 {
		if len(who) > 1 {
			ta.also = p.conjunction(key[2], who[1:])
		}
		who[0].counted = append(who[0].counted, ta)
	}
	if ta.includes != nil {
		p.inclusive = append(p.inclusive, ta)
	}
	return ta
}

// conjunction returns the conjunction with a name, and creates it if necessary.
func (p *Counts) conjunction(name string, all []*selector) *conjunction {
	if known := p.conjunctions[name]; known != nil {
		return known
	}
	x := &conjunction{all}
	p.conjunctions[name] = x
	return x
}

// asking returns the tally of the placed tasks that have a term, and creates it if necessary.
func (p *Counts) asking(kind string, term *model.PodTerm, of use, weight int64) *Tally {
	x := p.selector(&term.Who)
	key := strings.Join([]string{"asking", kind, strconv.FormatInt(weight, 10), term.TopologyKey, x.Key}, "\n")
	ta, fresh := p.tallyNamed(key, term.TopologyKey)
	if fresh {
		ta.use, ta.weight = of, weight
		x.asking = append(x.asking, ta)
	}
	return ta
}

func (p *Counts) tallyNamed(key, topologyKey string) (ta *Tally, fresh bool) {
	if known := p.tallies[key]; known != nil {
		return known, false
	}
	p.ids++
	ta = &Tally{id: p.ids, where: p.topology(topologyKey)}
	p.tallies[key] = ta
	p.fresh = append(p.fresh, ta)
	return ta, true
}

// topology returns the domains of a label, and creates them if necessary.
func (p *Counts) topology(key string) *domains {
	if known := p.topologies[key]; known != nil {
		return known
	}
	x := &domains{key: key, index: map[string]int32{}}
	p.topologies[key] = x
	if p.labelled[key] == 0 { // users can write any number of keys that no node has
		return x
	}
	for row := range p.rows {
		x.place(int32(row), p.rows[row].labels)
	}
	return x
}
