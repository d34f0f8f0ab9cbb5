package live

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

const (
	// backoffFirst is for how long a pod is left alone after its first refused binding; it doubles with each.
	backoffFirst = 250 * time.Millisecond
	backoffMost  = time.Minute
	// backoffGate is the scheduling gate that a pod in back-off has in the model, and nowhere else.
	backoffGate = "celsius.dev/back-off"
)

// volcanoName is the scheduler that takes what says nothing of any, as in Volcano's API.
const volcanoName = "volcano"

// intake turns what the feed has into deltas. It decides which PodGroups are this scheduler's, keeps older
// versions of them from undoing what we decided, and keeps pods in back-off from being decided on. The loop owns it.
type intake struct {
	names  []string
	groups map[string]*group
	member map[string]member // pod -> the group that it names
	jobs   map[string]string // batch Job -> its scheduler
	owned  map[string][]string
	holds  map[string]*hold
	nodes  *nodeBook
	numas  numas
	queues map[string]string         // namespace -> the queue of what names none
	phase  func(group string) string // where the model has a group, "" where it has none
}

// numas are what is told of nodes' CPUs, as the API server has it, and which nodes there are.
type numas struct {
	told  map[string]*nodeinfov1alpha1.Numatopology
	nodes map[string]bool
}

// member is a pod's part in a group.
type member struct {
	group   string
	own     bool
	assumed bool   // its pod names none: it is the one that it will have
	bound   string // UID of the pod, once it is: it stays in the group that it was bound for, whatever its annotations say later
}

// hold is a pod whose bindings were refused.
type hold struct {
	uid      string
	object   *corev1.Pod // as the API server has it
	failures int
	until    time.Time
	held     bool // it has the gate
	node     string
	why      string
}

func newIntake(names []string, nodes *nodeBook, phase func(group string) string) *intake {
	return &intake{
		queues: map[string]string{}, phase: phase,
		names: names, nodes: nodes, groups: map[string]*group{}, member: map[string]member{}, jobs: map[string]string{},
		owned: map[string][]string{}, holds: map[string]*hold{},
		numas: numas{map[string]*nodeinfov1alpha1.Numatopology{}, map[string]bool{}},
	}
}

// object turns a change of an object into deltas, appended to out.
func (in *intake) object(out []model.Delta, c change, now time.Time) []model.Delta {
	switch o := c.object.(type) {
	case *corev1.Pod:
		return in.pod(out, c.op, o, now)
	case *v1beta1.PodGroup:
		return in.podGroup(out, c.op, o)
	case *batchv1alpha1.Job:
		return in.job(out, c.op, o)
	case *corev1.Namespace:
		out = in.namespace(out, c.op, o)
	case *corev1.Node:
		in.nodes.put(o.Name, standing(c.op, o))
		return in.numas.node(append(out, model.Delta{Op: c.op, Object: o}), c.op, o.Name)
	case *nodeinfov1alpha1.Numatopology:
		if c.op == model.Delete {
			delete(in.numas.told, o.Name)
		} else {
			in.numas.told[o.Name] = o
		}
	}
	return append(out, model.Delta{Op: c.op, Object: c.object})
}

// node has what is told of a node's CPUs forgotten with the node. Where one of its name comes again it counts as far as it is there still,
// as it does for a scheduler that begins then: an exporter that finds nothing new does not tell it again.
func (n numas) node(out []model.Delta, op model.Op, name string) []model.Delta {
	was := n.nodes[name]
	if op == model.Delete {
		delete(n.nodes, name)
		return append(out, model.Delta{Op: model.Delete, Object: &nodeinfov1alpha1.Numatopology{ObjectMeta: metav1.ObjectMeta{Name: name}}})
	}
	n.nodes[name] = true
	if told := n.told[name]; told != nil && !was {
		out = append(out, model.Delta{Op: model.Upsert, Object: told})
	}
	return out
}

