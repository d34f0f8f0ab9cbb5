package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// cycleLength is how much time passes between two cycles of one run.
const cycleLength = time.Second

// Explain tells what the last cycle decided about a pod or a job, and why. name is
// namespace/name, or the name alone; a job goes by the name of its PodGroup, or of
// the Job or the pod that this was made for. "all" explains every job that the
// cycle had to do with.
func (r *Report) Explain(name string) (string, error) {
	if len(r.Plans) == 0 {
		return "", errors.New("nothing was decided yet")
	}
	return explain(r.world, r.Plans[len(r.Plans)-1], name)
}

func explain(w *World, plan *model.Plan, name string) (string, error) {
	e := explainer{plan: plan, world: w, titles: titlesOf(w.cluster)}
	if name == "all" {
		return e.all(), nil
	}
	jobs, tasks := e.named(name)
	var out strings.Builder
	for _, key := range jobs {
		out.WriteString(e.job(w.cluster.Jobs[key]))
	}
	for _, key := range tasks {
		t := w.cluster.Tasks[key]
		if slices.Contains(jobs, t.Job.Key) {
			continue
		}
		text := e.task(t)
		if text == "" {
			text = "  " + e.standing(t) + "\n"
			if t.Status == model.Pending {
				text += indented(e.head(t.Job))
			}
		}
		out.WriteString("pod " + key + "\n" + text)
	}
	if out.Len() > 0 {
		return out.String(), nil
	}
	var known []string
	for _, title := range e.titles {
		known = append(known, title)
	}
	known = append(known, sortedKeys(w.cluster.Tasks)...)
	if near := nearest(qualified(name), known); near != "" {
		return "", fmt.Errorf("there is no pod or job %s; did you mean %s?", name, near)
	}
	return "", fmt.Errorf("there is no pod or job %s", name)
}

func qualified(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return model.Key(metav1.NamespaceDefault, name)
}

type explainer struct {
	plan   *model.Plan
	world  *World
	titles titles
}

// named finds the jobs and the pods of a name, in order.
func (e *explainer) named(name string) (jobs, tasks []string) {
	fits := func(key string) bool {
		_, short, _ := strings.Cut(key, "/")
		return key == name || short == name
	}
	for _, key := range sortedKeys(e.world.cluster.Jobs) {
		if !e.world.cluster.Jobs[key].Orphan && (fits(key) || fits(e.titles.of(key))) {
			jobs = append(jobs, key)
		}
	}
	for _, key := range sortedKeys(e.world.cluster.Tasks) {
		if fits(key) {
			tasks = append(tasks, key)
		}
	}
	return jobs, tasks
}

// all explains every job that the plan names, in the plan's order.
func (e *explainer) all() string {
	var out strings.Builder
	seen := map[string]bool{}
	explain := func(key string) {
		if job, ok := e.world.cluster.Jobs[key]; ok && !seen[key] {
			seen[key] = true
			out.WriteString(e.job(job))
		}
	}
	for _, a := range e.plan.Admits {
		explain(a.Job)
	}
	for _, binds := range [][]model.Bind{e.plan.Binds, e.plan.Pipelines, e.plan.Holds} {
		for _, b := range binds {
			explain(b.Job)
		}
	}
	for i := range e.plan.Evicts {
		explain(e.plan.Evicts[i].Job)
	}
	for _, wait := range e.plan.Waits {
		explain(wait.Job)
	}
	if out.Len() == 0 {
		return "nothing was decided\n"
	}
	return out.String()
}

// job explains a job, and each pod of it that something was decided about.
func (e *explainer) job(job *model.Job) string {
	var out strings.Builder
	out.WriteString(e.head(job))
	var names []decision // what is decided alike is told once
	for _, t := range job.Tasks {
		if text := e.task(t); text != "" {
			names = append(names, decision{what: t.Key, why: text})
		}
	}
	for _, n := range folded(names) {
		out.WriteString("  pod " + n.what + "\n" + indented(n.why))
	}
	return out.String()
}

// head is a job without its pods.
func (e *explainer) head(job *model.Job) string {
	var out strings.Builder
	fmt.Fprintf(&out, "job %s\n", e.titles.of(job.Key))
	out.WriteString(columns("  ", e.facts(job)))
	for _, a := range e.plan.Admits {
		if a.Job == job.Key {
			why := cmp.Or(a.Reason.String(), "it reserves nothing, so nobody was asked")
			fmt.Fprintf(&out, "  admitted: %s\n", why)
		}
	}
	for _, wait := range e.plan.Waits {
		if wait.Job == job.Key && wait.Task == "" {
			out.WriteString(waiting("  ", wait))
		}
	}
	return out.String()
}

