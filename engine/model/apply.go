package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/numa"
	"github.com/celsius-scheduler/celsius/engine/slab"
	"github.com/celsius-scheduler/celsius/engine/unread"
)

// Options of a new cluster. The zero value is usable.
type Options struct {
	// Seed of the run. 0: nodes that tie are ordered by name; otherwise their order depends on the seed.
	Seed int64
	// SchedulerNames are the values of spec.schedulerName of the pods that are ours. Empty: celsius and volcano. A pod without a schedulerName
	// belongs to the default scheduler, unless the list contains "".
	SchedulerNames []string
	// Workload is Cluster.Workload.
	Workload []Shape
	// Volumes is Storage.Library.
	Volumes VolumeLibrary
	// Limits bound the sizes of pods and PodGroups.
	Limits Limits
}

// NewCluster creates a cluster without any object.
func NewCluster(o Options) *Cluster {
	names := slices.Clone(o.SchedulerNames)
	if len(names) == 0 {
		names = []string{"celsius", "volcano"}
	}
	c := &Cluster{
		Dims:            NewDims(),
		Seed:            o.Seed,
		SchedulerNames:  names,
		Workload:        o.Workload,
		Limits:          o.Limits.complete(),
		Queues:          map[string]*Queue{},
		Jobs:            map[string]*Job{},
		Tasks:           map[string]*Task{},
		PriorityClasses: map[string]*PriorityClass{},
		Namespaces:      map[string]*Namespace{},
		Quotas:          map[string][]*Quota{},
		Measures:        map[string]*Measure{},
		Numas:           map[string]*numa.Node{},
		Budgets:         Budgets{Of: map[string][]*Budget{}},
		Storage:         newStorage(),
		Total:           emptySum(),
		Usable:          emptySum(),
		UsedElsewhere:   emptySum(),
		Used:            emptySum(),
		books: bookkeeping{
			lost:      waiting[*Task]{},
			nominated: map[*Task]bool{},
			groupless: waiting[*Task]{},
			queueless: waiting[*Job]{},
			owned:     waiting[*Job]{},
			specs:     map[string]*jobSpec{},
			templates: map[string]*Template{},
			terms:     newTermBooks(),
			peers:     newPeerBooks(),

			claimants: map[*Task]bool{}, claimRows: map[int32]bool{}, unadmitted: map[int32]int32{},
		},
	}
	c.Dims.perObject = c.Limits.Resources
	c.Storage.Library = o.Volumes
	for _, slots := range []*follow.Slots{&c.Slots.Tasks, &c.Slots.Jobs, &c.Slots.Queues} {
		slots.Take() // slot 0, which no object of a cluster has
	}
	c.Nodes.Index = map[string]int32{}
	c.Nodes.dims = c.Dims
	c.Nodes.grow()
	return c
}

// bookkeeping contains the internal indexes of a cluster.
type bookkeeping struct {
	// Tasks and jobs that wait for an object that does not exist (yet).
	lost      waiting[*Task] // node name -> tasks with that node
	groupless waiting[*Task] // PodGroup key -> tasks that name it
	queueless waiting[*Job]  // queue name -> jobs of it

	specs map[string]*jobSpec // of batch Jobs, by key
	owned waiting[*Job]       // batch Job key -> jobs whose PodGroup it controls, even if the Job does not exist

	nominated map[*Task]bool // tasks that have a nominated node

	rank   map[string]int // rank of nodes, set by SetNodeOrder; nil: none
	marked []*Job         // jobs that CloseCycle resets
	jobs   slab.ByKey[*Job]
	queues []*Queue // in name order; nil after a queue was added or removed
	// templates by image, mostTemplates at most.
	templates map[string]*Template
	terms     termBooks
	peers     peerBooks
	// claimants are the tasks on nodes without proof that a scheduler or a kubelet placed them. unadmitted is the number of claimants, by
	// row, that the kubelet would not admit now.
	claimants  map[*Task]bool
	claimRows  map[int32]bool // rows that changed since their claimants were last judged
	unadmitted map[int32]int32
	broken     error     // the first broken promise of a caller
	usedRest   Resources // rounding error of Used
	elsewhere  Resources // rounding error of UsedElsewhere
	beyond     Resources // resources that pods use on nodes that accept no pods, beyond what these nodes offer
	open       Resources // the part of Usable on nodes that accept pods
	openRest   Resources // rounding error of open
	closed     []int32   // rows of the nodes that accept no pods
	trial      *Trial    // the open trial; nil: no trial is open

	applied
}

