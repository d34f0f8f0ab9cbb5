package proof

import (
	"cmp"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/numa"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/answers"
)

// victim is a task that is evicted, with its eviction in the plan.
type victim struct {
	task  *model.Task
	evict model.Evict
	place int // the position in the plan
}

// promise is the promise of a node to a task, with its victims.
type promise struct {
	task    *model.Task
	bind    model.Bind
	row     int32
	victims []victim
	action  string
	step    *policy.Step // the step that made it; nil: no step with displace
	place   int          // the position of the step in the pipeline
}

// promises returns the promises of a plan, in the order in which they were made, with the victims of each.
func (x *Cycle) promises(plan *model.Plan, victims []victim) (out []*promise) {
	taken := map[*model.Task]bool{}
	for _, b := range plan.Pipelines {
		t, row := x.c.Tasks[b.Task], x.row(b.Node)
		if t == nil || row == model.NoNode || t.Status != model.Pending || taken[t] {
			x.violated(Fit, b.Task, "", "it is not a pod that waits and can be promised node %s", b.Node)
			continue
		}
		taken[t] = true
		out = append(out, &promise{task: t, bind: b, row: row, action: b.Action})
	}
	for _, v := range victims {
		at := slices.IndexFunc(out, func(p *promise) bool { return p.task.Key == v.evict.For })
		switch {
		case v.evict.For == "":
			x.violated(Certificate, "", v.task.Key, "the plan does not say for whom")
			continue
		case at < 0:
			x.violated(Certificate, v.evict.For, v.task.Key, "that is not promised anything")
			continue
		}
		p := out[at]
		if p.bind.Node != v.task.NodeName && !x.takesGangs(v.evict.Action) || p.task.Job.Key != v.evict.ForJob {
			x.violated(Certificate, v.evict.For, v.task.Key, "that is a pod of %s, and promised node %s", p.task.Job.Key, p.bind.Node)
		}
		p.victims = append(p.victims, v)
		p.action = p.victims[0].evict.Action // a later step may have made the same promise again
	}
	inOrder(plan, out)
	return out
}

