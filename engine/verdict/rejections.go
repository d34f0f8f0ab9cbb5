package verdict

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// refusals counts the nodes that were rejected for one reason.
type refusals struct {
	code  int // the number of a rule, notOffered, noDevices, or a misfitCode
	count int
	told  model.NodeCount // if no rule rejected them
}

// rejections states why no node was chosen.
type rejections struct {
	c      *Class
	counts []model.NodeCount
	at     uint64 // position in the log, plus 1
	// number changes whenever counts changes or belongs to another class.
	number uint64
	// nodes states by row why a node was rejected. tells states that counts depends on more than nodes and their objects.
	nodes []refusedNode
	tells bool
	sizes uint64 // of the nodes, for which counts was computed
}

// refusedNode states why one node was rejected, 0 if it was not, and the version of its object, as far as it is compared.
type refusedNode struct {
	code   int16
	object uint32
}

// Rejections counts, over all nodes, which row rejected them, most nodes first.
func (c *Class) Rejections() []model.NodeCount {
	x, plan := &c.rejections, c.v.Plan
	at := c.v.nodes.Log.Next() + 1
	if x.at == at && !plan.single && !plan.telling {
		return x.counts
	}
	if !x.stay(func(row int32) int { return int(c.Cells[row].Verdict) }) {
		x.nodes, x.tells, x.sizes = slab.Resized(x.nodes, len(c.Cells)), false, c.v.sizes()
		if len(x.nodes) > len(c.v.nodes.ByOrder()) {
			for row := range x.nodes {
				x.nodes[row] = refusedNode{noNode, uint32(c.v.nodes.Object[row])}
			}
		}
		if counts := x.find(); x.number == 0 || !slices.Equal(counts, x.counts) {
			c.v.Classes.refusals++
			x.counts, x.number = counts, c.v.Classes.refusals
		}
	}
	x.at = at
	return x.counts
}

// stay reports whether all changed nodes are rejected as before, so that the counts stay the same. verdict returns the present verdict of
// the class on a row.
func (x *rejections) stay(verdict func(row int32) int) bool {
	c := x.c
	rows, known := c.v.changedSince(x.at)
	if !known || x.tells || !c.toldByNodes() || len(x.nodes) != len(c.Cells) || x.sizes != c.v.sizes() {
		return false
	}
	return !slices.ContainsFunc(rows, func(row int32) bool {
		if int(row) >= len(x.nodes) {
			return true // the node was added since
		}
		code := verdict(row)
		if code == 0 {
			if dim := c.misfitLater(row); dim >= 0 {
				code = misfitCode(dim)
			}
		}
		n, was := c.v.nodes, x.nodes[row]
		// The message of a row may change with the object of the node, although the row still rejects it.
		return code == 0 || code != int(was.code) || n.Rows[row] == nil || code > 0 && uint32(n.Object[row]) != was.object
	})
}

// toldByNodes reports whether the results of the class for a node change only with the node.
func (c *Class) toldByNodes() bool {
	plan := c.v.Plan
	return !plan.single && !plan.telling && !plan.volatile && c.domains.context == nil && !c.oneTask
}

// forget forces a new count, because something changed that does not belong to a single node.
func (x *rejections) forget() { x.at, x.number, x.nodes = 0, 0, x.nodes[:0] }

// misfitCode returns the code of a dimension in which a request does not fit.
func misfitCode(dim int) int { return -100 - dim }

func (x *rejections) find() []model.NodeCount {
	var few [8]refusals
	all := x.refused(few[:0])
	for i := range all {
		if all[i].code <= 0 {
			all[i].told = x.builtin(all[i].code)
		}
	}
	slices.SortFunc(all, func(a, b refusals) int {
		return cmp.Or(b.count-a.count, cmp.Compare(rankOf(a.code), rankOf(b.code)), strings.Compare(a.told.Text, b.told.Text))
	})
	out := slices.Grow([]model.NodeCount(nil), len(all))
	for _, r := range all {
		x.tells = x.tells || r.code == noDevices
		if r.code > 0 {
			rule := x.c.v.policy.All[r.code-1]
			x.tells = x.tells || tellsOfNode(rule) || !rule.Rests.Static
			out = append(out, x.byText(rule, r)...)
			continue
		}
		r.told.Count = r.count
		out = append(out, r.told)
	}
	return out
}

// refused counts the nodes by the reason of their rejection: their verdict, or the first dimension in which the request does not fit, in
// the order of output.
func (x *rejections) refused(all []refusals) []refusals {
	n, last := x.c.v.nodes, -1
	for _, row := range n.ByOrder() {
		code := x.codeOf(row)
		if code == 0 {
			if dim := x.c.misfitLater(row); dim >= 0 {
				code = misfitCode(dim)
			}
		}
		x.nodes[row] = refusedNode{int16(code), uint32(n.Object[row])}
		if code == 0 {
			continue
		}
		if last < 0 || all[last].code != code {
			if last = slices.IndexFunc(all, func(r refusals) bool { return r.code == code }); last < 0 {
				last, all = len(all), append(all, refusals{code: code})
			}
		}
		all[last].count++
	}
	return all
}

// codeOf returns why a node is not chosen: its verdict, or the row of devicePredicates that leaves it too few devices.
func (x *rejections) codeOf(row int32) int {
	c := x.c
	code := int(c.Cells[row].Verdict)
	if code != noDevices || len(c.v.deviceRows()) == 0 {
		return code
	}
	f := c.v.ask.Frame().OfTask(c.Task)
	defer c.v.ask.Done()
	if r := c.v.rowOfDevices(c.Task, row, f); r != nil {
		return r.Number
	}
	return code
}

// Refuser returns the row of predicates that rejects a node; nil: none does.
func (c *Class) Refuser(row int32) *policy.Rule {
	if code := c.Cells[row].Verdict; code > 0 {
		return c.v.policy.All[code-1]
	}
	return nil
}

// rankOf orders reasons that rejected equally many nodes: rows in their order, then the built-in reasons.
func rankOf(code int) int {
	if code > 0 {
		return code
	}
	return math.MaxInt
}

// builtin returns the text of a built-in rejection.
func (x *rejections) builtin(code int) model.NodeCount {
	switch {
	case code == notOffered:
		return report.NotReady()
	case code == noDevices:
		return report.TooFewDevices()
	case code <= -100:
		dim := -100 - code
		return report.Insufficient(x.c.v.c.Dims.Name(dim), x.c.v.misfit(x.c.Task, dim))
	}
	return model.NodeCount{}
}

// byText returns the messages of a row for the nodes that it rejected.
func (x *rejections) byText(r *policy.Rule, of refusals) []model.NodeCount {
	c, ask := x.c, x.c.v.ask
	f := ask.Frame().OfTask(c.Task)
	defer ask.Done()
	rejected := func(yield func(int32) bool) {
		for _, row := range c.v.nodes.ByOrder() {
			if x.codeOf(row) == of.code && !yield(row) {
				return
			}
		}
	}
	return report.ByText(of.count, rejected, tellsOfNode(r), c.v.nodes, func(row int32) model.NodeCount {
		f.Point(row)
		if r.Site.Name == policy.DevicePredicates {
			c.v.rowOfDevices(c.Task, row, f)
		}
		return model.NodeCount{Table: r.Table, Rule: r.Name, Text: ask.Text(r, f), Everywhere: r.Everywhere()}
	})
}

// tellsOfNode reports whether the message of a row depends on the node.
func tellsOfNode(r *policy.Rule) bool { return r.Message != nil && r.Message.OfNode }
