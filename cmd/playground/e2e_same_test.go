package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/sim"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// TestE2ESame runs random worlds of Jobs in a cluster and in simulate. All Jobs exist before the scheduler starts. The order in which their
// controllers create the pods is arbitrary.
//
// If many Jobs are admitted together, both admit the same Jobs and place the same number of pods of each. Both give the same reasons for
// waiting. All pods have the same size, and no two Jobs have the same priority. Therefore the policy's order alone decides. If the queue
// can hold one Job at a time, the order of admission is the same.
func TestE2ESame(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("together, %d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 26))
			s := newSame(t, r, 1+r.IntN(2), together(r))
			want := fates(s.simulate(sim.RunOptions{Cycles: 5}))
			s.StartScheduler()
			s.Wait("the cluster is as it was simulated", func() error {
				live, err := s.jobsNow()
				if err != nil {
					return err
				}
				if diff := cmp.Diff(want, live); diff != "" {
					return fmt.Errorf("(-simulated +live)\n%s\n%s", diff, s.text)
				}
				return nil
			})
		})
	}
	t.Run("one by one", func(t *testing.T) {
		t.Parallel()
		s := newSame(t, rand.New(rand.NewPCG(7, 26)), 2, oneByOne)
		simulated, report := s.simulate(sim.RunOptions{Idle: true})
		var want []string
		for _, p := range report.Plans {
			for _, a := range p.Admits {
				want = append(want, simulated.Cluster().Jobs[a.Job].Name)
			}
		}
		if len(want) != sameJobs {
			t.Fatalf("simulated, %d of %d Jobs were let in: %v", len(want), sameJobs, want)
		}
		admitted := s.admissions()
		s.StartScheduler()
		s.Wait("all Jobs are let in", func() error {
			if got := admitted(); len(got) < len(want) {
				return fmt.Errorf("%d of %d: %v", len(got), len(want), got)
			}
			return nil
		})
		if diff := cmp.Diff(want, admitted()); diff != "" {
			t.Errorf("let in, in this order (-simulated +live):\n%s\n%s", diff, s.text)
		}
	})
}

// sameJobs is the number of Jobs in a world.
const sameJobs = 6

// same is a world that is also simulated.
type same struct {
	*world
	text string // of all objects except the nodes
}

// newSame returns a world with nodes and Jobs, each with its PodGroup, and without a scheduler. jobs writes what differs between Jobs, by
// their number.
func newSame(t *testing.T, r *rand.Rand, nodes int, jobs func(i int) string) *same {
	t.Helper()
	w := newWorld(t)
	w.Nodes(nodes, fmt.Sprintf("cpu=%d,memory=64Gi", 4+2*r.IntN(3)))
	s := &same{world: w, text: w.Expand(sameText(r.Perm(sameJobs), jobs))}
	w.Apply(s.text)
	t.Cleanup(func() {
		err := w.Client.DeleteAllOf(context.WithoutCancel(w.Context), &schedulingv1.PriorityClass{}, client.MatchingLabels{worldLabel: w.Name})
		if err != nil {
			t.Errorf("clear the priority classes: %v", err)
		}
	})
	w.StartControllers()
	w.Wait("every Job has its PodGroup", func() error {
		list := &schedulingv1beta1.PodGroupList{}
		if err := w.Client.List(w.Context, list, client.InNamespace(w.Namespace)); err != nil {
			return err
		}
		if len(list.Items) < sameJobs {
			return fmt.Errorf("%d of %d", len(list.Items), sameJobs)
		}
		return nil
	})
	return s
}

// sameText returns a policy, a queue, and a Job of each priority. Reservations last longer than in the built-in allocate, so that the
// result does not depend on how fast a machine creates pods.
func sameText(priorities []int, jobs func(i int) string) string {
	var out strings.Builder
	out.WriteString(`
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: "${policy}"}
spec:
  mode: Active
  pipeline: [enqueue, patient]
  actions:
  - name: patient
    steps:
    - verb: place
      jobs: "job.phase != 'Pending'"
      gates: [overused, allocatable]
      turn: untilReady
      awaitPods: 1m
      onNoNode: "job.minMember < job.taskCount"
  tiers:
  - name: first
    tables: [{name: priority}, {name: gang}]
  - name: second
    tables:
    - {name: predicates}
    - {name: proportion}
    - {name: nodeorder}
    - name: house
      inline:
        jobEnqueueable:
        - name: small
          expression: "job.request.cpu <= 6.0"
          message: "{{job.name}} of team {{job.labels['team']}} asks for {{job.request}}"
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: "${queue.q}"}
spec: {weight: 1, capability: {cpu: 10}}
`)
	for i, value := range priorities {
		fmt.Fprintf(&out, `
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: "${world}-p%[1]d", labels: {%[2]s: "${world}"}}
value: %[3]d
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: j%[1]d, namespace: "${namespace}", labels: {team: t%[1]d}}
spec:
  schedulerName: "${scheduler}"
  queue: "${queue.q}"
  priorityClassName: "${world}-p%[1]d"
%[4]s`, i, worldLabel, 10+value, jobs(i))
	}
	return out.String()
}

// together returns Jobs with one or two tasks, which are gangs as a whole or need only one pod. Some exceed the cluster.
func together(r *rand.Rand) func(i int) string {
	return func(int) string {
		var out strings.Builder
		if r.IntN(2) == 0 {
			out.WriteString("  minAvailable: 1\n")
		}
		out.WriteString("  tasks:\n")
		for task := range 1 + r.IntN(2) {
			fmt.Fprintf(&out,
				"  - {name: t%d, replicas: %d, template: {spec: {containers: [{name: c, image: c, resources: {requests: {cpu: 2}}}]}}}\n",
				task, 1+r.IntN(2))
		}
		return out.String()
	}
}

