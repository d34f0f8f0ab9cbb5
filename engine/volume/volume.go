package volume

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumezone"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Volumes answers for one cluster. It has one owner, like the cluster, and may be thrown away at any time: everything
// is read from the cluster again.
type Volumes struct {
	c        *model.Cluster
	ctx      context.Context //nolint:containedctx // it carries the logger that discards, which the plugins take from nowhere else
	indexers map[string]cache.Indexer
	book     *notebook
	cursor   follow.Cursor[model.StorageID]

	binding      *volumebinding.VolumeBinding
	zone, limits filter
	restrictions filter

	asked question
}

// filter is what the plugins have in common.
type filter interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
}

// question is what was found out about a task before any node was looked at.
type question struct {
	task    *model.Task
	pod     *corev1.Pod
	version uint64 // of the storage
	status  model.Status
	state   fwk.CycleState
	host    string // of the node that is asked about; its volumes, and those of no one host, are in state
	open    bool   // some claim has no volume yet
	trouble string
	err     error // of the trouble: a mistake in an object, rather than a fact
	// What the other plugins said beforehand. nil: look at each node; Skip: all nodes will do; else none will.
	zone, limits, restrictions *fwk.Status
}

// New makes the plugins for a cluster: it is the model.VolumeLibrary of all programs that run where Kubernetes' code fits in.
func New(c *model.Cluster) (model.Volumes, error) {
	v := &Volumes{c: c, ctx: klog.NewContext(context.Background(), logr.Discard()), book: &notebook{}}
	factory, indexers := newInformers(v)
	v.indexers = indexers
	h := handle{
		factory: factory, client: v.book, csi: nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister()),
		users: users{of: v},
	}
	features := feature.Features{EnableVolumeAttributesClass: true} // general since Kubernetes 1.34
	binding, err1 := volumebinding.New(v.ctx, &config.VolumeBindingArgs{BindTimeoutSeconds: 1}, h, features)
	zone, err2 := volumezone.New(v.ctx, nil, h, features)
	limits, err3 := nodevolumelimits.NewCSI(v.ctx, nil, h, features)
	restrictions, err4 := volumerestrictions.New(v.ctx, nil, h, features)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("make Kubernetes' volume plugins: %w", err)
	}
	var ok [4]bool
	v.binding, ok[0] = binding.(*volumebinding.VolumeBinding)
	v.zone, ok[1] = zone.(filter)
	v.limits, ok[2] = limits.(filter)
	v.restrictions, ok[3] = restrictions.(filter)
	if ok != [4]bool{true, true, true, true} {
		return nil, fmt.Errorf("volume plugins of Kubernetes are not what they were: %T, %T, %T, %T", binding, zone, limits, restrictions)
	}
	return v, nil
}

// Missing is the first of a task's claims that is not there, as namespace/name; "" if none is missing.
func (v *Volumes) Missing(t *model.Task) string {
	for _, claim := range t.Claims {
		if v.c.Storage.Objects[model.StorageID{Kind: model.VolumeClaim, Key: claim}] == nil {
			return claim
		}
	}
	return ""
}

// Trouble is why a task's claims let it go nowhere at all, in Kubernetes' words; "" if they do not. A claim may be missing, being
// deleted, lost, another pod's, or unbound though its class binds at once.
func (v *Volumes) Trouble(t *model.Task) (string, error) {
	q := v.ask(t)
	return q.trouble, q.err
}

// Fits says whether all claims of a task can be used on a node: the bound ones reach it, and for each of the
// others there is a volume that does and that nobody else was promised, or one can be provisioned. It costs a
// look at each free volume of the classes of the unbound claims, but for those that only another node reaches.
func (v *Volumes) Fits(t *model.Task, row int32) (bool, error) {
	q := v.ask(t)
	if q.trouble != "" || len(t.Claims) == 0 {
		return q.trouble == "", q.err
	}
	v.turn(q, row)
	return verdict(v.binding.Filter(v.ctx, q.state, t.Object, v.node(t, row, false)))
}

