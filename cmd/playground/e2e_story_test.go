package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The user's story with kubectl only: jobs from their creation to their end, commands, and queues.

// storyJob is a job of one task that runs until it is told to end.
const storyJob = `
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: work}
spec:
  schedulerName: ${scheduler}
  queue: ${queue.a}
  tasks:
  - name: main
    replicas: 2
    template:
      metadata: {annotations: {celsius.dev/sim: '{run: 1h}'}}
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: main, resources: {requests: {cpu: "1", memory: 1Gi}}}
`

// jobLike returns storyJob under another name, with words replaced: old, new, old, new.
func jobLike(name string, oldnew ...string) string {
	return strings.NewReplacer(append(oldnew, "{name: work}", "{name: "+name+"}")...).Replace(storyJob)
}

// queue creates a queue, and returns its name in the cluster.
func (w *world) queue(name string, weight int) string {
	w.t.Helper()
	w.Apply(fmt.Sprintf("{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: ${queue.%s}}, spec: {weight: %d}}", name,
		weight))
	return w.Queue(name)
}

// refused creates objects with kubectl, which must fail, and returns the message.
func (w *world) refused(yaml string) string {
	w.t.Helper()
	r := w.TryKubectl(yaml, "create", "-f", "-")
	if r.Code == 0 {
		w.t.Fatalf("this is taken, and should be refused:\n%s\n%s", yaml, r.Out)
	}
	return r.Err
}

// phase waits until the job is in a phase.
func (w *world) phase(job, phase string) {
	w.t.Helper()
	w.Kubectl("wait", "vcjob/"+job, "--for=jsonpath={.status.state.phase}="+phase)
}

// field reads one field of an object by JSONPath.
func (w *world) field(object, path string) string {
	w.t.Helper()
	return w.Kubectl("get", object, "-o", "jsonpath={"+path+"}")
}

// command sends a Command to an object. If the object is a queue, it waits for the answer. It applies a Command on a queue again while the
// queue has no event about it. The controllers of every world take such Commands, and those of another world may end directly after they
// took one.
func (w *world) command(action, kind, name string) {
	w.t.Helper()
	if kind != "Queue" {
		w.Apply(w.commandText(action, kind, name))
		return
	}
	w.guarded()
	const tries, within = 3, 30 * time.Second
	for range tries {
		w.Apply(w.commandText(action, kind, name))
		for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(pollEvery) {
			if w.event("Queue/"+name, func(e corev1.Event) bool { return e.Reason == action }) == nil {
				return
			}
		}
	}
	w.t.Fatalf("%s of queue %s: no event about it after it was asked for %d times", action, name, tries)
}

// guarded waits until Commands on queues are executed. Their guard was created with the cluster.
func (w *world) guarded() {
	w.t.Helper()
	w.Wait("what guards Commands on queues is in force for longer than API servers take to obey it", func() error {
		const settles = 6 * time.Second // plus one second, because times are stored in whole seconds
		since, err := time.Parse(time.RFC3339, w.field("validatingadmissionpolicybinding/commands.celsius.dev", ".metadata.creationTimestamp"))
		if age := time.Since(since); err == nil && age < settles {
			err = fmt.Errorf("it is there for %s", age.Truncate(time.Second))
		}
		return err
	})
}

func (w *world) commandText(action, kind, name string) string {
	w.t.Helper()
	of := map[string]struct{ version, resource string }{
		"Job": {"batch.volcano.sh/v1alpha1", "vcjob"}, "Queue": {"scheduling.volcano.sh/v1beta1", "queue"},
	}[kind]
	return fmt.Sprintf(`
apiVersion: bus.volcano.sh/v1alpha1
kind: Command
metadata: {name: %s}
action: %s
target: {apiVersion: %s, kind: %s, name: %s, uid: %s}
`, strings.ToLower(action), action, of.version, kind, name, w.field(of.resource+"/"+name, ".metadata.uid"))
}

