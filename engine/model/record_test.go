package model

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// shared returns a cluster with a node of two devices and two queues, each with a group.
func shared() *Cluster {
	c := NewCluster(Options{})
	c.Apply(upserts(
		node("n1", "cpu=8 memory=9 pods=9", func(n *corev1.Node) {
			n.Annotations[NodeGPUsAnnotation], n.Annotations[GPUMemoryAnnotation] = "2", "16"
		}),
		queue("q1"), queue("q2"), group("g", "q1"), group("other", "q2"),
	)...)
	return c
}

// decide binds a waiting pod, and returns it as the API server then has it.
func decide(c *Cluster, p *corev1.Pod, gpus ...int) *corev1.Pod {
	x := c.Begin()
	t := c.Tasks[Key(p.Namespace, p.Name)]
	x.Allocate(t, c.Nodes.Index["n1"], gpus)
	x.Bind(t)
	x.Commit()
	p = p.DeepCopy()
	p.Spec.NodeName, p.Annotations[RecordAnnotation] = "n1", t.Record().String()
	return p
}

// tampered returns edits by which a pod's owner may change it after the decision, except for its record.
func tampered() map[string]func(*corev1.Pod) {
	return map[string]func(*corev1.Pod){
		"a smaller share":        annotated(GPUMilliAnnotation, "1"),
		"a larger share":         annotated(GPUMilliAnnotation, "1000", GPUCountAnnotation, "2"),
		"no share":               func(p *corev1.Pod) { delete(p.Annotations, GPUMilliAnnotation) },
		"a share that is none":   annotated(GPUMilliAnnotation, "x"),
		"less memory":            annotated(GPUMemoryAnnotation, "1"),
		"another device":         annotated(GPUsAnnotation, "1"),
		"other models":           annotated(GPUModelsAnnotation, "T4"),
		"another group":          annotated(GroupAnnotation, "other"),
		"no group":               func(p *corev1.Pod) { delete(p.Annotations, GroupAnnotation) },
		"a higher priority":      annotated(PriorityAnnotation, "99"),
		"safe from others":       annotated(PreemptableKey, "false"),
		"safe by a label":        func(p *corev1.Pod) { p.Labels[PreemptableKey] = "false" },
		"another revocable zone": annotated(RevocableZoneAnnotation, "z"),
	}
}

// look returns what a task counts for, and the fields that its permissions depend on.
func look(t *testing.T, c *Cluster) string {
	t.Helper()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	task := c.Tasks["a/p"]
	return task.Record().String() + task.GPUTag + task.Job.Key + c.Dims.Text(c.Queues["q1"].Allocated) + "; " +
		c.Dims.Text(c.Queues["q2"].Allocated) + "; " +
		text(c.Nodes.GPUs[c.Nodes.Index["n1"]])
}

// TestWhatWasDecidedIsKept checks that a decision about a pod stays the same, whatever its owner writes. This is so in the scheduler that
// decided, before and after the pod shows the decision, and in the next scheduler.
func TestWhatWasDecidedIsKept(t *testing.T) {
	for name, tamper := range tampered() {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			c := shared()
			waits := pod("p", "cpu=1", annotated(GPUMilliAnnotation, "900", GPUMemoryAnnotation, "8", PriorityAnnotation, "5"))
			c.Apply(upserts(waits)...)
			bound := decide(c, waits, 0)
			want := look(t, c)

			early := waits.DeepCopy()
			tamper(early)
			c.Apply(upserts(early)...)
			if got := look(t, c); got != want {
				t.Errorf("changed before it is bound\n got %s\nwant %s", got, want)
			}
			c.Apply(upserts(bound)...)
			late := bound.DeepCopy()
			tamper(late)
			c.Apply(upserts(late)...)
			if got := look(t, c); got != want {
				t.Errorf("changed later\n got %s\nwant %s", got, want)
			}
			without := late.DeepCopy()
			delete(without.Annotations, RecordAnnotation) // if no admission policy prevents it
			c.Apply(upserts(without)...)
			if got := look(t, c); got != want {
				t.Errorf("without its record\n got %s\nwant %s", got, want)
			}
			next := shared()
			next.Apply(upserts(late)...)
			if got := look(t, next); got != want {
				t.Errorf("the next scheduler has\n got %s\nwant %s", got, want)
			}
		})
	}
}

