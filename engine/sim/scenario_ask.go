package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// question is a question of the verb ask to a site.
type question struct {
	session.Subject
	site string
	// other is the second object of a question about an order.
	other *session.Subject
	// about is the name of the subject in the output.
	about string
}

// inquiry defines how a question about one type of subject is written and read.
type inquiry struct {
	sites []string
	names int // minimum number of names after the site
	usage string
	read  func(a *asker, q *question, args []string) error
}

// inquiries returns the forms of questions. Each site has exactly one.
func inquiries() []inquiry {
	return []inquiry{
		{[]string{policy.QueueOrder}, 2, "QUEUE OTHER", orderOf((*asker).queue)},
		{[]string{policy.JobOrder}, 2, "JOB OTHER", orderOf((*asker).job)},
		{[]string{policy.TaskOrder}, 2, "POD OTHER", orderOf((*asker).task)},
		{
			[]string{policy.JobValid, policy.JobReady, policy.JobPipelined, policy.JobStarving, policy.JobEnqueueable},
			1,
			"JOB", subjectOf((*asker).job),
		},
		{[]string{policy.BeyondShare}, 1, "JOB", (*asker).beyondShare},
		{[]string{policy.Overused, policy.BeyondDue}, 1, "QUEUE", subjectOf((*asker).queue)},
		{[]string{policy.Allocatable, policy.Bindable, policy.TaskFeasible}, 1, "POD", subjectOf((*asker).task)},
		{[]string{policy.Preemptive}, 2, "JOB RESOURCE=AMOUNT...", (*asker).preemptive},
		{[]string{policy.Predicates, policy.Scores, policy.DevicePredicates, policy.DeviceScores}, 2, "POD NODE", (*asker).onNode},
		{[]string{policy.Preemptable, policy.Reclaimable, policy.VictimCost}, 3, "POD by POD [scope WORD]", (*asker).victimBy},
		{[]string{policy.VictimOrder}, 1, "POD [by POD [scope WORD]]", (*asker).victimAmong},
		{[]string{policy.Evictable}, 3, "POD for JOB [scope WORD]", (*asker).victimFor},
		{[]string{policy.Victims}, 1, "POD", (*asker).victim},
	}
}

// ask prints the answer of each row of a site about a subject in the current state, one line per row. For an order, it prints which of two
// objects comes first, and the row that decides.
func (s *scenario) ask(args []string) error {
	if err := s.inPolicy(); err != nil {
		return err
	}
	i := slices.IndexFunc(inquiries(), func(i inquiry) bool { return slices.Contains(i.sites, args[0]) })
	if i < 0 {
		var known []string
		for _, x := range inquiries() {
			known = append(known, x.sites...)
		}
		hint := ""
		if near := nearest(args[0], known); near != "" {
			hint = "; did you mean " + near + "?"
		}
		return fmt.Errorf("there is no site %s%s", args[0], hint)
	}
	how := inquiries()[i]
	usage := fmt.Errorf("write ask %s %s", args[0], how.usage)
	if len(args) <= how.names {
		return usage
	}
	q := question{site: args[0]}
	if err := how.read(&asker{s.world, explain.TitlesOf(s.world.cluster)}, &q, args[1:]); errors.Is(err, errUsage) {
		return usage
	} else if err != nil {
		return err
	}
	session := session.New(s.world.cluster, s.world.Policy)
	session.Begin(s.world.now)
	rows, err := q.put(session)
	s.print(explain.Columns("", rows))
	return err
}

// put evaluates a question and returns the answers as lines.
func (q *question) put(session *session.Session) ([][]string, error) {
	if q.other != nil {
		return q.putOrder(session)
	}
	said, err := session.Ask(q.site, q.Subject)
	var rows [][]string
	for _, x := range said {
		answer, why := x.Value, model.RowName(x.Rule.Table, x.Rule.Name)
		if failure, ok := strings.CutPrefix(answer, "error: "); ok {
			answer, x.Text = "error", failure
		}
		if word, ok := map[string]string{"true": "yes", "false": "no"}[answer]; ok {
			answer = word
		}
		if x.Text != "" {
			why += ": " + x.Text
		}
		rows = append(rows, []string{q.site, q.about, answer, why})
	}
	if len(rows) == 0 {
		rows = [][]string{{q.site, q.about, "-", "the policy has no row"}}
	}
	return rows, err
}

// putOrder evaluates which of two objects comes first.
func (q *question) putOrder(session *session.Session) ([][]string, error) {
	first, by, err := session.Before(q.site, q.Subject, *q.other)
	names := strings.Fields(q.about)
	if !first {
		slices.Reverse(names)
	}
	why := "nothing but the final order of ties"
	if by != nil {
		why = model.RowName(by.Table, by.Name)
	}
	return [][]string{{q.site, strings.Join(names, " before "), "by", why}}, err
}

// errUsage means that a question has the wrong form.
var errUsage = errors.New("wrong usage")

// asker finds the objects that questions name.
type asker struct {
	world  *World
	titles explain.Titles
}

func qualified(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return model.Key(metav1.NamespaceDefault, name)
}

// named finds an object by its key, or by its name in the namespace default.
func named[T any](what, name string, all map[string]T, called func(key string) string) (T, error) {
	want := qualified(name)
	var names []string
	for _, key := range sortedKeys(all) {
		if key == want || called(key) == want {
			return all[key], nil
		}
		names = append(names, called(key))
	}
	var none T
	if near := nearest(want, names); near != "" {
		return none, fmt.Errorf("there is no %s %s; did you mean %s?", what, want, near)
	}
	return none, fmt.Errorf("there is no %s %s", what, want)
}