// TestE2EJobFromDefaultsToCollection runs a job of three tasks through its whole life.
func TestE2EJobFromDefaultsToCollection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	w.Nodes(2, "cpu=1500m,memory=16Gi") // three cores are enough for the admission of the job, but each node fits one pod
	w.Apply(`
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  schedulerName: ${scheduler}
  queue: ${queue.a}
  ttlSecondsAfterFinished: 3
  tasks:
  - name: chief
    replicas: 1
    template: &pod
      metadata: {annotations: {celsius.dev/sim: '{run: 3s}'}}
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: main, resources: {requests: {cpu: "1", memory: 1Gi}}}
  - name: ps
    replicas: 1
    template: *pod
  - replicas: 2
    minAvailable: 1
    template: *pod
`)

	// 1. Defaults: minAvailable is the sum of the tasks' pods, and the third task gets a name.
	for path, want := range map[string]string{
		".spec.minAvailable":          "3",
		".spec.maxRetry":              "3",
		".spec.tasks[*].name":         "chief ps default2",
		".spec.tasks[*].minAvailable": "1 1 1",
		".spec.tasks[*].maxRetry":     "3 3 3",
	} {
		if got := w.field("vcjob/train", path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}

	// 2. The job has its PodGroup, and waits: two pods fit, and three must start together. No pod is bound, and the job states why.
	group := "train-" + w.field("vcjob/train", ".metadata.uid")
	w.Kubectl("wait", "podgroup/"+group, "--for=create")
	if got, want := w.field("podgroup/"+group, ".spec.minMember"), "3"; got != want {
		t.Errorf("minMember is %s, want %s", got, want)
	}
	w.Kubectl("wait", "vcjob/train", "--for=jsonpath={.status.state.reason}")
	w.Kubectl("wait", "pod/train-chief-0", "--for=create")
	w.Kubectl("wait", "pod/train-chief-0", "--for=condition=PodScheduled=False")
	if got := w.field("pods", ".items[*].spec.nodeName"); got != "" {
		t.Errorf("part of a gang is bound: %s", got)
	}
	if got := w.field("vcjob/train", ".status.state.phase"); got != "Pending" {
		t.Errorf("the job is %s, want Pending", got)
	}

	// 3. With another node all pods start, and run to their end.
	w.Nodes(1, "cpu=8,memory=16Gi")
	w.phase("train", "Running")
	if got := strings.Fields(w.field("pods", ".items[*].spec.nodeName")); len(got) < 3 {
		t.Errorf("the job runs with pods on %v, want three at least", got)
	}
	w.phase("train", "Completed")

	// 4. Three seconds later the job is deleted, with everything that belongs to it.
	w.Kubectl("wait", "vcjob/train", "--for=delete")
	w.Kubectl("wait", "pod", "--all", "--for=delete")
	w.Kubectl("wait", "podgroup", "--all", "--for=delete")
}

// TestE2ERetries lets the pods of a job fail each time. The job restarts until maxRetry, and is then Failed.
func TestE2ERetries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	w.Nodes(1, "cpu=8,memory=16Gi")
	w.Apply(jobLike("work", "{run: 1h}", "{run: 1s, exitCodes: {main: 1}}",
		"  tasks:", "  maxRetry: 2\n  policies:\n  - {event: PodFailed, action: RestartJob}\n  tasks:"))
	w.phase("work", "Failed")
	if got := w.field("vcjob/work", ".status.retryCount"); got != "2" {
		t.Errorf("retryCount is %s, want 2", got)
	}
	if got, want := w.field("vcjob/work", ".status.conditions[*].status"),
		"Pending Running Restarting Pending Running Restarting Failed"; got != want {
		t.Errorf("the job went through %s, want %s", got, want)
	}
}

// TestE2ECommands stops a job, starts it again, and terminates jobs.
func TestE2ECommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	w.Nodes(1, "cpu=8,memory=16Gi")
	for _, ends := range []struct{ name, action, phase string }{
		{"terminated", "TerminateJob", "Terminated"},
		{"completed", "CompleteJob", "Completed"},
		{"aborted", "AbortJob", "Aborted"},
	} {
		w.Apply(jobLike(ends.name, "{run: 1h}", "{run: 1h, terminate: 1s}"))
		w.phase(ends.name, "Running")
		w.command(ends.action, "Job", ends.name)
		w.phase(ends.name, ends.phase)
		w.Kubectl("wait", "pod", "-l", "volcano.sh/job-name="+ends.name, "--for=delete")
	}
	w.command("ResumeJob", "Job", "aborted")
	w.phase("aborted", "Running")
	if got := w.field("commands", ".items[*].metadata.name"); got != "" {
		t.Errorf("commands are left: %s", got)
	}
}

