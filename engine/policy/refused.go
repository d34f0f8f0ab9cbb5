package policy

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// refusals is how many nodes were refused for one reason.
type refusals struct {
	code  int   // a rule's number, notOffered, noDevices, or what misfitCode gives
	row   int32 // of the first of them in the nodes' order, where a rule refused them
	count int
}

// misfitCode stands for a dimension in which a request does not fit.
func misfitCode(dim int) int { return -100 - dim }

func (c *Class) reject() []model.NodeCount {
	var few [8]refusals
	all := c.misfits(c.refused(few[:0]))
	slices.SortFunc(all, func(a, b refusals) int {
		return cmp.Or(b.count-a.count, cmp.Compare(c.rank(a.code), c.rank(b.code)), strings.Compare(c.builtin(a.code), c.builtin(b.code)))
	})
	out := slices.Grow([]model.NodeCount(nil), len(all))
	for _, r := range all {
		out = c.rejection(out, r)
	}
	return out
}

// refused counts the nodes by their verdicts, and lists those that no row refuses.
func (c *Class) refused(all []refusals) (counted []refusals, passed []int32) {
	passed = c.touched[:0]
	last := -1
	for _, row := range c.s.c.Nodes.ByOrder() {
		code := int(c.at[row].verdict)
		if code == 0 {
			passed = append(passed, row)
			continue
		}
		if last < 0 || all[last].code != code {
			if last = slices.IndexFunc(all, func(r refusals) bool { return r.code == code }); last < 0 {
				last, all = len(all), append(all, refusals{code: code, row: row})
			}
		}
		all[last].count++
	}
	c.touched = passed
	return all, passed
}

// misfits counts nodes by the first dimension in which the request does not fit, in the order in which people are shown them.
func (c *Class) misfits(all []refusals, rows []int32) []refusals {
	n := &c.s.c.Nodes
	for _, dim := range n.Dims() {
		if !c.task.InitRequest.Has(dim) {
			continue
		}
		want, fit := c.task.InitRequest[dim], rows[:0]
		for _, row := range rows {
			if !(want > n.FutureIdle(dim, row)+model.Slack) {
				fit = append(fit, row)
			}
		}
		if count := len(rows) - len(fit); count > 0 {
			all = append(all, refusals{code: misfitCode(dim), count: count})
		}
		rows = fit
	}
	return all
}

// rank orders what rejected equally many nodes: rows in their order, then what is built in.
func (c *Class) rank(code int) int {
	if code > 0 {
		return code
	}
	return math.MaxInt
}

// builtin words a rejection that no row made.
func (c *Class) builtin(code int) string {
	switch {
	case code == notOffered:
		return "node(s) were not ready"
	case code == noDevices:
		return "node(s) had too few free devices"
	case code <= -100:
		return "Insufficient " + c.s.c.Dims.Name(-100-code)
	}
	return ""
}

// rejection appends what one reason rejected, in words.
func (c *Class) rejection(out []model.NodeCount, r refusals) []model.NodeCount {
	told := model.NodeCount{Table: "builtin", Text: c.builtin(r.code), Count: r.count}
	switch {
	case r.code == notOffered:
		told.Rule = "ready-node"
	case r.code == noDevices:
		told.Rule = "devices"
	case r.code <= -100:
		told.Rule = "fit"
		if dim := -100 - r.code; c.task.InitRequest[dim] > c.s.largest(dim)+model.Slack {
			told.Text += " (" + c.s.never(c.task, dim) + ")"
		}
	default:
		return c.byText(out, c.s.p.all[r.code-1], r)
	}
	return append(out, told)
}

// Of a row whose message tells of the node, so many different texts are told, each with its count, and so many nodes are looked at
// for them. Where there are more, and where each of them names its node, the first stands for all.
const (
	mostTexts    = 3
	mostRendered = 128
)

// byText appends what a row says of the nodes that it rejected.
func (c *Class) byText(out []model.NodeCount, r *Rule, of refusals) []model.NodeCount {
	f := c.s.frame().OfTask(c.task)
	defer c.s.done()
	say := func(row int32) model.NodeCount {
		f.Point(row)
		return model.NodeCount{Table: r.Table, Rule: r.Name, Text: c.s.text(r, f), Count: 1}
	}
	named := func(n model.NodeCount, row int32) bool { return strings.Contains(n.Text, c.s.c.Nodes.Rows[row].Name) }
	first := say(of.row)
	first.Example = r.Message != nil && r.Message.OfNode && named(first, of.row)
	if of.count == 1 || r.Message == nil || !r.Message.OfNode {
		first.Count = of.count
		return append(out, first)
	}
	begin, rendered, allNamed := len(out), 0, true
	for _, row := range c.s.c.Nodes.ByOrder() {
		if int(c.at[row].verdict) != of.code {
			continue
		}
		told := say(row)
		allNamed = allNamed && named(told, row)
		at := slices.IndexFunc(out[begin:], func(n model.NodeCount) bool { return n.Text == told.Text })
		switch rendered++; {
		case rendered > mostRendered, at < 0 && len(out)-begin == mostTexts:
			first.Count, first.Example = of.count, true
			return append(out[:begin], first)
		case at >= 0:
			out[begin+at].Count++
		default:
			out = append(out, told)
		}
	}
	if allNamed {
		first.Count = of.count
		return append(out[:begin], first)
	}
	slices.SortStableFunc(out[begin:], func(a, b model.NodeCount) int { return b.Count - a.Count })
	return out
}