// standing is why a node takes no new pods, "" if it does.
func standing(op model.Op, o *corev1.Node) string {
	switch {
	case op == model.Delete:
		return "was deleted"
	case o.Spec.Unschedulable:
		return "was cordoned"
	}
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return "stopped being ready"
}

func (in *intake) pod(out []model.Delta, op model.Op, o *corev1.Pod, now time.Time) []model.Delta {
	key := model.Key(o.Namespace, o.Name)
	h := in.holds[key]
	if h != nil && (op == model.Delete || h.uid != string(o.UID) || o.Spec.NodeName != "") {
		delete(in.holds, key)
		h = nil
	}
	was := in.member[key]
	is := member{}
	if op != model.Delete {
		var assumed bool
		o, assumed = in.named(o)
		is = in.memberOf(o, was)
		is.assumed = assumed
	}
	switch {
	case was.group != is.group || was.own != is.own:
		out = in.moveMember(out, key, was, is, now)
	case was != is:
		in.member[key] = is
	}
	if is.assumed {
		out = in.assume(out, o)
	}
	if h != nil {
		h.object = o
		o = h.gated(now)
	}
	return append(out, model.Delta{Op: op, Object: o})
}

// gated is the pod as the model is to have it: with a gate, until its time has come.
func (h *hold) gated(now time.Time) *corev1.Pod {
	h.held = now.Before(h.until)
	if !h.held {
		return h.object
	}
	with := *h.object
	with.Spec.SchedulingGates = append(slices.Clone(with.Spec.SchedulingGates), corev1.PodSchedulingGate{Name: backoffGate})
	return &with
}

// due gives the deltas of pods whose back-off is over, and when the next one's is; zero: there is none.
func (in *intake) due(out []model.Delta, now time.Time) ([]model.Delta, time.Time) {
	var next time.Time
	for _, h := range in.holds {
		switch {
		case !h.held:
		case now.Before(h.until):
			if next.IsZero() || h.until.Before(next) {
				next = h.until
			}
		default:
			out = append(out, model.Delta{Op: model.Upsert, Object: h.gated(now)})
		}
	}
	return out, next
}

// refuse puts a task into back-off whose binding was refused.
func (in *intake) refuse(t *model.Task, o *order, why error, now time.Time) (model.Delta, *hold) {
	h := in.holds[t.Key]
	if h == nil || h.uid != t.UID {
		h = &hold{uid: t.UID}
		in.holds[t.Key] = h
	}
	h.object, h.node, h.why = t.Object, o.Node, errText(why)
	h.until = now.Add(min(backoffFirst<<min(h.failures, 20), backoffMost))
	h.failures++
	return model.Delta{Op: model.Forget, Object: h.gated(now)}, h
}

func (in *intake) memberOf(o *corev1.Pod, was member) member {
	bound := ""
	if o.Spec.NodeName != "" {
		bound = string(o.UID)
	}
	if bound != "" && was.bound == bound {
		return was
	}
	name := model.GroupOf(o)
	if name == "" {
		return member{}
	}
	return member{group: model.Key(o.Namespace, name), own: slices.Contains(in.names, o.Spec.SchedulerName), bound: bound}
}

// moveMember counts a pod in the group that it names now, and not in the one before.
func (in *intake) moveMember(out []model.Delta, key string, was, is member, now time.Time) []model.Delta {
	if was.group != "" {
		g := in.groups[was.group]
		g.count(was.own, -1, now)
		if out = g.leave(in.serve(out, g)); g.idle() {
			delete(in.groups, was.group)
		}
	}
	if is.group == "" {
		delete(in.member, key)
		return out
	}
	in.member[key] = is
	g := in.groups[is.group]
	if g == nil {
		g = &group{}
		in.groups[is.group] = g
	}
	g.count(is.own, 1, now)
	return in.serve(out, g)
}

func (g *group) count(own bool, by int, now time.Time) {
	m := &g.members
	switch {
	case !own:
		m.foreign += by
	case by > 0:
		m.own, m.asked = m.own+by, now
	default:
		m.own += by
	}
}

