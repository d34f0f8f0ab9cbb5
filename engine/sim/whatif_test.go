package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/engine/whatif"
)

// TestToAskChangesNothing runs every scenario twice. In one run, what-if questions are asked before and after each cycle: a job is deleted,
// or created once more, or there are more nodes. The plans are the same, and the cluster stays consistent.
func TestToAskChangesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range scenarioFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, data := scenarioFile(t, name)
			plain, err := RunScenario(path, data, ScenarioOptions{World: withVolumes(), Compile: loadOnce})
			if err != nil {
				t.Fatal(err)
			}
			var d engine.Decider
			var asker whatif.Asker
			asked, err := RunScenario(path, data, ScenarioOptions{Compile: loadOnce, World: Options{
				Volumes: volume.New,
				Decide: func(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
					if s := d.Session(); s != nil && s.Cluster() == c && s.Policy() == p {
						askAll(t, &asker, whatif.Asked{Session: s, Now: now}, c)
					}
					plan := d.Decide(c, p, now)
					askAll(t, &asker, whatif.Asked{Session: d.Session(), Now: now}, c)
					return plan
				},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(writtenPlans(t, plain.Plans), writtenPlans(t, asked.Plans)); diff != "" {
				t.Errorf("-plain +asked:\n%s", diff)
			}
		})
	}
}

// TestWhatIfAgrees asks before each cycle of every scenario about each job that is new in it, as if it did not exist yet. It compares the
// answer with the cycle's decisions: of 1,000 answers at most one may differ.
func TestWhatIfAgrees(t *testing.T) {
	t.Parallel()
	asked, differ := 0, 0
	for _, name := range scenarioFiles(t) {
		path, data := scenarioFile(t, name)
		var d engine.Decider
		_, err := RunScenario(path, data, ScenarioOptions{Compile: loadOnce, World: Options{
			Volumes: volume.New,
			Decide: func(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
				said := map[string]*whatif.Outcome{}
				if s := d.Session(); s != nil && s.Cluster() == c && s.Policy() == p {
					said = askAnew(t, whatif.Asked{Session: s, Now: now}, c)
				}
				plan := d.Decide(c, p, now)
				for key, o := range said {
					asked++
					if was, is := placesOf(o.Binds, key), placesOf(plan.Binds, key); was != is {
						differ++
						t.Logf("%s: of %s it was said %s, and decided %s", name, key, was, is)
					}
				}
				return plan
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if t.Logf("%d answers, of which %d differ", asked, differ); asked < 50 || differ*1000 > asked {
		t.Errorf("%d of %d answers differ from what was decided", differ, asked)
	}
}

// askAnew asks about replacing each job by itself, if no cycle has admitted it and none of its pods has a node.
func askAnew(t *testing.T, q whatif.Asked, c *model.Cluster) map[string]*whatif.Outcome {
	t.Helper()
	said := map[string]*whatif.Outcome{}
	for _, j := range c.JobsByKey() {
		group, ok := j.Object.(*v1beta1.PodGroup)
		if !ok || j.Orphan || j.Phase != model.PhasePending || j.Counts[model.Pending] != int64(len(j.Tasks)) {
			continue
		}
		change := &whatif.Change{Delete: []string{j.Key}, Add: []metav1.Object{group}}
		for _, task := range j.Tasks {
			change.Add = append(change.Add, task.Object)
		}
		answer, err := new(whatif.Asker).Ask(q, change)
		if err != nil {
			t.Errorf("what if %s came: %v", j.Key, err)
			continue
		}
		said[j.Key] = &answer.Jobs[0]
	}
	return said
}

// placesOf returns the bindings of a job's pods as text.
func placesOf(binds []model.Bind, job string) string {
	var out []string
	for i := range binds {
		if b := &binds[i]; b.Job == job {
			out = append(out, b.Task+" on "+b.Node)
		}
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}

// askAll asks about each of the first jobs, and about a node.
func askAll(t *testing.T, a *whatif.Asker, q whatif.Asked, c *model.Cluster) {
	t.Helper()
	ask := func(what string, change *whatif.Change) {
		t.Helper()
		if answer, err := a.Ask(q, change); err != nil || answer.Text == "" {
			t.Errorf("what if %s: %v", what, err)
		}
		if wrong := c.Check(); wrong != nil {
			t.Fatalf("after it was asked what if %s: %v", what, wrong)
		}
	}
	jobs := c.JobsByKey()
	for _, j := range jobs[:min(len(jobs), 4)] {
		ask(j.Key+" were gone", &whatif.Change{Delete: []string{j.Key}})
		if change := again(j); change != nil {
			ask("there were one more like "+j.Key, change)
		}
	}
	for name := range c.Nodes.Index {
		ask("there were more nodes like "+name, &whatif.Change{Copies: []whatif.Copies{{Count: 2, Like: name}}})
		break
	}
}

// again returns a change that adds a copy of a job; nil: the job cannot be copied.
func again(j *model.Job) *whatif.Change {
	group, ok := j.Object.(*v1beta1.PodGroup)
	if !ok {
		return nil
	}
	more := group.DeepCopy()
	more.Name, more.UID, more.OwnerReferences = "once-more", "", nil
	change := &whatif.Change{Add: []metav1.Object{more}}
	for i, task := range j.Tasks {
		pod := task.Object.DeepCopy()
		pod.ObjectMeta = metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: fmt.Sprintf("once-more-%d", i), Labels: pod.Labels,
			Annotations: map[string]string{v1beta1.KubeGroupNameAnnotationKey: more.Name},
		}
		pod.Spec.ResourceClaims, pod.Spec.NodeName = nil, ""
		pod.Status = corev1.PodStatus{}
		change.Add = append(change.Add, pod)
	}
	return change
}