// ZoneFits says whether the node is in the zone and region of every bound volume that names one in its labels.
func (v *Volumes) ZoneFits(t *model.Task, row int32) (bool, error) {
	q := v.ask(t)
	return v.each(q.zone, v.zone, q, v.node(t, row, false))
}

// LimitsFit says whether the node can attach as many more volumes as the task brings, by its CSINode. It
// costs a look at the tasks with volumes on the node.
func (v *Volumes) LimitsFit(t *model.Task, row int32) (bool, error) {
	q := v.ask(t)
	if q.limits != nil {
		return v.each(q.limits, v.limits, q, nodeInfo{})
	}
	return v.each(nil, v.limits, q, v.node(t, row, true))
}

// Free says whether no other pod has what the task must have for itself: a claim of mode ReadWriteOncePod, on
// whatever node, or on this node a disk that does not let itself be shared.
func (v *Volumes) Free(t *model.Task, row int32) (bool, error) {
	q := v.ask(t)
	if q.restrictions != nil {
		return v.each(q.restrictions, v.restrictions, q, nodeInfo{})
	}
	return v.each(nil, v.restrictions, q, v.node(t, row, true))
}

func (v *Volumes) each(before *fwk.Status, f filter, q *question, n nodeInfo) (bool, error) {
	if before != nil {
		return verdict(before)
	}
	return verdict(f.Filter(v.ctx, q.state, q.task.Object, n))
}

// verdict turns a status into an answer. Skip stands for all nodes.
func verdict(s *fwk.Status) (bool, error) {
	switch {
	case s.IsSuccess(), s.IsSkip():
		return true, nil
	case s.Code() == fwk.Error:
		return false, s.AsError()
	}
	return false, nil
}

// Bindings is what has to be done for a task's claims on a node that Fits: nothing, if all are bound.
func (v *Volumes) Bindings(t *model.Task, row int32) ([]model.VolumeBind, error) {
	if len(t.Claims) == 0 {
		return nil, nil
	}
	q := v.ask(t)
	fits, err := v.Fits(t, row)
	if err != nil || !fits {
		return nil, errors.Join(err, fmt.Errorf("volumes of pod %s do not fit node %s", t.Key, v.c.Nodes.Rows[row].Name))
	}
	node := v.c.Nodes.Rows[row].Name
	defer func() { v.asked = question{} }() // its state was used up
	if s := v.binding.Reserve(v.ctx, q.state, t.Object, node); !s.IsSuccess() {
		return nil, fmt.Errorf("reserve volumes of pod %s on node %s: %w", t.Key, node, s.AsError())
	}
	// The updates are noted; then it would wait for what they bring about, so its time is over before it begins.
	ended, end := context.WithCancel(v.ctx)
	end()
	v.binding.PreBind(ended, q.state, t.Object, node)
	v.binding.Unreserve(v.ctx, q.state, t.Object, node)
	return v.book.take(), nil
}

// turn has the state of a question hold the volumes that a node may reach, where that matters.
func (v *Volumes) turn(q *question, row int32) {
	host := v.c.Nodes.Rows[row].Labels[corev1.LabelHostname]
	if !q.open || q.host == host {
		return
	}
	q.host = host
	v.binding.PreFilter(v.ctx, q.state, q.pod, nil) // as before, it finds no trouble
}