// TestE2EQueueClosesAndOpens closes a queue while one of its jobs runs. The queue accepts no new job, is Closed when the job has ended, and
// accepts jobs again when it is opened.
func TestE2EQueueClosesAndOpens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.Nodes(1, "cpu=8,memory=16Gi")
	queue := w.queue("a", 1)
	w.Apply(jobLike("work"))
	w.phase("work", "Running")
	w.command("CloseQueue", "Queue", queue)
	w.Kubectl("wait", "queue/"+queue, "--for=jsonpath={.status.state}=Closing")
	if said := w.refused(jobLike("next")); !strings.Contains(said, queue) || !strings.Contains(said, "spec.queue") {
		t.Errorf("the refusal does not name the queue %s: %s", queue, said)
	}
	w.Kubectl("delete", "vcjob/work")
	w.Kubectl("wait", "queue/"+queue, "--for=jsonpath={.status.state}=Closed")
	w.command("OpenQueue", "Queue", queue)
	w.Kubectl("wait", "queue/"+queue, "--for=jsonpath={.status.state}=Open")
	w.Apply(jobLike("next"))
	w.phase("next", "Running")
}

// TestE2EQueueTree closes a queue with children. They are closed with it, cannot be opened before it, and are opened with it.
func TestE2EQueueTree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartControllers()
	top := w.queue("top", 1)
	w.Apply(`
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: "${queue.below}"}, spec: {weight: 1, parent: "${queue.top}"}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: "${queue.a}"}, spec: {weight: 1, parent: "${queue.below}"}}
`)
	state := func(state string, queues ...string) {
		t.Helper()
		for _, queue := range queues {
			w.Kubectl("wait", "queue/"+w.Queue(queue), "--for=jsonpath={.status.state}="+state)
		}
	}
	w.Kubectl("wait", "queue/"+top, "--for=jsonpath={.spec.parent}=root")
	state("Open", "top", "below", "a")
	w.command("CloseQueue", "Queue", top)
	state("Closed", "top", "below", "a")
	for queue, want := range map[string]string{"top": "", "below": "true", "a": "true"} {
		if got := w.field("queue/"+w.Queue(queue), `.metadata.annotations.volcano\.sh/closed-by-parent`); got != want &&
			(want != "" || got != "false") {
			t.Errorf("queue %s is closed by the one above it: %q, want %q", queue, got, want)
		}
	}
	if said := w.refused(jobLike("next")); !strings.Contains(said, w.Queue("a")) {
		t.Errorf("the refusal does not name the queue: %s", said)
	}
	w.command("OpenQueue", "Queue", w.Queue("below"))
	w.Wait("a queue that cannot be opened says why", func() error { return w.warned("Queue/"+w.Queue("below"), "open that first") })
	state("Closed", "below")
	w.command("OpenQueue", "Queue", top)
	state("Open", "top", "below", "a")
}

