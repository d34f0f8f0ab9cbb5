package dashboard

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/podspec"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// mostText is the maximum length of a stored text from an object, in bytes.
const mostText = 4 << 10

// resources assigns numbers to names of resources, so that amounts are short lists. It is safe for concurrent use.
type resources struct {
	mu    sync.Mutex
	names []string
	at    map[string]int
}

// mostResources is the maximum number of resources. Further ones are not shown.
const mostResources = 64

func newResources() *resources {
	r := &resources{at: map[string]int{}}
	for _, name := range []string{"cpu", "memory", "pods"} {
		r.number(name)
	}
	return r
}

// The numbers of the resources that every node has.
const (
	cpu = iota
	memory
	pods
)

func (r *resources) number(name string) (int, bool) {
	if n, ok := r.at[name]; ok {
		return n, true
	}
	if len(r.names) == mostResources {
		return 0, false
	}
	r.at[name] = len(r.names)
	r.names = append(r.names, name)
	return r.at[name], true
}

func (r *resources) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.names)
}

// amounts contains the amount of each resource, indexed by its number, in cores, bytes, or units. Missing elements are 0.
type amounts []float64

func (a amounts) of(resource int) float64 {
	if resource < len(a) {
		return a[resource]
	}
	return 0
}

// plus adds b to a.
func (a amounts) plus(b amounts) amounts {
	if len(a) < len(b) {
		a = append(a, make([]float64, len(b)-len(a))...)
	}
	for i, v := range b {
		a[i] += v
	}
	return a
}

func (r *resources) amounts(list corev1.ResourceList) amounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out amounts
	for name, q := range list {
		n, ok := r.number(string(name))
		if !ok {
			continue
		}
		for len(out) <= n {
			out = append(out, 0)
		}
		out[n] = q.AsApproximateFloat64()
	}
	return slices.Clip(out)
}

// named is the stored part of an object's metadata.
type named struct{ metav1.ObjectMeta }

func nameOf(o metav1.Object) named {
	return named{metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp(),
	}}
}

func (n *named) key() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}

type node struct {
	named
	ready, cordoned bool
	why             string // why it is not ready
	offers          amounts
	taints          []string
}

type pod struct {
	named
	group, job, node string
	phase            corev1.PodPhase
	asks             amounts
	placed           time.Time // when it was bound
	waits            string    // why it is not bound
	why              string    // why it is on its node
	started, ended   time.Time
	exit             string // how it failed
}

// over reports whether a pod no longer uses resources of its node.
func (p *pod) over() bool { return p.phase == corev1.PodSucceeded || p.phase == corev1.PodFailed }

type group struct {
	named
	queue, priority, job string
	min                  int32
	phase                schedulingv1beta1.PodGroupPhase
	conditions           []schedulingv1beta1.PodGroupCondition
}

type job struct {
	named
	// scheduler is the name of the scheduler that places the pods of the Job.
	scheduler string
	queue     string
	min       int32
	retries   int32
	state     batchv1alpha1.JobState
	entered   []batchv1alpha1.JobCondition
}

type queue struct {
	named
	parent, state                             string
	weight                                    int32
	pending, inqueue, running                 int32
	allocated, deserved, capability, reserved amounts
}

type policyObject struct {
	named
	mode   string
	part   bool // it applies to some queues, next to the policy for all others
	status policyv1alpha1.SchedulingPolicyStatus
	rows   []policyRow
}

// row identifies a row of a policy.
type row struct{ site, table, name string }

// policyRow is a row of a policy as it was written.
type policyRow struct {
	row
	text string
	cost uint64 // maximum of one evaluation, in CEL's units
}

// strip converts an object to the stored form. It is a transform of informers, and may therefore receive its own results.
func (r *resources) strip(o any) (any, error) {
	switch o := o.(type) {
	case *corev1.Node:
		return r.node(o), nil
	case *corev1.Pod:
		return r.pod(o), nil
	case *schedulingv1beta1.PodGroup:
		return groupOf(o), nil
	case *batchv1alpha1.Job:
		return jobOf(o), nil
	case *schedulingv1beta1.Queue:
		return r.queue(o), nil
	case *unstructured.Unstructured:
		return policyOf(o), nil
	}
	return o, nil
}

func (r *resources) node(o *corev1.Node) *node {
	n := &node{named: nameOf(o), cordoned: o.Spec.Unschedulable, offers: r.amounts(model.NodeOffers(o))}
	n.why = "it has not said that it is ready"
	for i := range o.Status.Conditions {
		c := &o.Status.Conditions[i]
		if c.Type == corev1.NodeReady {
			n.ready, n.why = c.Status == corev1.ConditionTrue, short(cmp.Or(c.Message, c.Reason))
		}
	}
	for _, t := range o.Spec.Taints {
		n.taints = append(n.taints, t.ToString())
	}
	return n
}