// applied records what Apply still has to update at its end.
type applied struct {
	applying       bool
	untidy         []*Job  // jobs whose list of tasks is not sorted, or whose expected pods may have changed
	guess          []int32 // rows on which a task with devices arrived, left or changed
	nodesChanged   bool    // a node was added or removed, so the order of nodes changes
	totalsChanged  bool    // the offers of ready nodes changed
	classesChanged bool
}

// waiting maps the name of a missing object to the waiting tasks or jobs, by their keys.
type waiting[T comparable] map[string]map[string]T

func (w waiting[T]) put(what, key string, who T, waits bool) {
	if !waits {
		delete(w[what], key)
		if len(w[what]) == 0 {
			delete(w, what)
		}
		return
	}
	if w[what] == nil {
		w[what] = map[string]T{}
	}
	w[what][key] = who
}

// list returns all that wait for an object, in key order.
func (w waiting[T]) list(what string) []T { return byKey(w[what]) }

// byKey returns the values of a map in the order of its keys.
func byKey[T any](m map[string]T) []T {
	if len(m) == 0 {
		return nil
	}
	out := make([]T, 0, len(m))
	for _, k := range sortedKeys(m) {
		out = append(out, m[k])
	}
	return out
}

func sortedKeys[K cmp.Ordered, T any](m map[K]T) []K {
	if len(m) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(m))
}

// JobsByKey lists all jobs in key order. The list belongs to the cluster, so the caller must not change it. After a job is added or
// removed, the next call returns a new list.
func (c *Cluster) JobsByKey() []*Job {
	return c.books.jobs.List(c.Jobs)
}

// QueuesByName lists all queues in name order. The list belongs to the cluster, so the caller must not change it. After a queue is added or
// removed, the next call returns a new list.
func (c *Cluster) QueuesByName() []*Queue {
	if c.books.queues == nil {
		c.books.queues = byKey(c.Queues)
	}
	return c.books.queues
}

// TasksByKey lists all tasks in key order.
func (c *Cluster) TasksByKey() []*Task { return byKey(c.Tasks) }

// Op is what happened to an object.
type Op uint8

const (
	// Upsert states that the object is as given, whether it was known or not.
	Upsert Op = iota
	// Delete states that the object is gone. Apply reads only its name, and its UID if it has one.
	Delete
	// Forget is an Upsert after a binding or an eviction of the pod failed that was assumed to succeed. The task becomes exactly what the
	// object states.
	Forget
)

// Delta is one change of one object.
type Delta struct {
	Op Op
	// Object is a *Node, *Pod, *Namespace, *ResourceQuota, *PersistentVolume or *PersistentVolumeClaim of core/v1, a *PriorityClass of
	// scheduling.k8s.io/v1, a *PodDisruptionBudget of policy/v1, a *NodeMetrics of metrics.k8s.io/v1beta1, a *Numatopology of
	// nodeinfo.volcano.sh/v1alpha1, a *StorageClass, *CSINode, *CSIDriver, *CSIStorageCapacity or *VolumeAttachment of storage.k8s.io/v1, an
	// *extender.Answer, or a *PodGroup or *Queue of v1beta1. The cluster stores it, so the caller must not change it afterwards.
	Object any
}

// Apply updates the cluster with the deltas. The errors are *ObjectErrors, one for each mistake in the objects, in the order of the deltas.
// A mistake in one object does not stop the others.
//
// The result depends on the last delta of each object, but not on the order in which different objects come. A pod may come before its node
// or its PodGroup, and a PodGroup before its queue. Apply keeps those of our own decisions that the objects cannot show yet. A Binding task
// stays Binding until its pod has a node. An evicted task is Releasing until its pod is gone. Devices that we chose stay chosen.
func (c *Cluster) Apply(deltas ...Delta) []error {
	if len(deltas) == 0 {
		return nil
	}
	var errs []error
	applyAs(c, func() {
		var m mistakes
		for _, d := range deltas {
			m = mistakes{}
			c.Handle(d.Object)
			c.apply(d, &m)
			noteUnread(c, d, &m)
			errs = append(errs, m.errs...)
		}
		c.Turn = nil
	})
	return errs
}

// noteUnread records the mistakes of an object that the scheduler could not read completely.
func noteUnread(c *Cluster, d Delta, m *mistakes) {
	_, meta, ok := identify(d.Object)
	if !ok || len(m.errs) == 0 && c.Past.Unread.Empty() {
		return
	}
	group := ""
	if pod, isPod := d.Object.(*corev1.Pod); isPod {
		group = Key(pod.Namespace, GroupOf(pod))
	}
	c.Past.Unread.Note(unread.ID{Kind: m.kind, Name: m.called()}, unread.Object{UID: meta.GetUID(), Group: group}, d.Op == Delete, m.errs)
}

