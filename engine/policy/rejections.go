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

// rejections tell why no node was chosen from.
type rejections struct {
	c      *Class
	counts []model.NodeCount
	at     uint64 // of the log, plus 1
}

// Rejections counts, over all nodes, which row said no, most nodes first.
func (c *Class) Rejections() []model.NodeCount {
	x, plan := &c.rejections, c.v.plan
	if at := c.v.nodes.Log.Next() + 1; x.at != at || plan.single || plan.telling {
		x.counts, x.at = x.find(), at
	}
	return x.counts
}

// misfitCode stands for a dimension in which a request does not fit.
func misfitCode(dim int) int { return -100 - dim }

func (x *rejections) find() []model.NodeCount {
	var few [8]refusals
	all := x.misfits(x.refused(few[:0]))
	slices.SortFunc(all, func(a, b refusals) int {
		return cmp.Or(b.count-a.count, cmp.Compare(rankOf(a.code), rankOf(b.code)), strings.Compare(x.builtin(a.code), x.builtin(b.code)))
	})
	out := slices.Grow([]model.NodeCount(nil), len(all))
	for _, r := range all {
		out = x.words(out, r)
	}
	return out
}

// refused counts the nodes by their verdicts, and lists those that no row refuses.
func (x *rejections) refused(all []refusals) (counted []refusals, passed []int32) {
	c := x.c
	passed = c.touched[:0]
	last := -1
	for _, row := range c.v.nodes.ByOrder() {
		code := int(c.cells[row].verdict)
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
func (x *rejections) misfits(all []refusals, rows []int32) []refusals {
	n, c := x.c.v.nodes, x.c
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

// rankOf orders what rejected equally many nodes: rows in their order, then what is built in.
func rankOf(code int) int {
	if code > 0 {
		return code
	}
	return math.MaxInt
}

// builtin words a rejection that no row made.
func (x *rejections) builtin(code int) string {
	switch {
	case code == notOffered:
		return "node(s) were not ready"
	case code == noDevices:
		return "node(s) had too few free devices"
	case code <= -100:
		return "Insufficient " + x.c.v.dims.Name(-100-code)
	}
	return ""
}

// words appends what one reason rejected, in words.
func (x *rejections) words(out []model.NodeCount, r refusals) []model.NodeCount {
	told := model.NodeCount{Table: "builtin", Text: x.builtin(r.code), Count: r.count}
	switch {
	case r.code == notOffered:
		told.Rule = "ready-node"
	case r.code == noDevices:
		told.Rule = "devices"
	case r.code <= -100:
		told.Rule = "fit"
		if never := x.c.v.about.misfit(x.c.task, -100-r.code); never != "" {
			told.Text += " (" + never + ")"
		}
	default:
		return x.byText(out, x.c.v.rules[r.code-1], r)
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
func (x *rejections) byText(out []model.NodeCount, r *Rule, of refusals) []model.NodeCount {
	c, ask := x.c, x.c.v.ask
	f := ask.frame().OfTask(c.task)
	defer ask.done()
	say := func(row int32) model.NodeCount {
		f.Point(row)
		return model.NodeCount{Table: r.Table, Rule: r.Name, Text: ask.text(r, f), Count: 1}
	}
	named := func(n model.NodeCount, row int32) bool { return strings.Contains(n.Text, c.v.nodes.Rows[row].Name) }
	first := say(of.row)
	first.Example = r.Message != nil && r.Message.OfNode && named(first, of.row)
	if of.count == 1 || r.Message == nil || !r.Message.OfNode {
		first.Count = of.count
		return append(out, first)
	}
	begin, rendered, allNamed := len(out), 0, true
	for _, row := range c.v.nodes.ByOrder() {
		if int(c.cells[row].verdict) != of.code {
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