func (m *members) count() int { return m.own + m.foreign }

// idle says whether there is nothing left to know of a group.
func (g *group) idle() bool { return g.object == nil && g.members.count() == 0 }

func (in *intake) podGroup(out []model.Delta, op model.Op, o *v1beta1.PodGroup) []model.Delta {
	key := model.Key(o.Namespace, o.Name)
	g := in.groups[key]
	if op == model.Delete {
		if g == nil || g.object == nil {
			return out
		}
		in.disown(key, g.object)
		if g.served {
			out = append(out, model.Delta{Op: model.Delete, Object: o})
		}
		*g = group{members: g.members}
		if g.idle() {
			delete(in.groups, key)
		}
		return out
	}
	if g == nil {
		g = &group{}
		in.groups[key] = g
	}
	if g.object == nil || ownerJob(g.object) != ownerJob(o) { // also for the same object, because a client may change its owner
		if g.object != nil {
			in.disown(key, g.object)
		}
		if job := ownerJob(o); job != "" {
			in.owned[job] = append(in.owned[job], key)
		}
	}
	in.found(g, o)
	seen := g.see(o)
	if g.served && in.serves(g) {
		return append(out, model.Delta{Op: model.Upsert, Object: seen})
	}
	return in.serve(out, g)
}

func (in *intake) disown(key string, o *v1beta1.PodGroup) {
	job := ownerJob(o)
	if job == "" {
		return
	}
	in.owned[job] = slices.DeleteFunc(in.owned[job], func(k string) bool { return k == key })
	if len(in.owned[job]) == 0 {
		delete(in.owned, job)
	}
}

// serve brings a group into the model, or takes it out, where that changed.
func (in *intake) serve(out []model.Delta, g *group) []model.Delta {
	if g.object == nil {
		return out
	}
	serves := in.serves(g)
	if serves == g.served {
		return out
	}
	g.served = serves
	if !serves {
		return append(out, model.Delta{Op: model.Delete, Object: g.object})
	}
	return append(out, model.Delta{Op: model.Upsert, Object: g.see(g.object)})
}

// serves says whether a group is this scheduler's: as its Job says, else as its pods say. One without either is
// for whoever serves the name volcano, the default of the API that it is of.
func (in *intake) serves(g *group) bool {
	if job := ownerJob(g.object); job != "" {
		if scheduler, known := in.jobs[job]; known {
			return slices.Contains(in.names, scheduler)
		}
	}
	switch {
	case g.members.own > 0:
		return true
	case g.members.foreign > 0:
		return false
	}
	return slices.Contains(in.names, volcanoName)
}

// ownerJob is the batch Job that controls a PodGroup, "" for none.
func ownerJob(o *v1beta1.PodGroup) string {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind != "Job" || owner.APIVersion != batchv1alpha1.GroupVersion.String() {
		return ""
	}
	return model.Key(o.Namespace, owner.Name)
}

// job notes which scheduler a Job is for. The model knows those that are ours: what they will ask for.
func (in *intake) job(out []model.Delta, op model.Op, o *batchv1alpha1.Job) []model.Delta {
	key := model.Key(o.Namespace, o.Name)
	scheduler := o.Spec.SchedulerName
	if scheduler == "" {
		scheduler = volcanoName
	}
	old, known := in.jobs[key]
	switch {
	case op != model.Delete && slices.Contains(in.names, scheduler):
		out = append(out, model.Delta{Op: model.Upsert, Object: o})
	case known && slices.Contains(in.names, old):
		out = append(out, model.Delta{Op: model.Delete, Object: o})
	}
	if op != model.Delete && known && old == scheduler {
		return out
	}
	if op == model.Delete {
		delete(in.jobs, key)
	} else {
		in.jobs[key] = scheduler
	}
	for _, g := range slices.Clone(in.owned[key]) {
		out = in.serve(out, in.groups[g])
	}
	return out
}