// TestE2EQueueMarked removes the mark of a queue whose shares were once too large. The condition then states that they fit, in the same
// status that the scheduler and the queue controller write.
func TestE2EQueueMarked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartControllers()
	w.Apply(`
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: "${queue.top}"}, spec: {deserved: {cpu: "8"}}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: "${queue.a}"}
spec: {parent: "${queue.top}", deserved: {cpu: "6"}}
`)
	a := "queue/" + w.Queue("a")
	w.Kubectl("wait", a, "--for=jsonpath={.status.state}=Open")
	w.Kubectl("patch", a, "--subresource=status", "--type=merge", "-p", `{"status": {"conditions": [{"type": "SharesOverParent",
		"status": "True", "reason": "SharesOverParent", "message": "too much", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)
	w.Kubectl("patch", a, "--type=merge", "-p", `{"spec": {"deserved": {"cpu": "5"}}}`)
	w.Kubectl("wait", a, "--for=condition=SharesOverParent=False")
	if got := w.Kubectl("get", a, "-o", "wide"); !strings.Contains(got, "SHARES-OVER-PARENT") || !strings.Contains(got, "False") {
		t.Errorf("it is shown as\n%s", got)
	}
	if got := w.Kubectl("describe", a); !strings.Contains(got, "fits again") || w.field(a, ".status.state") != "Open" {
		t.Errorf("it is described as\n%s", got)
	}
}

// TestE2EHugeJob has a job that requests as many pods as admission permits. They are created in several steps, with little memory.
// Meanwhile another job gets its pods. The existing pods are deleted when the job is terminated.
func TestE2EHugeJob(t *testing.T) {
	t.Parallel()
	const most, bytes = 100_000, 400 << 20
	w := newWorld(t)
	w.StartScheduler()
	controllers := w.Process("controllers", "--scheduler-name", "${scheduler}", "--leader-elect=false", "--metrics-address", "0",
		"--health-address", "0")
	w.queue("a", 1)
	w.Nodes(1, "cpu=8,memory=16Gi")
	huge := func(replicas int) string {
		return jobLike("huge", "replicas: 2", fmt.Sprintf("replicas: %d\n    minAvailable: 1", replicas), "restartPolicy: Never",
			"restartPolicy: Never\n        nodeSelector: {no: such}")
	}
	if said := w.refused(huge(2_000_000_000)); !strings.Contains(said, "ask for 2000000000 pods together, and a job may have 100000 here") {
		t.Errorf("two billions of pods: %s", said)
	}
	w.Apply(huge(most))
	made := func() int { return len(w.Pods("volcano.sh/job-name=huge")) }
	atLeast := func(n int) {
		t.Helper()
		w.Wait(fmt.Sprintf("%d pods of the huge job are there", n), func() error {
			if got := made(); got < n {
				return fmt.Errorf("there are %d", got)
			}
			return nil
		})
	}
	atLeast(1)
	w.Apply(jobLike("small"))
	w.phase("small", "Running")
	atLeast(600) // more than one reconcile creates
	w.command("AbortJob", "Job", "huge")
	w.phase("huge", "Aborted")
	w.Kubectl("wait", "pod", "-l", "volcano.sh/job-name=huge", "--for=delete")
	if got := made(); got > 0 {
		t.Errorf("%d pods are made still", got)
	}
	if peak := controllers.PeakMemory(); peak > bytes {
		t.Errorf("the controllers took %d MB", peak>>20)
	} else {
		t.Logf("the controllers took %d MB", peak>>20)
	}
}

// TestE2EQueuesShareByWeight has two queues of weights 3 and 1 that request more than the cluster has: they get 12 and 4 of 16 cores.
func TestE2EQueuesShareByWeight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	// Both jobs can be admitted, but no pod can be placed until all of them exist.
	node := w.Nodes(1, "cpu=16,memory=64Gi")[0]
	w.Kubectl("taint", "node", node, "not=yet:NoSchedule")
	for name, weight := range map[string]int{"three": 3, "one": 1} {
		w.queue(name, weight)
		w.Apply(jobLike(name, "${queue.a}", "${queue."+name+"}", "    replicas: 2", "    replicas: 20\n    minAvailable: 1"))
	}
	w.Wait("all pods are there", func() error {
		if n := len(w.Pods("")); n != 40 {
			return fmt.Errorf("there are %d of 40", n)
		}
		return nil
	})
	w.Kubectl("taint", "node", node, "not=yet:NoSchedule-")
	bound := func(job string) (n int) {
		for _, pod := range w.Pods("volcano.sh/job-name=" + job) {
			if pod.Spec.NodeName != "" {
				n++
			}
		}
		return n
	}
	w.Wait("the node is full", func() error {
		if n := bound("three") + bound("one"); n != 16 {
			return fmt.Errorf("%d pods of 16 are bound", n)
		}
		return nil
	})
	if three, one := bound("three"), bound("one"); three != 12 || one != 4 {
		t.Errorf("the queues of weight 3 and 1 have %d and %d cores of 16, want 12 and 4", three, one)
	}
}