// Handle records the object that the cluster handles from now on.
func (c *Cluster) Handle(object any) {
	c.Turn = object
	if c.OnTurn != nil {
		c.OnTurn(object)
	}
}

// BrokenOff is the value of a panic of Breathe.
type BrokenOff struct{}

// Breathe is called in long loops, at points where the cluster is consistent. If Enough returns true, Breathe panics to stop the work: the
// cycle of a trial, which is then undone, or an explanation. What the work remembered until then may be incomplete.
func (c *Cluster) Breathe() {
	if c.Enough != nil && c.Enough() {
		panic(BrokenOff{}) //nolint:forbidigo // action.Whole recovers it
	}
}

// applyAs runs a change of objects, and then computes its consequences once.
func applyAs(c *Cluster, change func()) {
	c.books.applying = true
	change()
	c.retryLeftOut()
	c.books.applying = false
	c.settle()
	c.changed()
	c.ObjectClock++
}

func (c *Cluster) apply(d Delta, m *mistakes) {
	m.object = d.Object
	kind, meta, ok := identify(d.Object)
	if !ok {
		m.kind, m.name = "delta", fmt.Sprintf("%T", d.Object)
		m.add("", "is nil or of no kind known here: Node, Pod, Namespace, ResourceQuota, PodDisruptionBudget, PriorityClass, "+
			"PodGroup, Job, Queue, NodeMetrics, Numatopology, ExtenderAnswer, and those of storage")
		return
	}
	m.kind, m.namespace, m.name, m.namespaced = kind, meta.GetNamespace(), meta.GetName(), namespaced(kind)
	m.checkName()
	switch {
	case len(m.errs) > 0:
	case d.Op == Delete:
		c.remove(d.Object, m)
	default:
		c.upsert(d, m)
	}
}

func (c *Cluster) upsert(d Delta, m *mistakes) {
	switch o := d.Object.(type) {
	case *corev1.Node:
		c.upsertNode(o, m)
	case *corev1.Pod:
		c.upsertPod(o, d.Op == Forget, m)
	case *corev1.Namespace:
		c.Namespaces[o.Name] = &Namespace{Name: o.Name, Labels: o.Labels}
		c.NamespaceClock++
	case *corev1.ResourceQuota:
		c.upsertQuota(o, m)
	case *policyv1.PodDisruptionBudget:
		c.Budgets.upsert(o, m)
	case *metricsv1beta1.NodeMetrics:
		c.setMeasure(o.Name, readMeasure(c.Dims, o, m))
	case *nodeinfov1alpha1.Numatopology:
		setNuma(c, o.Name, readNuma(o, m))
	case *extender.Answer:
		setAnswer(c, o, m)
	case *schedulingv1.PriorityClass:
		c.PriorityClasses[o.Name] = readPriorityClass(o)
		c.books.classesChanged = true
	case *v1beta1.PodGroup:
		c.upsertGroup(o, m)
	case *batchv1alpha1.Job:
		c.upsertJobSpec(o, m)
	case *v1beta1.Queue:
		c.upsertQueue(o, m)
	default:
		c.Storage.upsert(StorageID{m.kind, m.called()}, o)
	}
}

func (c *Cluster) remove(object any, m *mistakes) {
	switch o := object.(type) {
	case *corev1.Node:
		c.removeNode(o.Name)
	case *corev1.Pod:
		// The delete event of a pod that was already replaced by a new pod of the same name is outdated.
		c.books.terms.leave(c.groupOf(o), Key(o.Namespace, o.Name), nil)
		c.books.peers.leave(o.Namespace, Key(o.Namespace, o.Name))
		if t := c.Tasks[Key(o.Namespace, o.Name)]; t != nil && sameUID(o, t.Object) {
			c.removeTask(t)
		}
	case *corev1.Namespace:
		delete(c.Namespaces, o.Name)
		c.NamespaceClock++
	case *corev1.ResourceQuota:
		c.removeQuota(o.Namespace, o.Name)
	case *policyv1.PodDisruptionBudget:
		c.Budgets.remove(o.Namespace, o.Name)
	case *metricsv1beta1.NodeMetrics, *nodeinfov1alpha1.Numatopology:
		forgetTold(c, object)
	case *extender.Answer:
		touchSubjects(c, c.Answers.Remove(o.Name))
	case *schedulingv1.PriorityClass:
		delete(c.PriorityClasses, o.Name)
		c.books.classesChanged = true
	case *v1beta1.PodGroup:
		c.removeGroup(Key(o.Namespace, o.Name))
	case *batchv1alpha1.Job:
		c.removeJobSpec(o)
	case *v1beta1.Queue:
		c.removeQueue(o.Name)
	default:
		c.Storage.remove(StorageID{m.kind, m.called()})
	}
}