func (a *asker) job(on *session.Subject, name string) (string, error) {
	j, err := named("job", name, a.world.cluster.Jobs, a.titles.Of)
	if err != nil {
		return "", err
	}
	on.Job = j
	return a.titles.Of(j.Key), nil
}

func (a *asker) pod(name string) (*model.Task, error) {
	return named("pod", name, a.world.cluster.Tasks, func(key string) string { return key })
}

func (a *asker) task(on *session.Subject, name string) (string, error) {
	t, err := a.pod(name)
	if err != nil {
		return "", err
	}
	on.Task = t
	return t.Key, nil
}

func (a *asker) queue(on *session.Subject, name string) (string, error) {
	q := a.world.cluster.Queues[name]
	if q == nil {
		return "", a.world.unknown("Queue", name)
	}
	on.Queue = q
	return name, nil
}

// finder sets a subject to a named object and returns the object's title.
type finder func(a *asker, on *session.Subject, name string) (string, error)

func subjectOf(find finder) func(*asker, *question, []string) error {
	return func(a *asker, q *question, args []string) (err error) {
		if len(args) != 1 {
			return errUsage
		}
		q.about, err = find(a, &q.Subject, args[0])
		return err
	}
}

func orderOf(find finder) func(*asker, *question, []string) error {
	return func(a *asker, q *question, args []string) error {
		if len(args) != 2 {
			return errUsage
		}
		q.other = &session.Subject{}
		first, err := find(a, &q.Subject, args[0])
		second, also := find(a, q.other, args[1])
		q.about = first + " " + second
		return cmp.Or(err, also)
	}
}

func (a *asker) beyondShare(q *question, args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	about, err := a.job(&q.Subject, args[0])
	if err != nil {
		return err
	}
	var tasks []*model.Task
	for _, t := range q.Job.Tasks {
		if t.Status == model.Pending && !t.BestEffort {
			tasks = append(tasks, t)
		}
	}
	session := session.New(a.world.cluster, a.world.Policy)
	session.Begin(a.world.now)
	session.SortTasks(tasks)
	q.about = about
	if len(tasks) > 0 {
		q.Request, _ = q.Job.NextRequestWith(tasks)
	}
	return nil
}

func (a *asker) preemptive(q *question, args []string) error {
	about, err := a.job(&q.Subject, args[0])
	if err != nil {
		return err
	}
	list := corev1.ResourceList{}
	for _, arg := range args[1:] {
		name, text, ok := strings.Cut(arg, "=")
		amount, err := resource.ParseQuantity(text)
		if !ok || err != nil {
			return fmt.Errorf("%q is no amount; write it as cpu=2", arg)
		}
		list[corev1.ResourceName(name)] = amount
	}
	dims := a.world.cluster.Dims
	for name := range list {
		if _, ok := dims.Find(string(name)); !ok {
			return fmt.Errorf("no object in the cluster has or requests %s", name)
		}
	}
	q.Request = dims.Resources(list)
	q.about = about + " takes " + dims.Text(q.Request)
	return nil
}

func (a *asker) onNode(q *question, args []string) error {
	if len(args) != 2 {
		return errUsage
	}
	about, err := a.task(&q.Subject, args[0])
	if err != nil {
		return err
	}
	if _, err := a.world.node(args[1]); err != nil {
		return err
	}
	q.Node, q.about = args[1], about+" on "+args[1]
	return nil
}

// scoped removes "scope WORD" from the end of a question. Without it, the scope is otherwise.
func scoped(q *question, args []string, otherwise string) []string {
	q.Scope = otherwise
	if n := len(args); n > 2 && args[n-2] == "scope" {
		q.Scope = args[n-1]
		return args[:n-2]
	}
	return args
}

func (a *asker) victimBy(q *question, args []string) error {
	args = scoped(q, args, "")
	if len(args) != 3 || args[1] != "by" {
		return errUsage
	}
	preemptor, err := a.pod(args[2])
	if err != nil {
		return err
	}
	q.Preemptor = preemptor
	if err := a.goes(q, args[0], "by "+preemptor.Key); err != nil || q.Scope != "" {
		return err
	}
	switch q.Scope = policy.ScopeQueue; { // the same scopes as in the built-in actions
	case q.site == policy.Reclaimable:
		q.Scope = policy.ScopeOtherQueues
	case q.Victim.Job == preemptor.Job:
		q.Scope = policy.ScopeJob
	}
	return nil
}

func (a *asker) victimFor(q *question, args []string) error {
	args = scoped(q, args, policy.ScopeQueue)
	if len(args) != 3 || args[1] != "for" {
		return errUsage
	}
	job, err := a.job(&q.Subject, args[2])
	if err != nil {
		return err
	}
	return a.goes(q, args[0], "for "+job+" in "+q.Scope)
}

func (a *asker) victim(q *question, args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	return a.goes(q, args[0], "")
}

// victimAmong reads a victim with a preemptor, or a victim alone.
func (a *asker) victimAmong(q *question, args []string) error {
	if len(args) == 1 {
		return a.victim(q, args)
	}
	return a.victimBy(q, args)
}

// goes sets the victim of a question.
func (a *asker) goes(q *question, name, whom string) error {
	victim, err := a.pod(name)
	if err != nil {
		return err
	}
	q.Victim = victim
	q.about = strings.TrimSpace(victim.Key + " " + whom)
	return nil
}