// ask finds out about a task what holds for all nodes. It is remembered for the last task until something of storage changes.
func (v *Volumes) ask(t *model.Task) *question {
	v.catchUp()
	q := &v.asked
	if q.task == t && q.pod == t.Object && q.version == v.c.Storage.Version && q.status == t.Status {
		return q
	}
	*q = question{task: t, pod: t.Object, version: v.c.Storage.Version, status: t.Status, state: framework.NewCycleState()}
	for _, claim := range t.Claims {
		pvc, ok := v.c.Storage.Objects[model.StorageID{Kind: model.VolumeClaim, Key: claim}].(*corev1.PersistentVolumeClaim)
		q.open = q.open || ok && pvc.Spec.VolumeName == ""
	}
	_, s := v.binding.PreFilter(v.ctx, q.state, t.Object, nil)
	if !s.IsSuccess() && !s.IsSkip() {
		q.trouble = strings.Join(s.Reasons(), ", ")
		if s.Code() == fwk.Error {
			q.err = s.AsError()
		}
	}
	for _, p := range []struct {
		filter filter
		status **fwk.Status
	}{{v.zone, &q.zone}, {v.limits, &q.limits}, {v.restrictions, &q.restrictions}} {
		if _, s := p.filter.PreFilter(v.ctx, q.state, t.Object, nil); !s.IsSuccess() {
			*p.status = s
		}
	}
	return q
}

// catchUp brings the indexers up to date with what changed of storage.
func (v *Volumes) catchUp() {
	v.cursor.Follow(&v.c.Storage.Log, v.put, v.readAll)
}

// readAll has the indexers hold what there is of storage, and nothing else.
func (v *Volumes) readAll() {
	for _, indexer := range v.indexers {
		for _, key := range indexer.ListKeys() {
			v.drop(indexer, key)
		}
	}
	for id := range v.c.Storage.Objects {
		v.put(id)
	}
}

func (v *Volumes) drop(indexer cache.Indexer, key string) {
	if old, there, _ := indexer.GetByKey(key); there {
		_ = indexer.Delete(old) // its key function is that of objects, and never fails for one
	}
}

// put has an indexer hold the object as it will be when what was promised of it has come about.
func (v *Volumes) put(id model.StorageID) {
	indexer := v.indexers[id.Kind]
	var seen any
	switch o := v.c.Storage.Objects[id].(type) {
	case nil:
		v.drop(indexer, id.Key)
		return
	case *corev1.PersistentVolume:
		seen = v.volume(id, o)
	case *corev1.PersistentVolumeClaim:
		seen = v.claim(id, o)
	case *storagev1.StorageClass:
		seen = class(o)
	default:
		seen = o
	}
	_ = indexer.Add(seen)
}

// volume is a volume with the claim that it was promised to, whatever its object says: a promise holds until who made it
// takes it back.
func (v *Volumes) volume(id model.StorageID, pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	to := v.c.Storage.Promised(id)
	if to == "" {
		return pv
	}
	claim, ok := v.c.Storage.Objects[model.StorageID{Kind: model.VolumeClaim, Key: to}].(*corev1.PersistentVolumeClaim)
	if ok {
		if bound, _, err := storagehelpers.GetBindVolumeToClaim(pv, claim); err == nil {
			return bound
		}
	}
	bound := pv.DeepCopy() // its claim was lost meanwhile: until that is noticed, the volume is nobody else's
	namespace, name, _ := strings.Cut(to, "/")
	bound.Spec.ClaimRef = &corev1.ObjectReference{Kind: model.VolumeClaim, Namespace: namespace, Name: name}
	return bound
}

// claim is a claim with the node that a volume is provisioned for.
func (v *Volumes) claim(id model.StorageID, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	node := v.c.Storage.Promised(id)
	if node == "" || claim.Spec.VolumeName != "" || claim.Annotations[storagehelpers.AnnSelectedNode] == node {
		return claim
	}
	selected := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&selected.ObjectMeta, storagehelpers.AnnSelectedNode, node)
	return selected
}

// class is a class with the binding mode that the API server would have given it: files were not through one.
func class(o *storagev1.StorageClass) *storagev1.StorageClass {
	if o.VolumeBindingMode != nil {
		return o
	}
	immediate := o.DeepCopy()
	immediate.VolumeBindingMode = new(storagev1.VolumeBindingImmediate)
	return immediate
}
