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
	// backoffFirst is the wait of a pod after its first refused binding. It doubles with each refusal, up to backoffMost.
	backoffFirst = 250 * time.Millisecond
	backoffMost  = time.Minute
	// backoffGate is the scheduling gate of a pod in back-off. Only the model contains it.
	backoffGate = "celsius.dev/back-off"
)

// volcanoName is the scheduler of objects that name no scheduler, as in Volcano's API.
const volcanoName = "volcano"

// intake turns changes from the feed into deltas. It decides which PodGroups belong to this scheduler. It keeps older versions of objects
// from undoing our decisions, and hides pods in back-off from decisions. The loop owns it.
type intake struct {
	names  []string
	groups map[string]*group
	member map[string]member // pod -> the group that the pod names
	jobs   map[string]string // batch Job -> its scheduler
	owned  map[string][]string
	holds  map[string]*hold
	nodes  *nodeBook
	numas  numas
	queues map[string]string         // namespace -> the queue of PodGroups without a queue
	phase  func(group string) string // phase of a group in the model; "": the model does not contain the group
}

// numas stores the Numatopologies of the API server, and the names of the nodes that exist.
type numas struct {
	told  map[string]*nodeinfov1alpha1.Numatopology
	nodes map[string]bool
}

// member is the membership of a pod in a group.
type member struct {
	group   string
	own     bool
	assumed bool   // the pod names no group: this is the name of its future group
	bound   string // UID of the pod once it is bound; it stays in the group that it was bound for, even if its annotations change later
}

// hold is a pod with refused bindings.
type hold struct {
	uid      string
	object   *corev1.Pod // as stored in the API server
	failures int
	until    time.Time
	held     bool // the pod has the scheduling gate
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

// node deletes the Numatopology of a node from the model together with the node. If a node with this name appears again, a Numatopology
// that still exists counts again, as it would for a scheduler that starts then. An exporter that finds no change does not write it again.
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

// standing returns the reason why a node takes no new pods, or "" if it does.
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

// gated returns the pod as the model stores it: with a gate until its back-off is over.
func (h *hold) gated(now time.Time) *corev1.Pod {
	h.held = now.Before(h.until)
	if !h.held {
		return h.object
	}
	with := *h.object
	with.Spec.SchedulingGates = append(slices.Clone(with.Spec.SchedulingGates), corev1.PodSchedulingGate{Name: backoffGate})
	return &with
}

// due returns the deltas of pods whose back-off is over, and the time when the next back-off ends; zero: none.
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

// refuse puts a task with a refused binding into back-off.
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

// moveMember counts a pod in the group that it names now, and no longer in the previous group.
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

// idle reports whether a group has no object and no members.
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

// serve adds a group to the model or removes it, if the scheduler of the group changed.
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

// serves reports whether a group belongs to this scheduler. The Job of the group decides, otherwise its pods. A group without either
// belongs to the scheduler that serves the name volcano, which is the default of this API.
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

// ownerJob returns the batch Job that controls a PodGroup, or "".
func ownerJob(o *v1beta1.PodGroup) string {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind != "Job" || owner.APIVersion != batchv1alpha1.GroupVersion.String() {
		return ""
	}
	return model.Key(o.Namespace, owner.Name)
}

// job records the scheduler of a Job. The model contains our Jobs, because they show future requests.
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