// oneByOne returns Jobs that end, of which the queue's capability holds one at a time.
func oneByOne(int) string {
	return `  minAvailable: 3
  tasks:
  - {name: t, replicas: 3, template: {metadata: {annotations: {` + simAnnotation +
		`: "{run: 1s}"}}, spec: {containers: [{name: c, image: c, resources: {requests: {cpu: 2}}}]}}}
`
}

// simulate simulates the world's objects on its nodes.
func (s *same) simulate(o sim.RunOptions) (*sim.World, *sim.Report) {
	s.t.Helper()
	nodes, err := s.Kube.CoreV1().Nodes().List(s.Context, metav1.ListOptions{LabelSelector: s.NodeSelector})
	if err != nil {
		s.t.Fatal(err)
	}
	text := s.text
	for i := range nodes.Items {
		n := &nodes.Items[i]
		n.APIVersion, n.Kind, n.ManagedFields = "v1", "Node", nil
		node, err := yaml.Marshal(n)
		if err != nil {
			s.t.Fatal(err)
		}
		text += "\n---\n" + string(node)
	}
	simulated := sim.NewWorld(sim.Options{Volumes: volume.New, SchedulerNames: []string{s.SchedulerName}})
	policies, issues := simulated.Load(manifest.Source{Name: "world.yaml", Data: []byte(text)})
	if issues.Err() != nil || len(policies) != 1 {
		s.t.Fatalf("%d policies, %v", len(policies), issues)
	}
	if simulated.Policy, issues = policy.Load(policies[0].Doc); issues.Err() != nil {
		s.t.Fatal(issues)
	}
	report, err := simulated.RunFor(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return simulated, report
}

// fate is the compared result of a Job.
type fate struct {
	LetIn  bool
	Placed int      // number of pods with a node
	Why    string   // why it waits
	Pods   []string // why each pod waits, without the names of nodes, sorted
}

var nodeName = regexp.MustCompile(`node e2e\S*-node-[^\s,:]+`)

func sortedWithoutNodes(texts []string) []string {
	for i := range texts {
		texts[i] = nodeName.ReplaceAllString(texts[i], "node ...")
	}
	slices.Sort(texts)
	return texts
}

// fates returns the results of the Jobs in a simulated world, by name.
func fates(simulated *sim.World, report *sim.Report) map[string]fate {
	out := map[string]fate{}
	last := report.Plans[len(report.Plans)-1]
	for _, j := range simulated.Cluster().JobsByKey() {
		one := fate{LetIn: j.Phase != model.PhasePending}
		for _, t := range j.Tasks {
			if t.NodeName != "" {
				one.Placed++
			}
		}
		for _, st := range last.Jobs {
			if st.Job == j.Key && st.Condition != nil && st.Condition.Type == string(schedulingv1beta1.PodGroupUnschedulableType) {
				one.Why = st.Condition.Message
			}
		}
		for i := range last.Waits {
			if w := &last.Waits[i]; w.Job == j.Key && w.Task != "" {
				one.Pods = append(one.Pods, w.String())
			}
		}
		one.Pods = sortedWithoutNodes(one.Pods)
		out[j.Name] = one
	}
	return out
}

// jobsNow returns the results of the cluster's Jobs.
func (s *same) jobsNow() (map[string]fate, error) {
	jobs, groups := &batchv1alpha1.JobList{}, &schedulingv1beta1.PodGroupList{}
	for _, list := range []client.ObjectList{jobs, groups} {
		if err := s.list(list); err != nil {
			return nil, err
		}
	}
	byName := map[string]*schedulingv1beta1.PodGroup{}
	for i := range groups.Items {
		byName[groups.Items[i].Name] = &groups.Items[i]
	}
	pods, err := s.Kube.CoreV1().Pods(s.Namespace).List(s.Context, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	placed, waiting := map[string]int{}, map[string][]string{}
	for i := range pods.Items {
		p := &pods.Items[i]
		job := p.Labels[batchv1alpha1.JobNameKey]
		if p.Spec.NodeName != "" {
			placed[job]++
			continue
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled {
				waiting[job] = append(waiting[job], c.Message)
			}
		}
	}
	out := map[string]fate{}
	for i := range jobs.Items {
		j := &jobs.Items[i]
		g := byName[objects.GroupName(j)]
		one := fate{LetIn: objects.Admitted(g), Placed: placed[j.Name], Pods: sortedWithoutNodes(waiting[j.Name])}
		if g != nil {
			for _, c := range g.Status.Conditions {
				if c.Type == schedulingv1beta1.PodGroupUnschedulableType && c.Status == "True" {
					one.Why = c.Message
				}
			}
		}
		out[j.Name] = one
	}
	return out, nil
}

// admissions watches from now on which Jobs are admitted, in the order in which the API server stored this.
func (s *same) admissions() (soFar func() []string) {
	s.t.Helper()
	groups := &schedulingv1beta1.PodGroupList{}
	if err := s.list(groups); err != nil {
		s.t.Fatal(err)
	}
	watching, err := client.NewWithWatch(s.Config, client.Options{Scheme: s.Client.Scheme()})
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := watching.Watch(s.Context, &schedulingv1beta1.PodGroupList{}, client.InNamespace(s.Namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: groups.ResourceVersion}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(w.Stop)
	var mu sync.Mutex
	var names []string
	go func() {
		for e := range w.ResultChan() {
			g, ok := e.Object.(*schedulingv1beta1.PodGroup)
			if !ok || !objects.Admitted(g) {
				continue
			}
			mu.Lock()
			if name := g.OwnerReferences[0].Name; !slices.Contains(names, name) {
				names = append(names, name)
			}
			mu.Unlock()
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(names)
	}
}