// facts are what is known of a job without asking why.
func (e *explainer) facts(job *model.Job) [][]string {
	queue := job.QueueName
	if job.Queue == nil {
		queue += ", which is not there"
	}
	if place := e.place(job.Key); place > 0 {
		queue += fmt.Sprintf(", place %d in its order", place)
	}
	rows := [][]string{
		{"queue", queue},
		{"phase", job.Phase},
		{"pods", fmt.Sprintf("%s; %d must start together", statusCounts(job), job.MinMember)},
	}
	if age := e.world.now.Sub(job.CreatedAt); age >= time.Second && job.Phase != model.PhaseCompleted {
		rows = append(rows, []string{"age", age.Truncate(time.Second).String()})
	}
	return rows
}

// place is a job's place in its queue's order, 0 where it was not asked.
func (e *explainer) place(job string) int {
	for _, wait := range e.plan.Waits {
		if wait.Job == job && wait.Place > 0 {
			return wait.Place
		}
	}
	return 0
}

// waiting is a wait with its histogram.
func waiting(indent string, w model.Wait) string {
	step := ""
	if w.Action != "" {
		step = " in " + w.Action
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%swaits%s: %s\n", indent, step, dash(w.Why()))
	text.WriteString(histogram(indent+"  ", "NODES", w.Nodes))
	for _, v := range w.InVain {
		text.WriteString(indent + "  " + v.What() + ":\n" + histogram(indent+"    ", "COUNT", v.Nodes))
	}
	return text.String()
}

// histogram is how many there are of each count, what that is, and why; "" of none.
func histogram(indent, of string, counts []model.NodeCount) string {
	if len(counts) == 0 {
		return ""
	}
	rows := [][]string{{of, "ROW", "WHY"}}
	for _, n := range counts {
		rows = append(rows, []string{fmt.Sprint(n.Count), model.RowName(n.Table, n.Rule), n.Why()})
	}
	return columns(indent, rows)
}

// task is what was decided about a pod; "" where nothing was.
func (e *explainer) task(t *model.Task) string {
	var out strings.Builder
	for _, group := range []struct {
		verb  string
		binds []model.Bind
	}{{"bound to", e.plan.Binds}, {"promised", e.plan.Pipelines}, {"held on", e.plan.Holds}} {
		for i := range group.binds {
			if b := &group.binds[i]; b.Task == t.Key {
				out.WriteString(binding(group.verb, b))
			}
		}
	}
	for _, wait := range e.plan.Waits {
		if wait.Task == t.Key {
			out.WriteString(waiting("  ", wait))
		}
	}
	for i := range e.plan.Evicts {
		switch v := &e.plan.Evicts[i]; t.Key {
		case v.Task:
			out.WriteString(eviction(v))
		case v.For:
			fmt.Fprintf(&out, "  %s goes for it, as %s\n", v.Task, permit(v.Rows))
		}
	}
	return out.String()
}

// eviction is for whom a pod goes, by which rows, and why it has to.
func eviction(v *model.Evict) string {
	return fmt.Sprintf("  evicted from %s %s\n", v.Node, becauseOf(v, "\n  "))
}

// standing is where a pod is that nothing was decided about.
func (e *explainer) standing(t *model.Task) string {
	switch {
	case t.Foreign:
		return fmt.Sprintf("%s, another scheduler's", t.Status)
	case t.Node == model.NoNode && t.Status == model.Pending:
		return "Pending, as its job"
	case t.Node == model.NoNode:
		return t.Status.String()
	}
	return fmt.Sprintf("%s on %s", t.Status, e.world.cluster.Nodes.Rows[t.Node].Name)
}

// binding is where a pod went, what else there was, and the score by row.
func binding(verb string, b *model.Bind) string {
	text := fmt.Sprintf("  %s %s", verb, place(b))
	if b.Action != "" {
		text += " in " + b.Action
	}
	if why := b.Reason.String(); why != "" {
		text += ": " + why
	}
	text += "\n  of " + count(b.Feasible, "node")
	if b.RunnerUp != "" {
		text += fmt.Sprintf(", before %s with %s", b.RunnerUp, model.Score(b.RunnerUpScore))
	}
	text += "\n"
	if len(b.Scores) == 0 {
		return text
	}
	rows := [][]string{{"SCORE", "ROW"}}
	for _, s := range b.Scores {
		rows = append(rows, []string{model.Score(s.Score), model.RowName(s.Table, s.Rule)})
	}
	return text + columns("    ", append(rows, []string{model.Score(b.Score), "in all"}))
}

func indented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("  " + line)
	}
	return out.String()
}