func (r *resources) pod(o *corev1.Pod) *pod {
	asks := podspec.Requests(o)
	maps.Copy(asks, model.DeviceRequests(o, o.Spec.SchedulerName == corev1.DefaultSchedulerName))
	p := &pod{
		named: nameOf(o), group: model.GroupOf(o), node: o.Spec.NodeName, phase: o.Status.Phase, asks: r.amounts(asks).plus(amounts{pods: 1}),
		job: o.Annotations[batchv1alpha1.JobNameKey], why: short(o.Annotations[live.WhyAnnotation]),
	}
	if o.Status.StartTime != nil {
		p.started = o.Status.StartTime.Time
	}
	for i := range o.Status.Conditions {
		switch c := &o.Status.Conditions[i]; {
		case c.Type != corev1.PodScheduled:
		case c.Status == corev1.ConditionTrue:
			p.placed = c.LastTransitionTime.Time
		default:
			p.waits = short(c.Message)
		}
	}
	for i := range o.Status.ContainerStatuses {
		c := &o.Status.ContainerStatuses[i]
		if t := c.State.Terminated; t != nil {
			if t.FinishedAt.After(p.ended) {
				p.ended = t.FinishedAt.Time
			}
			if t.ExitCode != 0 && p.exit == "" {
				p.exit = short(c.Name + " exited with " + strconv.Itoa(int(t.ExitCode)) + " " + cmp.Or(t.Reason, t.Message))
			}
		}
	}
	if p.phase == corev1.PodFailed && p.exit == "" {
		p.exit = short(cmp.Or(o.Status.Message, o.Status.Reason))
	}
	return p
}

func groupOf(o *schedulingv1beta1.PodGroup) *group {
	g := &group{
		named: nameOf(o), queue: cmp.Or(o.Spec.Queue, schedulingv1beta1.DefaultQueue), priority: o.Spec.PriorityClassName,
		min: o.Spec.MinMember, phase: cmp.Or(o.Status.Phase, schedulingv1beta1.PodGroupPending), conditions: o.Status.Conditions,
	}
	for i := range g.conditions {
		g.conditions[i].Message = short(g.conditions[i].Message)
	}
	for _, owner := range o.OwnerReferences {
		// An owner's name can be any text. It becomes part of addresses and commands only if it is a valid name of an object.
		if owner.Kind == "Job" && owner.APIVersion == batchv1alpha1.GroupVersion.String() && len(validation.IsDNS1123Subdomain(owner.Name)) == 0 {
			g.job = owner.Name
		}
	}
	return g
}

func jobOf(o *batchv1alpha1.Job) *job {
	j := &job{
		named: nameOf(o), scheduler: o.Spec.SchedulerName, queue: cmp.Or(o.Spec.Queue, schedulingv1beta1.DefaultQueue),
		min: o.Spec.MinAvailable, retries: o.Status.RetryCount, state: o.Status.State,
		entered: o.Status.Conditions,
	}
	j.state.Message = short(j.state.Message)
	return j
}

func (r *resources) queue(o *schedulingv1beta1.Queue) *queue {
	q := &queue{
		named: nameOf(o), parent: o.Spec.Parent, state: cmp.Or(string(o.Status.State), "Unknown"), weight: o.Spec.Weight,
		pending: o.Status.Pending, inqueue: o.Status.Inqueue, running: o.Status.Running,
		allocated: r.amounts(o.Status.Allocated), deserved: r.amounts(o.Spec.Deserved), capability: r.amounts(o.Spec.Capability),
		reserved: r.amounts(o.Spec.Guarantee.Resource),
	}
	if q.parent == "" && q.Name != schedulingv1beta1.RootQueue {
		q.parent = schedulingv1beta1.RootQueue
	}
	return q
}

// policyOf reads a policy and compiles it to get the rows of its tables.
func policyOf(o *unstructured.Unstructured) *policyObject {
	p := &policyObject{named: nameOf(o)}
	p.Generation = o.GetGeneration()
	p.mode, _, _ = unstructured.NestedString(o.Object, "spec", "mode")
	queues, _, _ := unstructured.NestedString(o.Object, "spec", "queues")
	p.part = queues != ""
	if status, ok := o.Object["status"].(map[string]any); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &p.status); err != nil {
			p.status = policyv1alpha1.SchedulingPolicyStatus{}
		}
	}
	text, err := json.Marshal(o.Object)
	if err != nil {
		return p
	}
	if compiled, issues := policy.LoadStored(text); issues.Err() == nil {
		p.rows = rowsOf(compiled)
	}
	return p
}

func rowsOf(p *policy.Policy) (out []policyRow) {
	for _, r := range p.All {
		x := policyRow{row: row{r.Site.Name, r.Table, r.Name}}
		for _, e := range r.Asked() {
			x.cost += e.Cost.Max
		}
		if r.Expression != nil {
			x.text = short(r.Expression.Text.Value)
		}
		out = append(out, x)
	}
	return out
}

// short limits the length of a text.
func short(text string) string {
	if len(text) <= mostText {
		return text
	}
	end := mostText
	for end > 0 && text[end]&0xc0 == 0x80 { // do not cut within a character
		end--
	}
	return text[:end] + "…"
}
