package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// answerName is the name of the accounting function answer.
const answerName = "answer"

// asArgument is its argument for the form of the question.
const asArgument = "as"

// answerFunction returns the accounting function for answers of extenders.
func answerFunction() *Accounting {
	text, duration := rules.String(), rules.Exactly(cel.DurationType, "a duration")
	return &Accounting{
		Name: answerName,
		Doc: "On a task, a job or a queue: an Answer, what a service outside said of it. What was not said yet, or longer ago than `refresh`, " +
			"is asked between cycles, by POST at the address, as Volcano's extenders are; a decision itself waits for nobody. Tasks of one job " +
			"and role that ask for the same, of the same nodes, are asked about as one: those that are pending, of jobs that were let in; where " +
			"their answer is about nodes, again of nodes that changed. Jobs are asked about before they are let in, or, with the form jobReady, " +
			"while pods of them wait; queues while jobs in them do.",
		Args: []AccountingArgument{
			{Name: "url", Doc: "The address, a string; sees no object.", Want: text},
			{Name: asArgument, Doc: "The form of the question, a word: " + strings.Join(extender.FormsAbout(""), ", ") + "."},
			{Name: "timeout", Doc: "For how long an answer is waited for, a duration.", Want: duration},
			{Name: "refresh", Doc: "After what time it is asked again, a duration.", Want: duration},
		},
		check:   checkAnswer,
		Compile: compileAnswer,
	}
}

func checkAnswer(s *TableScope, a *rules.Attribute) bool {
	as := a.Args[asArgument]
	allowed := extender.FormsAbout(a.On)
	switch {
	case !as.Written():
		return false // reported where it is missing
	case len(allowed) == 0:
		s.report(a.At.Issuef("write on: task, job or queue", "no service answers questions about a %s", a.On))
		return false
	case !slices.Contains(allowed, as.Value):
		s.report(as.Issue(0, len(as.Value), "there is no question \""+as.Value+"\" for a "+a.On, source.Suggest(as.Value, allowed)))
		return false
	}
	return true
}

func compileAnswer(s *TableScope, a *rules.Attribute, x *Account) bool {
	if !s.addressCanBe(a, x) {
		return false
	}
	f := s.OneField(x, a, a.On)
	f.Type, f.Over = language.AnswerType(), a.Args[asArgument].Value
	said := s.objects[objectName(a.On)].Find(language.AnswersMember)
	x.Fields[0].reads.Add(&rules.Reads{All: []rules.Read{{Root: a.On, Steps: []rules.Step{{Member: said}}, Changes: said.Changes}}})
	x.Keep = func(s *Accounts) Kept { return answerKept{s} }
	return true
}

// addressCanBe refuses an invalid address that is known when the policy is loaded. An empty address is valid: then no extender is asked.
func (s *TableScope) addressCanBe(a *rules.Attribute, x *Account) bool {
	if !x.Args["url"].Constant() {
		return true
	}
	address, _ := x.Args["url"].Eval(&language.Frame{}).(types.String)
	wrong := extender.CheckAddress(string(address))
	if address == "" || wrong == "" {
		return true
	}
	issue := a.Args["url"].Issue(0, len(a.Args["url"].Value), wrong, "")
	if s.entry.params.Exists() { // the address most likely comes from params
		issue = s.entry.params.Issuef("", "table %s: %s", s.entry.table.Name, wrong)
	}
	s.report(issue)
	return false
}

// answerKept keeps no data, because the cluster contains the answers.
type answerKept struct{ s *Accounts }

func (answerKept) Update() {}

func (answerKept) Erring() bool { return false }

// Value implements Kept.
func (k answerKept) Value(x *Attribute, owner ref.Val) ref.Val {
	f := k.s.Ask.Frame()
	defer k.s.Ask.Done()
	return AnswerOf(k.s.World, x, owner, x.Args["url"].Eval(f))
}

// AnswerOf returns the answer of an address about the owner of an attribute.
func AnswerOf(w *language.World, x *Attribute, owner, url ref.Val) ref.Val {
	address, ok := url.(types.String)
	if !ok {
		return url
	}
	if address == "" {
		return types.NewErr("%s has no value here: there is no address", x.Name)
	}
	if wrong := extender.CheckAddress(string(address)); wrong != "" {
		return types.NewErr("%s has no value here: %s", x.Name, wrong)
	}
	return w.Answer(extender.OneSlash(string(address)), x.Over, owner)
}

