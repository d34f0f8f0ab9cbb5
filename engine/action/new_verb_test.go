package action

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/kinds"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// review is a verb that exists only in this test. It states why jobs are not valid.
func review(sites ...string) policy.Verb {
	return policy.Verb{
		Name: "review", Doc: "Walks queues and jobs in order and says why jobs are not valid.",
		Itself: []string{"A job without tasks is passed over."},
		Parameters: []policy.Parameter{
			{Name: "of", Doc: "The jobs that it is about.", Kind: kinds.Condition{Roots: []string{"job"}, Default: "job.taskCount < 100"}},
			{Name: "tone", Doc: "How it is said.", Kind: kinds.Word{Of: []string{"calm", "firm"}, Default: "calm"}},
			{Name: "after", Doc: "How old a job has to be.", Kind: kinds.Period{Most: time.Hour}},
			{Name: "loud", Doc: "Whether it is said aloud.", Kind: kinds.Flag{}},
		},
		Sites: sites,
	}
}

// reviewer runs the steps of review, and counts their turns.
type reviewer struct{ turns int }

func (r *reviewer) run(x *Cycle, step *policy.Step) {
	x.walk(step, visit{
		idle: func(j *model.Job) bool { return j.TaskCount() == 0 || !x.jobPasses(step, "of", j) },
		drop: func(*model.Queue) policy.Answer { return policy.Answer{} },
		turn: func(j *model.Job) (again bool) {
			r.turns++
			if a := x.s.Valid(j); !a.Yes && x.plan.Now.Sub(j.CreatedAt) >= step.Period("after") {
				why := a.Reason()
				if step.Flag("loud") {
					why.Text = strings.ToUpper(why.Text)
				}
				why.Text = step.Word("tone") + ": " + why.Text
				x.jobWait(j, why)
			}
			return false
		},
	})
}

const reviewPolicy = `
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: reviewing}
spec:
  pipeline: [look]
  actions:
  - name: look
    steps: [%s]
  tiers:
  - name: own
    tables:
    - name: own
      inline:
        jobValid: [{name: here, expression: "job.labels[?'site'].orValue('') == 'here'", message: "it is {{job.labels['site']}}"}]
        jobEnqueueable: [{name: any, expression: job.priority > 1}]
`

func loadReview(t *testing.T, step string, v policy.Verb) (*policy.Policy, source.Issues) {
	t.Helper()
	docs, issues := source.Parse("review.yaml", fmt.Appendf(nil, reviewPolicy, step))
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	return policy.LoadIn(docs[0], append(policy.Verbs(), v), policy.Vocabulary(), policy.AccountingFunctions())
}

// reviewed runs two cycles with four jobs, of which two are equal for review. It returns the reasons why they wait, and the number of
// turns.
func reviewed(t *testing.T, step string, v policy.Verb, memory func(*session.Session) *Memory) (waits []string, turns int) {
	t.Helper()
	p, issues := loadReview(t, step, v)
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	c := model.NewCluster(model.Options{Volumes: volume.New})
	deltas := []model.Delta{{Object: &v1beta1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: v1beta1.QueueSpec{Weight: 1}, Status: v1beta1.QueueStatus{State: "Open"},
	}}}
	for i, site := range []string{"there", "here", "there", "elsewhere"} {
		meta := metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("job-", i), Labels: map[string]string{"site": site}}
		deltas = append(deltas, model.Delta{Object: &v1beta1.PodGroup{
			ObjectMeta: meta, Spec: v1beta1.PodGroupSpec{MinMember: 1, Queue: "q"}, Status: v1beta1.PodGroupStatus{Phase: "Inqueue"},
		}})
		meta.Labels, meta.Annotations = nil, map[string]string{model.GroupAnnotation: meta.Name}
		meta.Name += "-0"
		spec := corev1.PodSpec{SchedulerName: "celsius", Containers: []corev1.Container{{Name: "main"}}}
		deltas = append(deltas, model.Delta{Object: &corev1.Pod{ObjectMeta: meta, Spec: spec}})
	}
	if errs := c.Apply(deltas...); len(errs) > 0 {
		t.Fatal(errs)
	}
	s, r := session.New(c, p), &reviewer{}
	m := memory(s)
	for range 2 {
		plan := &model.Plan{Now: time.Unix(1_800_000_000, 0)}
		s.Begin(plan.Now)
		x := Begin(s, m, plan)
		x.verbs = append(x.verbs, verb{v.Name, r.run})
		for _, a := range p.Actions {
			x.Run(a)
		}
		x.Statuses()
		x.Close()
		s.End(plan)
		waits = nil
		for _, w := range plan.Waits {
			if w.Task == "" {
				waits = append(waits, w.String())
			}
		}
	}
	return waits, r.turns
}

// TestANewVerb checks that a new verb needs only its declaration and its function. A policy can name it, its steps are compiled and checked
// by its parameters, and the cycle runs it. The sites that it declares determine which jobs are of the same kind.
func TestANewVerb(t *testing.T) {
	t.Parallel()
	v := review(policy.QueueOrder, policy.JobOrder, policy.JobValid)
	want := []string{"own/here: firm: IT IS THERE", "own/here: firm: IT IS THERE", "own/here: firm: IT IS ELSEWHERE"}
	step := "{verb: review, tone: firm, loud: true, after: 1m}"

	waits, turns := reviewed(t, step, v, NewMemory)
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if turns != 3 {
		t.Errorf("%d turns of four jobs of three kinds in a cycle and one after it, want 3", turns)
	}
	if waits, turns = reviewed(t, step, v, func(*session.Session) *Memory { return Forgetful() }); !slices.Equal(waits, want) || turns != 8 {
		t.Errorf("without a memory %d turns gave %v", turns, waits)
	}
	waits, _ = reviewed(t, `{verb: review, of: "job.labels['site'] != 'there'"}`, v, NewMemory)
	if !slices.Equal(waits, []string{"own/here: calm: it is elsewhere"}) {
		t.Errorf("of some jobs: %v", waits)
	}
	// The declaration distinguishes the jobs.
	waits, turns = reviewed(t, step, review(policy.QueueOrder, policy.JobOrder, policy.JobEnqueueable), NewMemory)
	if slices.Equal(waits, want) || turns != 1 {
		t.Errorf("a verb that hides what it asks told unlike jobs apart: %d turns, %v", turns, waits)
	}

	for step, issue := range map[string]string{
		"{verb: reviw}":                       `unknown verb "reviw"`,
		"{verb: review, ton: firm}":           `unknown field "ton"; did you mean "tone"`,
		"{verb: review, tone: harsh}":         `unknown value "harsh"`,
		"{verb: review, after: 2h}":           "must be from 0s to 1h0m0s",
		"{verb: review, of: task.bestEffort}": `task`,
	} {
		if _, issues := loadReview(t, step, v); !strings.Contains(issues.Error(), issue) {
			t.Errorf("%s: %v, want %s", step, issues, issue)
		}
	}
}