// sameUID reports whether two versions may belong to the same pod. A missing UID matches every UID.
func sameUID(a, b *corev1.Pod) bool { return a.UID == "" || b.UID == "" || a.UID == b.UID }

// settle does the work that would be expensive for each delta once per Apply.
func (c *Cluster) settle() {
	c.Nodes.grow()
	c.judgeClaims()
	if c.books.classesChanged {
		c.books.classesChanged = false
		c.readClasses()
	}
	for _, j := range c.books.untidy {
		j.tidy()
		c.reckon(j)
	}
	c.books.untidy = slices.Delete(c.books.untidy, 0, len(c.books.untidy))
	slices.Sort(c.books.guess)
	for _, row := range slices.Compact(c.books.guess) {
		if c.Nodes.used(row) {
			c.guessGPUs(row)
		}
	}
	c.books.guess = c.books.guess[:0]
	if c.books.nodesChanged {
		c.Nodes.order(c.books.rank, c.Seed)
	}
	if c.books.nodesChanged || c.books.totalsChanged {
		c.total()
	} else if len(c.books.closed) > 0 {
		c.usable()
	}
	c.books.nodesChanged, c.books.totalsChanged = false, false
	c.Nodes.letGo()
	for _, slots := range []*follow.Slots{&c.Slots.Tasks, &c.Slots.Jobs, &c.Slots.Queues, &c.Nodes.Slots} {
		slots.Settle()
	}
}

// SetNodeOrder sets how ties of nodes are broken. The lowest rank wins. Nodes that are not in rank come after all others, by name. Without
// a call, nodes are ordered by name, or by a hash of the Seed and the name if there is a Seed.
func (c *Cluster) SetNodeOrder(rank map[string]int) {
	c.books.rank = maps.Clone(rank)
	if rank == nil {
		c.books.rank = map[string]int{}
	}
	c.Nodes.order(c.books.rank, c.Seed)
	c.total()
	for _, row := range c.Nodes.byOrder {
		c.touchNode(row)
	}
	c.changed()
}

func (c *Cluster) upsertNode(o *corev1.Node, m *mistakes) {
	n := &c.Nodes
	node, allocatable := readNode(c.Dims, o, m)
	node.Told = Told{c.Measures[o.Name], c.Numas[o.Name]}
	row, known := n.Index[o.Name]
	relisted := !known || !n.offers(row, allocatable) || n.Rows[row].unlistedGPUs != node.unlistedGPUs
	if known {
		c.books.totalsChanged = c.books.totalsChanged || node.Ready != n.Rows[row].Ready || node.AcceptsPods() != n.Rows[row].AcceptsPods() ||
			relisted
		node.Row = row
		*n.Rows[row] = *node
	} else {
		c.books.nodesChanged = true
		row = n.take(node)
	}
	n.setAllocatable(row, allocatable)
	n.GPUs[row] = newGPUs(n.Rows[row])
	for _, t := range n.Tasks[row] {
		if t.Status != Pipelined {
			holdGPUs(n.GPUs[row], t, 1)
		}
	}
	for _, t := range c.books.lost.list(o.Name) {
		to := t.spot()
		to.node = row
		c.move(t, to)
	}
	if relisted {
		c.listAgain(slices.Clone(n.Tasks[row]))
	}
	c.books.guess = append(c.books.guess, row)
	n.Object[row]++
	n.Slots.Change(row)
	c.touchNode(row)
}

// removeNode removes a node. Its tasks lose their row, but otherwise stay as they are. They get a row again if the node returns.
func (c *Cluster) removeNode(name string) {
	n := &c.Nodes
	row, ok := n.Index[name]
	if !ok {
		return
	}
	for _, t := range slices.Clone(n.Tasks[row]) {
		to := t.spot()
		to.node = NoNode
		if !to.known {
			to.gpus = nil
		}
		c.move(t, to)
		c.listAgain([]*Task{t})
	}
	n.release(row)
	c.books.nodesChanged = true
	n.Object[row]++
	c.touchNode(row)
}