// Asks returns the questions for extenders before the next cycle, and the time of the next further question; zero: never. The function
// frame returns the frame for evaluating guards.
func Asks(p *Policy, w *language.World, frame func() *language.Frame) (out []extender.Ask, next time.Time) {
	for _, account := range p.Accounts {
		if p.Mode == "Paused" || account.Function.Name != answerName || len(account.Fields) == 0 {
			continue
		}
		x := account.Fields[0].Attribute
		if !p.rowsRead(x) {
			continue
		}
		a := asking{w: w, frame: frame, x: x, seen: map[extender.Subject]bool{}}
		f := frame()
		url, okURL := x.Args["url"].Eval(f).(types.String)
		timeout, okTimeout := x.Args["timeout"].Eval(f).(types.Duration)
		refresh, okRefresh := x.Args["refresh"].Eval(f).(types.Duration)
		if !okURL || !okTimeout || !okRefresh || extender.CheckAddress(string(url)) != "" {
			continue // rows that read it get the error
		}
		a.ask = extender.Ask{URL: extender.OneSlash(string(url)), As: x.Over, Timeout: timeout.Duration}
		a.refresh = refresh.Duration
		a.all()
		out = append(out, a.out...)
		if next.IsZero() || !a.next.IsZero() && a.next.Before(next) {
			next = a.next
		}
	}
	return out, next
}

// rowsRead reports whether any row reads a computed field. A policy may leave out sections of a table, and so all readers of its fields.
func (p *Policy) rowsRead(x *Attribute) bool {
	return slices.ContainsFunc(p.All, func(r *Rule) bool {
		return slices.ContainsFunc(r.Reads.All, func(read rules.Read) bool {
			return slices.ContainsFunc(read.Steps, func(step rules.Step) bool { return p.computed[step.Member] == x })
		})
	})
}

// asking collects the questions of one attribute.
type asking struct {
	w       *language.World
	frame   func() *language.Frame
	x       *Attribute
	ask     extender.Ask // the common part of all questions
	refresh time.Duration
	seen    map[extender.Subject]bool
	out     []extender.Ask
	next    time.Time
}

func (a *asking) all() {
	for _, j := range a.w.Cluster().JobsByKey() {
		if !j.Seated() {
			continue
		}
		waiting, in := j.Counts[model.Pending] > 0, j.Phase != model.PhasePending
		switch {
		case a.x.On == "queue" && (waiting || !in):
			a.about(extender.Subject{Kind: extender.Queue, Queue: j.QueueName}, a.frame().OfQueue(j.Queue), nil)
		case a.x.Over == extender.JobEnqueueable && !in && j.HasMinResources, a.x.Over == extender.JobReady && in && waiting:
			a.about(extender.Subject{Kind: extender.Job, Job: j.Key}, a.frame().OfJob(j), nil)
		case a.x.On == "task" && in && waiting:
			a.tasks(j)
		}
	}
}

func (a *asking) tasks(j *model.Job) {
	for _, t := range j.Tasks {
		if t.Status == model.Pending && !t.Gated {
			a.about(language.TaskSubject(t), a.frame().OfTask(t), t)
		}
	}
}

// about adds a question about one subject, if its attribute has a value.
func (a *asking) about(of extender.Subject, f *language.Frame, t *model.Task) {
	if a.seen[of] {
		return
	}
	a.seen[of] = true
	if a.x.When != nil && a.x.When.Eval(f) != types.True {
		return
	}
	known := a.w.Cluster().Answers.Find(a.ask.URL, a.ask.As, of)
	q := a.ask
	q.Of, q.All = of, true
	if known != nil {
		due := known.At.Add(a.refresh)
		if q.All = !a.w.Now.Before(due); !q.All && (a.next.IsZero() || due.Before(a.next)) {
			a.next = due
		}
	}
	if t != nil {
		q.Task, q.Nodes = t.Key, a.nodes(known, q.All)
		q.All = q.All && len(q.Nodes) > 0
	}
	if q.All || len(q.Nodes) > 0 {
		a.out = append(a.out, q)
	}
}

// nodes returns the nodes to ask about: all nodes, or those without an answer for their current version.
func (a *asking) nodes(known *extender.Known, all bool) (out []string) {
	if !all && known.Error != "" {
		return nil // the last question failed for all nodes
	}
	c := a.w.Cluster()
	for _, row := range c.Nodes.ByOrder() {
		if n := c.Nodes.Rows[row]; n.Ready && (all || outdated(known.Node(n.Name), n)) {
			out = append(out, n.Name)
		}
	}
	slices.Sort(out)
	return out
}

// outdated reports whether there is no answer for a node, or only one for an older version of it.
func outdated(said *extender.NodeAnswer, n *model.Node) bool {
	return said == nil || said.Version != "" && said.Version != n.Object.ResourceVersion
}
