package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/whatif"
)

// TestToAskChangesNothing runs every scenario twice, once with questions before each cycle and after it: what if a job were gone, came once
// more, or there were more nodes. The plans are the same, and the cluster keeps its promises.
func TestToAskChangesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range scenarioFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, data := scenarioFile(t, name)
			plain, err := RunScenario(path, data, ScenarioOptions{Compile: loadOnce})
			if err != nil {
				t.Fatal(err)
			}
			var d engine.Decider
			var asker whatif.Asker
			asked, err := RunScenario(path, data, ScenarioOptions{Compile: loadOnce, World: Options{
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

// again is a job like another; nil: that cannot be told.
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
