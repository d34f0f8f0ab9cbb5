package facts

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// QueueReads contains what the rows of a step read of a queue and of the cluster, if the values can be compared.
type QueueReads struct {
	// Near changes only with the queue, with Trees, and with the shares in Fills. Far may change with anything. Listed may too, but is read
	// from the elements of lists in Near: nothing is read if they are empty.
	Near, Far, Listed []rules.Read
	Trees             []*policy.QuotaTree
	Fills             []*policy.Account
	Cluster           []rules.Read
}

// QueueReadsOf returns the reads of a step. It returns nil if a job's outcome depends on more than the job, its queue, the cluster, and the
// verdicts of nodes about its tasks.
func QueueReadsOf(p *policy.Policy, step *policy.Step) *QueueReads {
	if !step.Verb.Alone {
		return nil
	}
	return queueReads(p, step.AsksOf(p, func(site string) bool { return !ofNodeSites(site) && step.Heeds(site) }))
}

// QueueOrderReads returns the reads of the rows of queueOrder; nil if keys depend on more.
func QueueOrderReads(p *policy.Policy) *QueueReads {
	var exprs []*eval.Expr
	for _, r := range p.Rules(policy.QueueOrder) {
		exprs = append(exprs, r.Asked()...)
	}
	return queueReads(p, exprs)
}

func queueReads(p *policy.Policy, exprs []*eval.Expr) *QueueReads {
	out := &QueueReads{}
	for _, e := range exprs {
		for _, read := range e.Reads.All {
			if !out.add(p, read) {
				return nil
			}
		}
	}
	return out
}

// ofNodeSites reports whether a site evaluates nodes.
func ofNodeSites(site string) bool {
	return slices.Contains([]string{policy.Predicates, policy.Scores, policy.DevicePredicates, policy.DeviceScores}, site)
}

// add adds one read if it is of a queue or of the cluster; false: it is of something else that may change.
func (out *QueueReads) add(p *policy.Policy, read rules.Read) bool {
	read, told := fromQueue(p, read)
	if !told || read.Root == "" || policy.OfMembers(read) {
		return told // the function's value covers its reads of members
	}
	x := p.Computed(policy.LastOf(read))
	if x != nil && spelled(x) {
		return !x.Expr.Timely()
	}
	if read.Key == "" && !comparedByText(read.Type) && (x == nil || x.Tree == nil) { // lists of queues of a tree are compared, too
		return false
	}
	if read.Root == "cluster" {
		out.Cluster = append(out.Cluster, read)
	} else {
		out.addOfQueue(p, read, x)
	}
	return true
}

// addOfQueue adds a read of a queue to Near, Listed or Far, depending on which changes can alter the value. It also adds the quota trees
// and accounts that the value depends on. x is the computed field at the end of the read, or nil if the read ends at a field of the
// language.
func (out *QueueReads) addOfQueue(p *policy.Policy, read rules.Read, x *policy.Attribute) {
	switch {
	case nearQueue(p, read):
		out.Near, out.Trees = append(out.Near, read), treesOnWay(p, out.Trees, read)
	case x != nil && len(read.Steps) == 1 && fills(x.Account):
		out.Near = append(out.Near, read)
		if !slices.Contains(out.Fills, x.Account) {
			out.Fills = append(out.Fills, x.Account)
		}
	case read.Steps[0].Each && nearQueue(p, rules.Read{Root: read.Root, Steps: read.Steps[:1]}):
		out.Listed, out.Trees = append(out.Listed, read), treesOnWay(p, out.Trees, read)
	default:
		out.Far = append(out.Far, read)
	}
}

// fills reports whether an account divides something among queues, and tracks the changes of each queue's share.
func fills(x *policy.Account) bool { return x != nil && x.Function.AllAtOnce }

// settles reports whether a computed field keeps its first value, for a cycle or permanently.
func settles(x *policy.Attribute) bool { return x.Settle == "cycle" || x.Settle == "start" }

// spelled reports whether the reads of a computed field's expression determine its value. These reads are listed as well.
func spelled(x *policy.Attribute) bool { return x.Account == nil && !settles(x) }

// ofItself reports whether the job alone determines a computed field of the job or of its tasks, at any time.
func ofItself(x *policy.Attribute) bool {
	if spelled(x) {
		return !x.Expr.Timely()
	}
	return x.Account != nil && x.Account.Function.OfMembers && !settles(x) && !x.ByTime
}

// comparedByText reports whether values of a type are equal if and only if their encodings are equal.
func comparedByText(t *cel.Type) bool {
	switch t.Kind() {
	case types.ListKind, types.MapKind:
		return !slices.ContainsFunc(t.Parameters(), func(of *cel.Type) bool { return !comparedByText(of) })
	default:
		return policy.Encodable(t)
	}
}

// fromQueue converts a read from a job or a task that leads to its queue to a read from the queue. seen has no root if the job itself
// determines the value. It returns false if neither is the case.
func fromQueue(p *policy.Policy, read rules.Read) (seen rules.Read, told bool) {
	switch read.Root {
	case "queue", "cluster":
		return read, len(read.Steps) > 0
	case "now":
		return rules.Read{}, !read.Through || read.Told // an expression that reads only the time is compared as a whole
	case "task", "job":
	default:
		return rules.Read{}, slices.Contains([]string{"action", "pipeline", "params", "request"}, read.Root)
	}
	for i, step := range read.Steps {
		m, last := step.Member, i == len(read.Steps)-1
		switch x := p.Computed(m); {
		case x != nil:
			return rules.Read{}, last && ofItself(x)
		case m.Get == nil:
			return rules.Read{}, true
		case m.Origin.Any(language.ToQueue):
			read.Root, read.Steps = "queue", read.Steps[i+1:]
			return read, len(read.Steps) > 0
		case !m.Origin.Within(language.FromOwn | language.ToJob | language.FromAnswers):
			return rules.Read{}, false
		}
	}
	return rules.Read{}, true
}

// nearQueue reports whether a read from a queue changes only with the queue and with the trees on its path.
func nearQueue(p *policy.Policy, read rules.Read) bool {
	return p.Reach(read, "queue") != policy.BeyondIt && !slices.ContainsFunc(read.Steps, func(step rules.Step) bool {
		x := p.Computed(step.Member)
		own := x == nil || x.Tree != nil || x.Account != nil && x.Account.Function.OfMembers
		return !own || x != nil && (x.Reach == policy.BeyondIt || settles(x) || x.ByTime)
	})
}

// Lasting reports whether a read stays valid over cycles. A read of a queue does while the queue is unchanged and its trees are not
// rebuilt. A read of the cluster does while its value is equal.
func Lasting(p *policy.Policy, read rules.Read) bool {
	switch x := p.Computed(policy.LastOf(read)); {
	case read.Root == "params", policy.OfMembers(read), read.Root == "cluster" && comparedByText(read.Type):
		return true
	case x != nil && spelled(x):
		return !x.Expr.Timely()
	}
	return len(read.Steps) > 0 && p.Reach(read, "queue") == policy.Within && nearQueue(p, read)
}

// treesOnWay adds the trees along which a read of a queue goes, or whose field it returns.
func treesOnWay(p *policy.Policy, trees []*policy.QuotaTree, read rules.Read) []*policy.QuotaTree {
	trees = p.TreesOf(trees, read)
	for _, step := range read.Steps {
		if x := p.Computed(step.Member); x != nil && x.Tree != nil && !slices.Contains(trees, x.Tree) {
			trees = append(trees, x.Tree)
		}
	}
	return trees
}
