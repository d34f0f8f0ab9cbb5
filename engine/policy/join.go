package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/policy/parts"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// One Policy contains the policies of some queues and the policy of all other queues. Each row is evaluated only for objects of its own
// queues. A condition in front of its when ensures this: it reads a computed field of the queue that names the policy that serves it.
// Therefore the code that decides does not know of policies of queues.

// Queues returns the condition for queues that this policy serves alongside the policy of all other queues; "": it names none.
func (p *Policy) Queues() string { return p.Part().Queues() }

// Generations returns the names of the policies that decide: default@3, or default@3+lab@1 if another policy serves its own queues.
func (p *Policy) Generations() string {
	out := []string{fmt.Sprintf("%s@%d", p.Name, p.Generation)}
	for _, part := range p.Joined() {
		name := fmt.Sprintf("%s@%d", part.Name, part.Generation)
		if part.PredicatesOnly {
			name = "predicates of " + name
		}
		out = append(out, name)
	}
	return strings.Join(out, "+")
}

// Joined returns the policies with their own queues that this policy contains.
func (p *Policy) Joined() []Part { return new(loader).parts(p.written) }

// Keys of a part that is only partly in force.
const (
	predicatesOnly = "predicatesOnly"
	ofAll          = "ofAll"
)

// Any returns the part as a document of a joined policy contains it.
func (p Part) Any() any {
	out := map[string]any{"metadata": map[string]any{"name": p.Name, "generation": p.Generation}, "spec": p.Spec.Any()}
	if p.PredicatesOnly {
		out[predicatesOnly] = true
	}
	if p.OfAll {
		out[ofAll] = true
	}
	return out
}

// Part is a policy with its own queues, as a part of another policy.
type Part struct {
	Name       string
	Generation int64
	Spec       source.Value
	// PredicatesOnly means that only its rows that decide where pods may run are in force. If such a row fails, it denies.
	PredicatesOnly bool
	// OfAll means that these rows also apply to pods of all queues without their own policy. They replace the predicates of the policy that
	// serves these queues.
	OfAll bool
}

// Part returns the policy as a Part.
func (p *Policy) Part() Part {
	return Part{Name: p.Name, Generation: p.Generation, Spec: p.written.Get("spec")}
}

// Queues returns the condition that selects the queues that the part serves.
func (p Part) Queues() string {
	text, _ := p.Spec.Get("queues").Any().(string)
	return text
}

// parts reads the parts of a document.
func (l *loader) parts(root source.Value) (out []Part) {
	for _, v := range l.items(root.Get(parts.Key)) {
		p := Part{Name: l.name(v.Get("metadata")), Spec: v.Get("spec")}
		if g := v.Get("metadata").Get("generation"); g.Exists() {
			p.Generation = g.Int(&l.issues)
		}
		if only := v.Get(predicatesOnly); only.Exists() {
			p.PredicatesOnly = only.Bool(&l.issues)
		}
		if all := v.Get(ofAll); all.Exists() {
			p.OfAll = all.Bool(&l.issues)
		}
		if slices.ContainsFunc(out, func(other Part) bool { return other.Name == p.Name }) {
			l.report(v.Issuef("", "two policies are called %q", p.Name))
		}
		out = append(out, p)
	}
	return out
}

// queues compiles the condition for the queues that the policy serves.
func (c *compiler) queues(spec source.Value) {
	if at := spec.Get("queues"); at.Exists() {
		c.scopeOf(&entry{at: at, table: &rules.Table{}}).compile(at.Text(&c.issues), []string{"queue"}, rules.Bool())
	}
}

// serving declares the field that contains the policy of a queue.
func (c *compiler) serving(root source.Value, all []Part) {
	var members []parts.Member
	for _, p := range all {
		if !p.OfAll {
			c.p.parts = append(c.p.parts, p.Name)
			members = append(members, parts.Member{
				Name: p.Name, Condition: p.Spec.Get("queues").String(&c.issues), PredicatesOnly: p.PredicatesOnly,
			})
		}
	}
	if c.joined = len(members) > 0; !c.joined {
		return
	}
	docs, issues := source.Parse("", parts.Table(members))
	c.issues = append(c.issues, issues...)
	for _, doc := range docs {
		c.table(&entry{
			name: "queuePolicies", at: root.Get(parts.Key), off: map[string]bool{},
			table: rules.ReadTable(doc.Root, "queuePolicies", c.shape, nil, &c.issues),
		})
	}
}

// join compiles the tables of a part after the existing ones. visible contains the fields that its tables see, without those of other
// parts.
func (c *compiler) join(p Part, visible *compiler) {
	from := len(c.p.Tiers)
	for _, tier := range c.tierNames(p.Spec.Get("tiers")) {
		c.p.Tiers = append(c.p.Tiers, p.Name+parts.Sign+tier)
	}
	own := &compiler{loader: c.loader, p: c.p, objects: maps.Clone(visible.objects), owners: maps.Clone(visible.owners)}
	entries := c.entries(p.Spec.Get("tiers"))
	for _, e := range entries {
		e.name, e.part, e.tier = p.Name+parts.Sign+e.name, p.Name, from+e.tier
		if p.OfAll {
			e.part = ""
		}
		if e.denies = p.PredicatesOnly; e.denies {
			e.switchOff(func(site string) bool { return !parts.Predicate(site) })
		}
		own.table(e)
	}
}

// switchOff switches off the sections of some sites.
func (e *entry) switchOff(some func(site string) bool) {
	for _, site := range Sites() {
		if some(site.Name) {
			e.off[site.Name] = true
		}
	}
}

// shared applies a share to a row. It returns false if the row has no share, because its site is used in one tier only and this is another
// tier.
func (s *TableScope) shared(r *Rule, share *parts.Share) bool {
	r.Veto = share.Veto
	if !parts.Single(r.Site.Name) {
		return true
	}
	for _, other := range s.p.rules[r.Site.Name] {
		if of, _, _ := parts.Of(other.Table); of == s.entry.part && s.singles[of] != r.Tier {
			return false
		}
	}
	s.singles[s.entry.part], r.Tier = r.Tier, 0
	return true
}