// inOrder sorts promises in the order in which they were created. A promise that a later step repeated is at the position of its victims.
func inOrder(plan *model.Plan, all []*promise) {
	keys, last := map[*promise]int{}, -1
	for _, p := range all {
		keys[p] = last
		if len(p.victims) > 0 {
			keys[p] = slices.IndexFunc(plan.Evicts, func(e model.Evict) bool { return e.Task == p.victims[0].task.Key })
			if p.bind.Action == p.victims[0].evict.Action {
				last = keys[p]
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *promise) int { return cmp.Compare(keys[a], keys[b]) })
}

// steps returns the steps that can have made a promise: those of its action with displace, if all its victims are in their scope.
func (x *Cycle) steps(p *promise) (out []placed) {
	outside := func(s *policy.Step) bool {
		return slices.ContainsFunc(p.victims, func(v victim) bool { return !inScope(s, p.task, v.task) })
	}
	n := 0
	for _, a := range x.p.Actions {
		for _, s := range a.Steps {
			n++
			if a.Name == p.action {
				p.place = n
			}
			if a.Name == p.action && s.Verb.Name == policy.Displace && !outside(s) {
				out = append(out, placed{s, n})
			}
		}
	}
	return out
}

// placed is a step with its position in the pipeline.
type placed struct {
	*policy.Step
	place int
}

// inScope reports whether a victim is in the scope of a step for a task.
func inScope(s *policy.Step, t, v *model.Task) bool {
	sameJob, sameQueue := t.Job == v.Job, t.Job.Queue == v.Job.Queue
	switch s.Word(policy.KeyScope) {
	case policy.ScopeJob:
		return sameJob
	case policy.ScopeQueue:
		return sameQueue && !sameJob
	}
	return !sameQueue
}

// checkPromises checks each promise, with all promises in place and all victims gone.
func (x *Cycle) checkPromises(all []*promise) {
	wrong := make([][]Violation, len(all))
	for i, p := range slices.Backward(all) {
		if x.stops() {
			return // what made the earlier promises is unknown
		}
		x.c.Handle(p.task)
		steps := x.steps(p)
		for n, s := range steps { // if several steps can have made it, take the one with the fewest violations
			was := *p
			p.step, p.place = s.Step, s.place
			if found := x.found(func() { x.byStep(all, i) }); n == 0 || len(found) < len(wrong[i]) {
				wrong[i] = found
			} else {
				*p = was
			}
		}
		if len(steps) == 0 && len(p.victims) > 0 {
			wrong[i] = []Violation{{Certificate, p.task.Key, "", "no step of action " + p.action + " makes room by such pods"}}
		}
	}
	for i, p := range all {
		x.wrong = append(x.wrong, wrong[i]...)
		switch {
		case p.step == nil || x.stops():
		case p.ofGang():
			x.checkGang(all, i, wrong[i])
		case len(p.victims) > 0:
			x.World().Run(p.action)
			found := x.found(func() { x.asOf(all, p.action, func() { x.permitted(p) }) })
			x.wrong = append(x.wrong, atEnd(wrong[i], found)...)
			for _, v := range p.victims {
				if !x.stops() {
					aftermath{x}.certified(all, p, v)
					x.needed(all, p, v)
					aftermath{x}.stable(all, i, v)
				}
			}
			aftermath{x}.idle(all, i)
		}
	}
}

// found returns the violations that some checks find.
func (x *Cycle) found(check func()) []Violation {
	before := x.wrong
	x.wrong = nil
	check()
	out := x.wrong
	x.wrong = before
	return out
}

// byStep checks what depends on the step that made a promise: that the task fits, and that its victims may be evicted, in the state of the
// promise.
func (x *Cycle) byStep(all []*promise, i int) {
	p := all[i]
	x.World().Run(p.action)
	x.fits(all, i)
	x.asOf(all[:i+1], p.action, func() {
		x.undo(all[i+1:], func(*promise) bool { return true })
		if p.ofGang() {
			x.certifiedGang(all[:i+1], x.need(all, i), false)
		} else {
			x.permitted(p)
		}
	})
}

// asOf calls do in the state at the end of an action. It undoes what later actions evicted, promised, bound and held.
func (x *Cycle) asOf(all []*promise, action string, do func()) {
	at := slices.Index(x.p.Pipeline, action)
	later := func(action string) bool { return slices.Index(x.p.Pipeline, action) > at }
	x.tried(func() {
		for _, p := range all {
			if later(p.action) {
				x.txn.Unplace(p.task)
				for _, v := range p.victims {
					x.giveBack(v)
				}
			}
		}
		x.undoPlaces(later)
		do()
	})
}

// atEnd returns the violations that were unknown before, and that exist only at the end. It leaves out violations of Progress and Row,
// which depend on the state before.
func atEnd(known, all []Violation) (out []Violation) {
	for _, v := range all {
		late := v
		late.Kind, late.Text = AtEnd, v.Text+" any more at the end of the action ("+string(v.Kind)+")"
		if v.Kind != Progress && v.Kind != Row && !slices.Contains(known, v) && !slices.Contains(known, late) {
			out = append(out, late)
		}
	}
	return out
}

// tried calls do, and undoes its changes.
func (x *Cycle) tried(do func()) {
	before := x.txn.Mark()
	do()
	x.txn.Rollback(before)
}

// refuses states why a task may not have a node with all victims gone; "": it may.
func (x *Cycle) refuses(p *promise, row int32) string {
	if why := x.gateRefuses(p); why != "" {
		return why
	}
	return x.nodeRefuses(p, row)
}

// gateRefuses evaluates the gate allocatable, if the step has it.
func (x *Cycle) gateRefuses(p *promise) string {
	if p.step == nil || !p.step.Heeds(policy.Allocatable) {
		return ""
	}
	if a := x.AllOf(x.p.RulesIn(p.step, policy.Allocatable), x.Frame().OfTask(p.task)); !a.Yes {
		return said(a)
	}
	return ""
}

func (x *Cycle) nodeRefuses(p *promise, row int32) string {
	if !x.c.Nodes.Rows[row].Ready {
		return "the node is not ready"
	}
	if why, refuses := x.RefusesLater(p.task, row); refuses {
		return why.Text
	}
	if _, err := x.World().Bindings(p.task, row); err != nil {
		return err.Error()
	}
	return ""
}

func said(a policy.Answer) string { return a.Rule.Table + "/" + a.Rule.Name + " says: " + a.Text }

// fits checks that a task fits the node that it is promised, and that its job would have what it needs to start. Promises of later steps do
// not count, because those steps may not have the gate.
func (x *Cycle) fits(all []*promise, i int) {
	p, kind := all[i], Fit
	if len(p.victims) == 0 {
		kind = Lost
	}
	if vote := x.Vote(policy.JobPipelined, x.Frame().OfJob(p.task.Job)); p.step.Word(policy.KeyCommit) == "job" && !vote.Yes {
		x.violated(Fit, p.task.Key, "", "its job would not start: %s", said(vote))
	}
	x.tried(func() {
		x.txn.Unplace(p.task)
		if a := x.All(policy.TaskFeasible, x.Frame().OfTask(p.task)); !a.Yes {
			x.violated(Fit, p.task.Key, "", "it can be placed nowhere: %s", said(a))
		}
		if why := x.nodeRefuses(p, p.row); why != "" {
			x.violated(kind, p.task.Key, "", "it does not fit node %s: %s", p.bind.Node, why)
			return
		}
		free := 0
		for _, gpu := range x.Rooms(p.task, p.row, true) {
			if slices.Contains(p.bind.GPUs, gpu.Index) {
				free++
			}
		}
		if free != len(p.bind.GPUs) {
			x.violated(Fit, p.task.Key, "", "not all of devices %v of node %s are free for it", p.bind.GPUs, p.bind.Node)
		}
		if cpus, _ := numa.Parse(p.bind.CPUs); !cpus.Without(model.FreeCPUs(&x.c.Nodes, p.row)).Empty() {
			x.violated(Fit, p.task.Key, "", "not all of the CPUs %s of node %s are free for it", p.bind.CPUs, p.bind.Node)
		}
	})
	x.asOf(nil, p.action, func() {
		x.undo(all, func(o *promise) bool { return o.place > p.place })
		x.txn.Unplace(p.task)
		if why := x.gateRefuses(p); why != "" {
			x.violated(Fit, p.task.Key, "", "it may not have node %s: %s", p.bind.Node, why)
		}
	})
}

// undo undoes some promises and their evictions. Promises of steps with place stay, because these may have made them again.
func (x *Cycle) undo(all []*promise, which func(*promise) bool) {
	for _, p := range all {
		if p.step != nil && which(p) {
			x.txn.Unplace(p.task)
			for _, v := range p.victims {
				x.giveBack(v)
			}
		}
	}
}

// legal checks again that the victims of a task may be evicted, as if they were the only candidates.
func (x *Cycle) legal(p *promise) {
	scope := p.step.Word(policy.KeyScope)
	x.tried(func() {
		beyond := measured{x}.beyond(p.task, p.victims)
		x.txn.Unplace(p.task)
		var tasks []*model.Task
		for _, v := range p.victims {
			x.giveBack(v)
			tasks = append(tasks, v.task)
		}
		measured{x}.due(p.step, p)
		for _, v := range p.victims {
			switch {
			case x.Condition(p.step.Condition(policy.KeyCandidates), x.Frame().OfVictim(p.task, v.task, scope), "") && !v.task.Spared.After(x.now):
			case p.task.BestEffort && !v.task.BestEffort:
				x.violated(BestEffort, p.task.Key, v.task.Key, "that asks for nothing, and the step is not about such victims")
			default:
				x.violated(Candidate, p.task.Key, v.task.Key, "the step is not about it")
			}
		}
		lets, _ := x.Victims(answers.Question{Site: p.step.Word(policy.KeyVictims), Scope: scope, For: p.task, Txn: x.txn}, tasks)
		letsOf := make([][]*policy.Rule, len(p.victims))
		for i, v := range p.victims {
			at := slices.IndexFunc(lets, func(l answers.Victim) bool { return l.Task == v.task })
			if at < 0 {
				x.violated(Legal, p.task.Key, v.task.Key, "the rows of %s do not let it", p.step.Word(policy.KeyVictims))
				continue
			}
			letsOf[i] = lets[at].Lets
			measured{x}.along(p.step, p.task, v, letsOf[i])
			for _, row := range v.evict.Rows {
				if !slices.ContainsFunc(letsOf[i], func(r *policy.Rule) bool { return r.Table+"/"+r.Name == row }) {
					x.violated(Row, p.task.Key, v.task.Key, "%s does not let it", row)
				}
			}
		}
		measured{x}.falls(p.step, p.task, p.victims, letsOf, beyond)
	})
}

func (x *Cycle) giveBack(v victim) { x.txn.Return(v.task, x.was(v.task)) }

// permitted checks which rows the plan names for the victims of a promise.
func (x *Cycle) permitted(p *promise) {
	if len(p.victims) > 0 {
		x.legal(p)
	}
	for _, v := range p.victims {
		if e := v.evict; len(e.Rows) == 0 || e.Reason.Table+"/"+e.Reason.Rule != e.Rows[0] {
			x.violated(Certificate, p.task.Key, v.task.Key, "the plan does not say by which rows, or by another one first")
		}
	}
}

// certified checks what the plan states about a victim: which promise would be rejected without its eviction, and why, at the end of the
// cycle.
func (x aftermath) certified(all []*promise, of *promise, v victim) {
	e, p := v.evict, of
	if e.NeededFor != "" {
		at := slices.IndexFunc(all, func(p *promise) bool { return p.task.Key == e.NeededFor })
		if at < 0 {
			x.violated(Certificate, of.task.Key, v.task.Key, "it is needed for %s, which is not promised anything", e.NeededFor)
			return
		}
		p = all[at]
	}
	x.tried(func() {
		x.txn.Unplace(p.task)
		x.giveBack(v)
		if e.Needed.Text == "" || !x.rowRefuses(p, e.Needed) {
			x.violated(Certificate, p.task.Key, v.task.Key, "were it spared, %q of %s would not refuse node %s",
				strings.Trim(e.Needed.Table+"/"+e.Needed.Rule, "/"), e.Needed.Site, p.bind.Node)
		}
	})
}

// rowRefuses reports whether the row of a reason rejects the node of a promise.
func (x *Cycle) rowRefuses(p *promise, why model.Reason) bool {
	if why.Table == "builtin" {
		switch short := func(dim int) bool {
			return p.task.Request.Has(dim) && p.task.Request[dim] > x.c.Nodes.FutureIdle(dim, p.row)+model.Slack
		}; why.Rule {
		case "fit":
			return slices.ContainsFunc(x.c.Nodes.Dims(), short)
		case "devices":
			return len(x.Rooms(p.task, p.row, true)) < int(p.task.GPUCount)
		}
		return false
	}
	rules, f := x.p.Predicates(), x.Frame().OfTask(p.task)
	switch why.Site {
	case policy.Allocatable:
		rules = x.p.Rules(policy.Allocatable)
	case policy.Predicates:
		f = f.OnNode(p.row)
	case policy.DevicePredicates:
		r, _ := x.RowOfDevices(p.task, p.row)
		return r != nil && r.Table == why.Table && r.Name == why.Rule
	default:
		return false
	}
	return slices.ContainsFunc(rules, func(r *policy.Rule) bool {
		return r.Table == why.Table && r.Name == why.Rule && x.Opinion(r, f) == language.No
	})
}

// again promises the task of a promise a node that accepts it.
func (x *Cycle) again(p *promise, row int32) {
	volumes, _ := x.World().Bindings(p.task, row)
	x.txn.Pipeline(p.task, row, x.Devices(p.task, answers.Choice{Row: row, Later: true}))
	x.txn.Reserve(p.task, volumes)
}

// needed checks that a victim is needed. Without its eviction, a promise on its node must fail, whichever devices each has, or a gate must
// reject any promise.
func (x *Cycle) needed(all []*promise, of *promise, v victim) {
	x.tried(func() {
		var there []*promise
		for _, p := range all {
			if p.row == of.row {
				there = append(there, p)
				x.txn.Unplace(p.task)
			}
		}
		x.giveBack(v)
		for _, p := range there {
			if x.refuses(p, p.row) != "" {
				return
			}
			x.again(p, p.row)
		}
		for _, p := range all {
			refuses := false
			x.tried(func() { // as if all other promises were already in place
				x.txn.Unplace(p.task)
				refuses = x.gateRefuses(p) != ""
			})
			if refuses {
				return
			}
		}
		x.violated(Needed, of.task.Key, v.task.Key, "all that is promised would be there without that")
	})
}

// idle checks that the task of a promise had no free place anywhere before its own victims and those of later promises were evicted. A task
// with an earlier promise may have moved to a place that these victims free. It would need another place too.
func (x aftermath) idle(all []*promise, i int) {
	p := all[i]
	x.tried(func() {
		x.undo(all[i:], func(*promise) bool { return true })
		var there, need []*promise
		for _, o := range all[:i] {
			if o.row == p.row && o.step != nil {
				there = append(there, o)
				x.txn.Unplace(o.task)
			}
		}
		for _, o := range there {
			if x.refuses(o, o.row) != "" {
				need = append(need, o)
			} else {
				x.again(o, o.row)
			}
		}
		if row, fit := x.firstFit(append(need, p)); fit {
			x.violated(Idle, p.task.Key, "", "it fits node %s, where nobody has to go for it", x.c.Nodes.Rows[row].Name)
		}
	})
}

// firstFit promises each task the first node that accepts it, as long as there is one. It returns the node of the last task.
func (x *Cycle) firstFit(need []*promise) (row int32, ok bool) {
	for _, p := range need {
		at := slices.IndexFunc(x.c.Nodes.ByOrder(), func(row int32) bool { return x.stops() || x.refuses(p, row) == "" })
		if at < 0 || x.cut {
			return 0, false
		}
		row = x.c.Nodes.ByOrder()[at]
		x.again(p, row)
	}
	return row, true
}
