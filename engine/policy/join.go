package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/policy/parts"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Policies of queues stand beside the policy of all others in one Policy: each row is asked only about what is of its own queues. That is
// a condition before its when, which reads a computed field of the queue that tells who serves it. So nothing that decides knows of it.
const (
	// partsKey is where a policy that was joined has those of queues.
	partsKey = "queuePolicies"
)

// Queues is the condition for a queue to be served by this policy, where it stands beside that of all others; "": it names none.
func (p *Policy) Queues() string {
	text, _ := p.written.Get("spec").Get("queues").Any().(string)
	return text
}

// Join puts policies of queues beside the one of all others. Of two that name a queue the first serves it. The issues say why they cannot
// stand beside each other; there is no Policy then.
func Join(base *Policy, ofQueues ...*Policy) (*Policy, source.Issues) {
	if len(ofQueues) == 0 {
		return base, nil
	}
	object, _ := base.written.Any().(map[string]any)
	object = maps.Clone(object)
	var others []any
	for _, p := range ofQueues {
		if p.Queues() == "" {
			return nil, source.Issues{{Path: "spec.queues", Message: "policy " + p.Name + " names no queues"}}
		}
		others = append(others, map[string]any{"metadata": map[string]any{"name": p.Name}, "spec": p.written.Get("spec").Any()})
	}
	object[partsKey] = others
	data, err := json.Marshal(object)
	if err != nil {
		return nil, source.Issues{{Message: fmt.Sprintf("policy %s: %v", base.Name, err)}}
	}
	joined, issues := LoadStored(data)
	if joined != nil {
		joined.Name, joined.Generation, joined.Mode = base.Name, base.Generation, base.Mode
	}
	return joined, issues
}

// joining is a policy of queues on its way into a joined one.
type joining struct {
	name string
	spec source.Value
}

// joinings reads those that a document holds.
func (l *loader) joinings(root source.Value) (out []joining) {
	for _, v := range l.items(root.Get(partsKey)) {
		p := joining{l.name(v.Get("metadata")), v.Get("spec")}
		if slices.ContainsFunc(out, func(other joining) bool { return other.name == p.name }) {
			l.report(v.Issuef("", "two policies are called %q", p.name))
		}
		out = append(out, p)
	}
	return out
}

// queues compiles the condition for a queue to be served by the policy.
func (c *compiler) queues(spec source.Value) {
	if at := spec.Get("queues"); at.Exists() {
		c.scopeOf(&entry{at: at, table: &rules.Table{}}).compile(at.Text(&c.issues), []string{"queue"}, rules.Bool())
	}
}

// serving declares the field that tells who serves a queue.
func (c *compiler) serving(root source.Value, all []joining) {
	var names, texts []string
	for _, p := range all {
		names, texts = append(names, p.name), append(texts, p.spec.Get("queues").String(&c.issues))
	}
	docs, issues := source.Parse("", parts.Table(names, texts))
	c.issues = append(c.issues, issues...)
	for _, doc := range docs {
		c.table(&entry{
			name: "queuePolicies", at: root.Get(partsKey), off: map[string]bool{},
			table: rules.ReadTable(doc.Root, "queuePolicies", c.shape, nil, &c.issues),
		})
	}
}

// join compiles the tables of a policy of queues, behind those that are there. visible is what the tables of the others do not add to.
func (c *compiler) join(p joining, visible *compiler) {
	from := len(c.p.Tiers)
	for _, tier := range c.tierNames(p.spec.Get("tiers")) {
		c.p.Tiers = append(c.p.Tiers, p.name+parts.Sign+tier)
	}
	own := &compiler{loader: c.loader, p: c.p, objects: maps.Clone(visible.objects), owners: maps.Clone(visible.owners)}
	entries := c.entries(p.spec.Get("tiers"))
	for _, e := range entries {
		e.name, e.part, e.tier = p.name+parts.Sign+e.name, p.name, from+e.tier
		own.table(e)
	}
}

// shared has a row be what its share makes of it; false: it has none after all, as a site that is asked in one tier only is asked in
// another.
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
