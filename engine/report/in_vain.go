package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// InVain counts why nobody goes for a task, by node, or for a gang, by pod. The zero value has counted nothing.
type InVain struct{ counts []inVain }

// inVain is one kind of them. The text has a place for the row.
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

// Reset forgets what was counted.
func (v *InVain) Reset() { v.counts = v.counts[:0] }

// TakenBack is a node where of those who could go somebody would take the room back.
func (v *InVain) TakenBack() {
	v.add(1, "node(s) where those who could go would take the room back", "builtin", "stable")
}

// TooLittle is a node where there were too little room if all went who are asked about.
func (v *InVain) TooLittle() {
	v.add(1, "node(s) with too little room even if all went who may be asked to", "builtin", "fit")
}

// Kept is a node where too few may go, as a row keeps the first of the others; without a row it is that none of a site lets it.
func (v *InVain) Kept(site, table, rule string) {
	if rule == "" {
		v.add(1, "node(s) where too few may go, as no row of %s lets others", "", site)
		return
	}
	v.add(1, "node(s) where too few may go, as %s keeps others", table, rule)
}

// StillRefused is a node that is refused though all go who may.
func (v *InVain) StillRefused(why model.Reason) {
	v.add(1, "node(s) that %s refuses even if all go who may", why.Table, why.Rule)
}

// OfMates is a node where room was made, with which what the job was promised before would be taken from it.
func (v *InVain) OfMates() {
	v.add(1, "node(s) where with this room others would take back what its job was promised before", "builtin", "stable")
}

// OnlyTogether is a node where the rows let those go who would have to, but not without others.
func (v *InVain) OnlyTogether() {
	v.add(1, "node(s) where those who are needed may go only with others", "builtin", "legal")
}

// NoVolumes is a node where room is made, and the task's volumes cannot be bound.
func (v *InVain) NoVolumes() {
	v.add(1, "node(s) where its volumes cannot be bound", "builtin", "volumes")
}

// PodsTakenBack are pods that would take the room of a gang back.
func (v *InVain) PodsTakenBack(n int) {
	v.add(n, "pod(s) that would take the room back", "builtin", "stable")
}

// PodsNotSpared are pods that their gangs cannot spare, and that do not go as a whole.
func (v *InVain) PodsNotSpared(n int) {
	v.add(n, "pod(s) that their gangs cannot spare", "builtin", "gang")
}

// PodsKept are pods that may not go, the first of them by a row; without a row it is that none of a site lets them.
func (v *InVain) PodsKept(n int, site, table, rule string) {
	if rule == "" {
		v.add(n, "pod(s) that no row of %s lets go", "", site)
		return
	}
	v.add(n, "pod(s) that may not go, the first by %s", table, rule)
}

// PodsTooFew are pods that may go, and would not leave room enough.
func (v *InVain) PodsTooFew(n int) {
	v.add(n, "pod(s) that may go, and leave too little room", "builtin", "fit")
}

// PodsOnlyTogether are pods that would have to go, and may only go with others.
func (v *InVain) PodsOnlyTogether(n int) {
	v.add(n, "pod(s) that are needed, and may go only with others", "builtin", "legal")
}

// Told is what was counted, for the plan, the most first.
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
