package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// jobText returns a Job with one task.
func jobText(name, meta string, replicas int) string {
	return fmt.Sprintf("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: %s%s}\n"+
		"spec: {tasks: [{name: w, replicas: %d, template: {spec: {containers: [{name: c}]}}}]}\n", name, meta, replicas)
}

// loaded returns the objects of documents, and the issues, if at most 100 pods can be simulated.
func loaded(docs ...string) (ids []string, issues source.Issues) {
	objects, issues := Load(Options{MaxObjects: 100}, Source{Name: "f", Data: []byte(strings.Join(docs, "---\n"))})
	for _, i := range objects.Items {
		ids = append(ids, i.ID().String())
	}
	return ids, issues
}

// messages returns severity and message of each issue.
func messages(issues source.Issues) (out []string) {
	for _, i := range issues {
		out = append(out, i.Severity.String()+": "+i.Message+"; "+i.Hint)
	}
	return out
}

// TestJobsTogetherAreBounded loads Jobs that each create few enough pods, but together too many. The largest ones are left out, and only
// those that a user wrote for the simulation are mistakes.
func TestJobsTogetherAreBounded(t *testing.T) {
	t.Parallel()
	const hint = "; simulate fewer Jobs at once, or lower their replicas"
	ids, issues := loaded(jobText("a", ", uid: a", 99), jobText("b", "", 98), jobText("good", ", uid: c", 4), jobText("d", ", uid: d", 90))
	if diff := cmp.Diff([]string{"Job default/good", "Job default/d"}, ids); diff != "" {
		t.Errorf("objects (-want +got)\n%s", diff)
	}
	want := []string{
		"warning: Job default/a is left out: creates 99 pods, and all Jobs together create 291 pods: more than can be simulated, 100" + hint,
		"error: Job default/b: creates 98 pods, and all Jobs together create 291 pods: more than can be simulated, 100" + hint,
	}
	if diff := cmp.Diff(want, messages(issues)); diff != "" {
		t.Errorf("issues (-want +got)\n%s", diff)
	}
}

// TestPodsThatExistAreNotCreated loads Jobs that create no pods: their pods exist, or the Jobs have ended.
func TestPodsThatExistAreNotCreated(t *testing.T) {
	t.Parallel()
	docs := []string{jobText("a", "", 99), jobText("b", "", 2), jobText("ended", "", 99) + "status: {state: {phase: Completed}}\n"}
	for n := range 2 {
		docs = append(docs, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: b-w-%d, ownerReferences: [{"+
			"apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: b, uid: b, controller: true}]}\n"+
			"spec: {containers: [{name: c}]}\n", n))
	}
	ids, issues := loaded(docs...)
	if len(ids) != len(docs) || len(issues) > 0 {
		t.Errorf("loaded %v, with %v", ids, issues)
	}
}

// TestWorldsTogetherAreBounded loads documents of the short format that each stand for few enough objects, but together for too many.
func TestWorldsTogetherAreBounded(t *testing.T) {
	t.Parallel()
	const world = "apiVersion: sim.celsius.dev/v1alpha1\nkind: World\nnodes: [{name: \"%s[1-60]\"}]\n"
	_, issues := loaded(fmt.Sprintf(world, "a"), fmt.Sprintf(world, "b"))
	if want := []string{"error: all documents of kind World stand for more than 100 objects; "}; !cmp.Equal(want, messages(issues)) {
		t.Errorf("issues %v", issues)
	}
}

// TestSecondOfAClusterIsLeftOut loads two pods and two policies of one name.
func TestSecondOfAClusterIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		first, second string
		want          source.Severity
	}{
		{", uid: a", ", uid: b", source.Warning},
		{"", ", uid: b", source.Error},
		{", uid: a", "", source.Error},
		{"", "", source.Error},
	} {
		const pod, policy = "apiVersion: v1\nkind: Pod\nmetadata: {name: p%s}\nspec: {containers: [{name: c}]}\n",
			"apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: p%s}\n"
		objects, issues := Load(Options{}, Source{Name: "f", Data: []byte(strings.Join([]string{
			fmt.Sprintf(pod, test.first), fmt.Sprintf(pod, test.second), fmt.Sprintf(policy, test.first), fmt.Sprintf(policy, test.second),
		}, "---\n"))})
		if len(issues) != 2 || issues[0].Severity != test.want || issues[1].Severity != test.want {
			t.Errorf("%q, %q: issues %v", test.first, test.second, issues)
		}
		if test.want != source.Warning {
			continue
		}
		if len(objects.Items) != 1 || objects.Items[0].Object.GetUID() != "a" || len(objects.Policies) != 1 {
			t.Errorf("objects %v, policies %v", objects.Items, objects.Policies)
		}
		want := "Pod default/p is left out: Pod default/p is there twice; the first is at f:1"
		if issues[0].Message != want && issues[1].Message != want {
			t.Errorf("issues %v, want %q", issues, want)
		}
	}
}
