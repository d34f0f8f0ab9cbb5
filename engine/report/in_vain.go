package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// InVain counts why no pod is evicted: for a task by node, or for a gang by pod. The zero value is empty.
type InVain struct{ counts []inVain }

// inVain is the count for one reason. The text contains a placeholder for the row.
type inVain struct {
	text, table, rule string
	count             int
}

func (v *InVain) add(n int, text, table, rule string) {
	if n == 0 {
		return
	}
	i := slices.IndexFunc(v.counts, func(c inVain) bool { return c.text == text && c.table == table && c.rule == rule })
	if i < 0 {
		i, v.counts = len(v.counts), append(v.counts, inVain{text: text, table: table, rule: rule})
	}
	v.counts[i].count += n
}

// Reset sets all counts to zero.
func (v *InVain) Reset() { v.counts = v.counts[:0] }

// TakenBack counts a node where some candidate victim would take the resources back.
func (v *InVain) TakenBack() {
	v.add(1, "node(s) where those who could go would take the room back", "builtin", "stable")
}

// TooLittle counts a node that would have too few free resources even if all candidates were evicted.
func (v *InVain) TooLittle() {
	v.add(1, "node(s) with too little room even if all went who may be asked to", "builtin", "fit")
}

// Kept counts a node where too few tasks may be evicted, because a row protects the first of the others. Without a row, no row of a site
// allows it.
func (v *InVain) Kept(site, table, rule string) {
	if rule == "" {
		v.add(1, "node(s) where too few may go, as no row of %s lets others", "", site)
		return
	}
	v.add(1, "node(s) where too few may go, as %s keeps others", table, rule)
}

// StillRefused counts a node that is rejected even if all tasks are evicted that may be.
func (v *InVain) StillRefused(why model.Reason) {
	v.add(1, "node(s) that %s refuses even if all go who may", why.Table, why.Rule)
}

// OfMates counts a node where resources can be freed, but earlier promises to the job would then be lost.
func (v *InVain) OfMates() {
	v.add(1, "node(s) where with this room others would take back what its job was promised before", "builtin", "stable")
}

// OnlyTogether counts a node where the rows allow the necessary evictions only together with others.
func (v *InVain) OnlyTogether() {
	v.add(1, "node(s) where those who are needed may go only with others", "builtin", "legal")
}

// NoVolumes counts a node where resources can be freed, but the task's volumes cannot be bound.
func (v *InVain) NoVolumes() {
	v.add(1, "node(s) where its volumes cannot be bound", "builtin", "volumes")
}

// PodsTakenBack counts pods that would take the resources of a gang back.
func (v *InVain) PodsTakenBack(n int) {
	v.add(n, "pod(s) that would take the room back", "builtin", "stable")
}

// PodsNotSpared counts pods that their gangs need, and whose gangs are not evicted as a whole.
func (v *InVain) PodsNotSpared(n int) {
	v.add(n, "pod(s) that their gangs cannot spare", "builtin", "gang")
}

// PodsKept counts pods that may not be evicted, the first of them because of a row. Without a row, no row of a site allows it.
func (v *InVain) PodsKept(n int, site, table, rule string) {
	if rule == "" {
		v.add(n, "pod(s) that no row of %s lets go", "", site)
		return
	}
	v.add(n, "pod(s) that may not go, the first by %s", table, rule)
}

// PodsTooFew counts pods that may be evicted, but would free too few resources.
func (v *InVain) PodsTooFew(n int) {
	v.add(n, "pod(s) that may go, and leave too little room", "builtin", "fit")
}

// PodsOnlyTogether counts pods that are necessary victims, but may only be evicted together with others.
func (v *InVain) PodsOnlyTogether(n int) {
	v.add(n, "pod(s) that are needed, and may go only with others", "builtin", "legal")
}

// Told returns the counts for the plan, the largest first.
func (v *InVain) Told(action, scope string) model.InVain {
	out := model.InVain{Action: action, Scope: scope}
	for _, c := range v.counts {
		n := model.NodeCount{Table: c.table, Rule: c.rule, Count: c.count, Text: c.text}
		if strings.Contains(c.text, "%s") {
			n.Text = fmt.Sprintf(c.text, model.RowName(c.table, c.rule))
		}
		out.Nodes = append(out.Nodes, n)
	}
	slices.SortFunc(out.Nodes, func(a, b model.NodeCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Table, b.Table), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Text, b.Text))
	})
	return out
}