// TestAForgottenDecisionIsNotKept checks that a pod whose binding was refused is what its object states.
func TestAForgottenDecisionIsNotKept(t *testing.T) {
	c := shared()
	p := pod("p", "cpu=1", annotated(GPUMilliAnnotation, "900"))
	c.Apply(upserts(p)...)
	decide(c, p, 0)
	changed := pod("p", "cpu=1", annotated(GPUMilliAnnotation, "100", GroupAnnotation, "other"))
	c.Apply(Delta{Op: Forget, Object: changed})
	if task := c.Tasks["a/p"]; task.Status != Pending || task.GPUMilli != 100 || task.Job.Key != "a/other" || task.GPUs != nil {
		t.Errorf("it is %s with %d thousandths of %v in %s", task.Status, task.GPUMilli, task.GPUs, task.Job.Key)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// TestARecordOfAnotherCountsForNothing checks that a record has no effect on another pod or node. Without a valid record, a share counts as
// the whole device.
func TestARecordOfAnotherCountsForNothing(t *testing.T) {
	for name, test := range map[string]struct {
		record string
		wrong  string
	}{
		"none": {"", ""},
		"of another pod": {
			`{"uid":"uid-x","node":"n1","group":"other","priority":9,"gpus":[0],"gpuCount":1,"gpuMilli":1}`,
			"is of pod uid-x on node n1",
		},
		"of another node":  {`{"uid":"uid-p","node":"n2","group":"other","priority":9,"gpus":[0],"gpuCount":1,"gpuMilli":1}`, "on node n2"},
		"no record at all": {`0,1`, "is no record of a binding"},
		"too many devices": {`{"uid":"uid-p","node":"n1","group":"g","gpuCount":9999,"gpuMilli":1}`, "nobody can hold"},
		"negative":         {`{"uid":"uid-p","node":"n1","group":"g","gpus":[-1],"gpuCount":1,"gpuMilli":1}`, "nobody can hold"},
		"a device twice":   {`{"uid":"uid-p","node":"n1","group":"g","gpus":[0,0],"gpuCount":2,"gpuMilli":1}`, "nobody can hold"},
		"less than none":   {`{"uid":"uid-p","node":"n1","group":"g","gpus":[0],"gpuCount":1,"gpuMilli":-1000}`, "nobody can hold"},
		"cards beside numbers": {
			`{"uid":"uid-p","node":"n1","group":"g","gpus":[0],"cards":["x"],"gpuCount":1,"gpuMilli":1}`, "nobody can hold",
		},
		"too few cards":    {`{"uid":"uid-p","node":"n1","group":"g","cards":["x"],"gpuCount":2,"gpuMilli":1}`, "nobody can hold"},
		"the wrong number": {`{"uid":"uid-p","node":"n1","group":"g","gpus":[],"gpuCount":-1}`, "nobody can hold"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			c := shared()
			p := pod("p", "cpu=1", annotated(GPUMilliAnnotation, "300", GPUMemoryAnnotation, "1"))
			p.Spec.NodeName = "n1"
			if test.record != "" {
				p.Annotations[RecordAnnotation] = test.record
			}
			errs := c.Apply(upserts(p)...)
			if (len(errs) > 0) != (test.wrong != "") || len(errs) > 0 && !strings.Contains(errs[0].Error(), test.wrong) {
				t.Errorf("told was %v, want %q", errs, test.wrong)
			}
			task := c.Tasks["a/p"]
			if g := c.Nodes.GPUs[0][0]; g.Free != 0 || g.MemoryFree != 0 || task.Job.Key != "a/g" || task.Priority != 1 {
				t.Errorf("of the device %+v is left; the task is in %s with priority %d", g, task.Job.Key, task.Priority)
			}
			if err := c.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWhatIsBoundStaysInItsQueue checks that bound pods count in the queue in which they were bound. This is so even if the owner of their
// PodGroup deletes it and creates it again. It holds in the scheduler that bound them, before and after the pod shows it, and in the next
// scheduler.
func TestWhatIsBoundStaysInItsQueue(t *testing.T) {
	made := group("g", "q1")
	for name, test := range map[string]struct {
		deltas []Delta
		queue  string
		job    string
	}{
		"as it is":            {nil, "q1", "a/g"},
		"deleted":             {[]Delta{{Op: Delete, Object: made}}, "q1", "~a/p"},
		"made anew there":     {[]Delta{{Op: Delete, Object: made}, {Object: made}}, "q1", "a/g"},
		"made anew elsewhere": {[]Delta{{Op: Delete, Object: made}, {Object: group("g", "q2")}}, "q1", "~a/p"},
		"moved":               {[]Delta{{Object: group("g", "q2")}}, "q1", "~a/p"},
		"moved and back":      {[]Delta{{Object: group("g", "q2")}, {Object: made}}, "q1", "a/g"},
		"made unreadable":     {[]Delta{{Object: group("g", "q1", func(g *v1beta1.PodGroup) { g.Spec.MinMember = -1 })}}, "q1", "~a/p"},
		"its queue is gone":   {[]Delta{{Op: Delete, Object: made}, {Op: Delete, Object: queue("q1")}, {Object: queue("q1")}}, "q1", "~a/p"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			check := func(when string, c *Cluster) {
				t.Helper()
				if err := c.Check(); err != nil {
					t.Fatal(err)
				}
				for _, q := range []string{"q1", "q2"} {
					want := 0.0
					if q == test.queue {
						want = 1000
					}
					if got := c.Queues[q].Allocated.Get(CPU); got != want {
						t.Errorf("%s %s has %v of cpu, want %v", when, q, got, want)
					}
				}
				if got := c.Tasks["a/p"].Job.Key; got != test.job {
					t.Errorf("%s it is of job %s, want %s", when, got, test.job)
				}
			}
			waits := pod("p", "cpu=1")
			c := shared()
			c.Apply(upserts(made, waits)...)
			bound := decide(c, waits)
			late := shared()
			late.Apply(upserts(made, waits)...)
			decide(late, waits)
			late.Apply(upserts(bound)...)
			for _, d := range test.deltas {
				c.Apply(d)
				late.Apply(d)
			}
			check("before the pod shows its node,", c)
			c.Apply(upserts(bound)...)
			check("after it,", c)
			check("changed later,", late)
			next := shared()
			next.Apply(upserts(bound, made)...)
			next.Apply(test.deltas...)
			check("for the next scheduler", next)
			if q := c.Queues["q1"]; q.JobCount() > 1 {
				t.Errorf("q1 counts %d jobs", q.JobCount())
			}
		})
	}
}

// TestARecordIsShort checks that no text of the pod's owner makes the record long. A binding writes it without the API server's limits for
// annotations.
func TestARecordIsShort(t *testing.T) {
	c := shared()
	c.Limits.Metadata = 1 << 20
	long := strings.Repeat("<", 200_000)
	p := pod("p", "cpu=1", annotated(GPUMilliAnnotation, "300", GPUModelsAnnotation, long, RevocableZoneAnnotation, "zone"))
	c.Apply(upserts(p)...)
	decide(c, p, 0)
	if got := c.Tasks["a/p"].Record().String(); len(got) > 1000 {
		t.Errorf("the record has %d characters", len(got))
	}
	errs := c.Apply(upserts(pod("q", "cpu=1", annotated(RevocableZoneAnnotation, long)))...)
	if len(errs) != 1 || !strings.HasSuffix(errs[0].Error(), "has 200000 characters; the name of a zone has 63 at most") {
		t.Errorf("told was %v", errs)
	}
	if task := c.Tasks["a/q"]; task != nil {
		t.Errorf("the pod of a zone that is no name is placed in %q", task.RevocableZone)
	}
}

// TestARecordEndsWithItsPod checks that a pod with the same name is another pod.
func TestARecordEndsWithItsPod(t *testing.T) {
	c := shared()
	p := pod("p", "cpu=1", annotated(GPUMilliAnnotation, "300"))
	c.Apply(upserts(p)...)
	bound := decide(c, p, 0)
	c.Apply(upserts(bound)...)
	again := bound.DeepCopy()
	again.UID = types.UID("another")
	if errs := c.Apply(upserts(again)...); len(errs) != 1 || c.Nodes.GPUs[0][0].Free != 0 {
		t.Errorf("told was %v, left is %+v", errs, c.Nodes.GPUs[0])
	}
}

// TestGroupOf checks that GroupOf reads what the model reads: for a bound pod, the group that it was bound for.
func TestGroupOf(t *testing.T) {
	c := shared()
	p := pod("p", "cpu=1")
	c.Apply(upserts(p, group("g2", "q1", func(*v1beta1.PodGroup) {}))...)
	bound := decide(c, p)
	bound.Annotations[GroupAnnotation] = "g2"
	if got := GroupOf(bound); got != "g" {
		t.Errorf("a bound pod is in %q", got)
	}
	bound.Spec.NodeName = ""
	if got := GroupOf(bound); got != "g2" {
		t.Errorf("a pod that waits is in %q", got)
	}
}