func (c *Cluster) upsertPod(o *corev1.Pod, forget bool, m *mistakes) {
	var buffer [128]byte
	key := appendKey(buffer[:0], o.Namespace, o.Name)
	old := c.Tasks[string(key)]
	t := c.readPod(taskKeyOf(key, old), o, old, m)
	c.limitJobTerms(t, old, m)
	c.limitComparisons(t, old, m)
	if old != nil && old.UID == t.UID {
		t.Spared, t.NominatedNode = old.Spared, old.NominatedNode
		if !forget {
			t.assume(c.Dims, old)
		}
		t.ours = old.bindsTo(t.NodeName)
		ended := (t.Status == Succeeded || t.Status == Failed) && o.DeletionTimestamp == nil
		if forget || ended { // its eviction was refused, or it ended by itself first
			c.Past.Rivals.Stays(t.UID)
		}
	}
	t.claims = unproven(t)
	if old != nil && (old.UID != t.UID || len(m.errs) > 0 && !t.Status.onNode()) {
		c.removeTask(old)
		old = nil
	}
	switch {
	case len(m.errs) > 0 && !t.Status.onNode():
		return // do not place a pod that cannot be read
	case old == nil:
		t.Slot = c.Slots.Tasks.Take()
		c.Tasks[t.Key] = t
		c.joinJob(t)
		c.bookTerms(t)
		c.seat(t)
		c.account(t, 1)
		c.touchTask(t, NoNode)
	default:
		c.replaceTask(old, t)
		t = old
	}
	c.Nominate(t, t.NominatedNode)
}

// taskKeyOf returns a key as a string. It reuses the string of the known task, if there is one.
func taskKeyOf(key []byte, old *Task) string {
	if old != nil {
		return old.Key
	}
	return string(key)
}

// seat sets the row of the task: that of the node that its object names.
func (c *Cluster) seat(t *Task) {
	t.Node = NoNode
	if row, ok := c.Nodes.Index[t.NodeName]; ok && t.Status.onNode() {
		t.Node = row
	}
	c.list(t)
}

// assume copies our decisions for the older version of a task that its pod cannot show yet.
func (t *Task) assume(d *Dims, old *Task) {
	bound := t.Status == Bound || t.Status == Running || t.Status == Unknown
	going := old.Status == Releasing && old.Object.DeletionTimestamp == nil
	switch {
	case (old.Status == Binding || going && old.NodeName != "") && t.Status == Pending:
		t.Status, t.NodeName = old.Status, old.NodeName
		t.keep(d, old)
		t.recorded = false // the new pod may be bound differently
		t.BestEffort = t.Request.IsEmpty() && t.GPUCount == 0
	case going && bound && t.NodeName == old.NodeName:
		t.Status = Releasing
	}
	t.keepVolumes(old)
}

// keepVolumes keeps the volumes promised to a task that is still on the same node. Its claims may show the promise later than its pod.
func (t *Task) keepVolumes(old *Task) {
	if t.Status.onNode() && t.NodeName == old.NodeName {
		t.Volumes = old.Volumes
	}
}

// replaceTask overwrites a task with its newer version. The pointer stays the same.
func (c *Cluster) replaceTask(t, next *Task) {
	from, job := t.Node, t.Job
	c.account(t, -1)
	stays := t.group == next.group && t.Foreign == next.Foreign &&
		(job.Orphan && t.boundIn == next.boundIn || !job.Orphan && next.mayJoin(job))
	if !stays {
		c.leaveJob(t)
	}
	role := t.role
	next.Slot = t.Slot
	c.unbookTerms(t, next)
	*t = *next
	c.Slots.Tasks.Change(t.Slot)
	if stays {
		t.Job = job
		if t.share(job.role(t.Role)); t.role != role {
			c.untidy(job) // the job lacks another pod now
		}
	}
	c.seat(t)
	if !stays {
		c.joinJob(t)
		c.touchJob(job)
	}
	c.bookTerms(t)
	if job.Orphan && stays {
		c.readOrphan(job, t)
		c.Slots.Jobs.Change(job.Slot)
	}
	c.account(t, 1)
	job.dropRole(role)
	c.touchTask(t, from)
}

func (c *Cluster) removeTask(t *Task) {
	row := t.Node
	c.account(t, -1)
	c.leaveJob(t)
	delete(c.Tasks, t.Key)
	c.unbookTerms(t, nil)
	c.Slots.Tasks.Leave(t.Slot)
	t.gone, t.Node = true, NoNode
	delete(c.books.nominated, t)
	c.touchTask(t, row)
	touchJobs(c, c.Past.Rivals.Gone(t.UID))
}
