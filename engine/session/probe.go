package session

import (
	"fmt"
	"math"
	"slices"

	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Subject is the input of a site. A site needs the parts that its rows see.
type Subject struct {
	Queue     *model.Queue
	Job       *model.Job
	Task      *model.Task
	Node      string
	Victim    *model.Task
	Preemptor *model.Task
	Request   model.Resources
	Scope     string
}

// Said is the answer of one row for a subject.
type Said struct {
	Rule *policy.Rule
	// Value is the answer as text: true, false, a number, a sort key; "no opinion" if the guard is false; "error: …".
	Value string
	// Text is the row's message, if it rejects and has one.
	Text string
}

// Ask evaluates each row of a site separately, without combining their answers.
func (s *Session) Ask(site string, on Subject) ([]Said, error) {
	where := policy.SiteNamed(site)
	if where == nil {
		var names []string
		for _, x := range policy.Sites() {
			names = append(names, x.Name)
		}
		return nil, fmt.Errorf("unknown site %q; %s", site, source.Suggest(site, names))
	}
	f := s.ask.Frame()
	defer s.ask.Done()
	if err := s.about(f, on); err != nil {
		return nil, err
	}
	for _, root := range where.Roots {
		if v, ok := f.ResolveName(root); !ok || v == types.NullValue && site != policy.VictimOrder {
			return nil, fmt.Errorf("site %s asks about %v: no %s is given", site, where.Roots, root)
		}
	}
	var out []Said
	for _, r := range s.p.Rules(site) {
		out = append(out, s.said(r, f))
	}
	return out, nil
}

// about sets the fields of a frame from a subject, and fields that follow from them.
func (s *Session) about(f *language.Frame, on Subject) error {
	if on.Node != "" {
		row, ok := s.c.Nodes.Index[on.Node]
		if !ok {
			return fmt.Errorf("there is no node %q", on.Node)
		}
		node := s.NodeView(row)
		f.Node = node
		if gpus := node.DevicesNow().Views; len(gpus) > 0 {
			f.GPU = gpus[0]
		}
	}
	switch {
	case on.Task != nil:
		f.OfTask(on.Task)
	case on.Job != nil:
		f.OfJob(on.Job)
	case on.Queue != nil:
		f.Queue = s.QueueView(on.Queue)
	}
	if on.Victim != nil {
		f.Victim, f.Preemptor = s.TaskView(on.Victim), types.NullValue
	}
	if on.Preemptor != nil {
		f.Preemptor = s.TaskView(on.Preemptor)
		f.OfJob(on.Preemptor.Job)
	}
	f.Request, f.Scope = s.Amounts(on.Request), types.String(on.Scope)
	return nil
}

func (s *Session) said(r *policy.Rule, f *language.Frame) Said {
	has, err := s.ask.Guard(r, f)
	if err == nil && !has {
		return Said{Rule: r, Value: "no opinion"}
	}
	v := err
	if v == nil {
		v = r.Expression.Eval(f)
	}
	if types.IsError(v) {
		return Said{Rule: r, Value: "error: " + fmt.Sprint(v)}
	}
	out := Said{Rule: r, Value: language.Text(v)}
	if v == types.Bool(r.Site.DenyIs) && r.Message != nil {
		out.Text = s.ask.Words(r.Message, f)
	}
	return out
}

// Before reports which of two objects comes first at an order site, and the row that decides; nil if only the final ties decide. Both
// subjects contain the objects that the site orders.
func (s *Session) Before(site string, a, b Subject) (first bool, by *policy.Rule, err error) {
	if !slices.Contains([]string{policy.QueueOrder, policy.JobOrder, policy.TaskOrder}, site) {
		return false, nil, fmt.Errorf("site %s orders nothing", site)
	}
	keys := func(on Subject) ([]language.Key, error) {
		f := s.ask.Frame()
		defer s.ask.Done()
		if err := s.about(f, on); err != nil {
			return nil, err
		}
		return s.keys(site, f, nil), nil
	}
	x, err := keys(a)
	if err != nil {
		return false, nil, err
	}
	y, err := keys(b)
	if err != nil {
		return false, nil, err
	}
	if site == policy.TaskOrder && policy.NeededFirst(a.Task, b.Task) != 0 {
		return policy.NeededFirst(a.Task, b.Task) < 0, nil, nil
	}
	for i, r := range s.p.Rules(site) {
		if c := r.Compare(&x[i], &y[i]); c != 0 {
			return c < 0, r, nil
		}
	}
	return s.tie(site, a, b), nil, nil
}

func (s *Session) tie(site string, a, b Subject) bool {
	switch site {
	case policy.QueueOrder:
		return policy.QueueAge(a.Queue, b.Queue) < 0
	case policy.JobOrder:
		return policy.JobAge(a.Job, b.Job) < 0
	}
	return policy.TaskTie(a.Task, b.Task) < 0
}

// Score returns the score of each row for a task on a node, rounded and weighted. Nothing is normalised, because there is no group of nodes
// to choose from. The task may be on any node, and need not fit.
func (s *Session) Score(t *model.Task, row int32) []model.RowScore {
	f := s.ask.Frame().OfTask(t)
	defer s.ask.Done()
	f.Node = s.NodeView(row)
	var out []model.RowScore
	for _, r := range s.verdicts.Plan.Scores {
		if v := s.ask.Score(r.Rule, f); v == v {
			out = append(out, model.RowScore{Table: r.Table, Rule: r.Name, Score: r.Weighted(v)})
		}
	}
	return out
}

// ScoreAmong returns the score of each row for a task on each of some nodes, normalised over these nodes, rounded and weighted. The task
// may be on any node, and need not fit.
func (s *Session) ScoreAmong(t *model.Task, nodes []int32) [][]model.RowScore {
	f := s.ask.Frame().OfTask(t)
	defer s.ask.Done()
	s.Sizes = s.TopologyOf(t).SizesAmong(nodes)
	defer func() { s.Sizes = nil }()
	out := make([][]model.RowScore, len(nodes))
	for _, r := range s.verdicts.Plan.Scores {
		raw := make([]float64, len(nodes))
		g := policy.Span{Min: math.Inf(1), Max: math.Inf(-1)}
		for i, row := range nodes {
			f.Node = s.NodeView(row)
			if raw[i] = s.ask.Score(r.Rule, f); raw[i] == raw[i] {
				g.Min, g.Max = min(g.Min, raw[i]), max(g.Max, raw[i])
			}
		}
		for i, v := range raw {
			if v == v {
				out[i] = append(out[i], model.RowScore{Table: r.Table, Rule: r.Name, Score: r.Weighted(r.Normalised(v, g))})
			}
		}
	}
	return out
}

// Fits evaluates predicates for a task on a node, without the built-in checks.
func (s *Session) Fits(t *model.Task, row int32) policy.Answer {
	f := s.ask.Frame().OfTask(t)
	defer s.ask.Done()
	f.Node = s.NodeView(row)
	return s.all(policy.Predicates, f)
}
