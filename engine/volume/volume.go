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

// Volumes answers for one cluster. It has one owner, as the cluster has, and may be discarded at any time, because it can read everything
// from the cluster again.
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

// filter is the common interface of the plugins.
type filter interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
}

// question contains what is known about a task before any node is checked.
type question struct {
	task    *model.Task
	pod     *corev1.Pod
	version uint64 // of the storage
	status  model.Status
	state   fwk.CycleState
	host    string // of the node that is checked; state contains its volumes, and those without a single host
	open    bool   // some claim has no volume yet
	trouble string
	err     error // of trouble: a mistake in an object
	// Results of PreFilter of the other plugins. nil: check each node; Skip: all nodes fit; otherwise: no node fits.
	zone, limits, restrictions *fwk.Status
}

// New creates the plugins for a cluster. It is the model.VolumeLibrary of all programs that can contain Kubernetes' code.
func New(c *model.Cluster) (model.Volumes, error) {
	v := &Volumes{c: c, ctx: klog.NewContext(context.Background(), logr.Discard()), book: &notebook{}}
	factory, indexers := newInformers(v)
	v.indexers = indexers
	h := handle{
		factory: factory, client: v.book, csi: nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister()),
		users: users{of: v},
	}
	features := feature.Features{EnableVolumeAttributesClass: true} // generally available since Kubernetes 1.34
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

// Missing returns the first of a task's claims that does not exist, as namespace/name; "" if all exist.
func (v *Volumes) Missing(t *model.Task) string {
	for _, claim := range t.Claims {
		if v.c.Storage.Objects[model.StorageID{Kind: model.VolumeClaim, Key: claim}] == nil {
			return claim
		}
	}
	return ""
}

// Trouble returns why a task's claims can be used on no node, in the words of Kubernetes; "" if there is no such reason. For example, a
// claim is missing, being deleted, lost, used by another pod, or unbound although its class binds at once.
func (v *Volumes) Trouble(t *model.Task) (string, error) {
	q := v.ask(t)
	return q.trouble, q.err
}

// Fits reports whether all claims of a task can be used on a node. The node must reach the bound volumes. For each other claim there must
// be a volume that the node reaches and that is not promised, or one can be provisioned. It checks each free volume of the classes of the
// unbound claims, except those that only another node reaches.
func (v *Volumes) Fits(t *model.Task, row int32) (bool, error) {
	q := v.ask(t)
	if q.trouble != "" || len(t.Claims) == 0 {
		return q.trouble == "", q.err
	}
	v.turn(q, row)
	return verdict(v.binding.Filter(v.ctx, q.state, t.Object, v.node(t, row, false)))
}

// ZoneFits reports whether the node is in the zone and region of every bound volume that names one in its labels.
func (v *Volumes) ZoneFits(t *model.Task, row int32) (bool, error) {
	q := v.ask(t)
	return v.each(q.zone, v.zone, q, v.node(t, row, false))
}

// LimitsFit reports whether the node can attach as many more volumes as the task needs, by its CSINode. It checks the tasks with volumes on
// the node.
func (v *Volumes) LimitsFit(t *model.Task, row int32) (bool, error) {
	q := v.ask(t)
	if q.limits != nil {
		return v.each(q.limits, v.limits, q, nodeInfo{})
	}
	return v.each(nil, v.limits, q, v.node(t, row, true))
}

// Free reports whether no other pod uses a volume that the task must use exclusively: a claim of mode ReadWriteOncePod on any node, or a
// disk on this node that cannot be shared.
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

// verdict converts a status into an answer. Skip means that all nodes fit.
func verdict(s *fwk.Status) (bool, error) {
	switch {
	case s.IsSuccess(), s.IsSkip():
		return true, nil
	case s.Code() == fwk.Error:
		return false, s.AsError()
	}
	return false, nil
}

// Bindings returns what must be done for a task's claims on a node that Fits: nothing if all are bound.
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
	// PreBind records the updates, and would then wait for their effect. A cancelled context ends this wait at once.
	ended, end := context.WithCancel(v.ctx)
	end()
	v.binding.PreBind(ended, q.state, t.Object, node)
	v.binding.Unreserve(v.ctx, q.state, t.Object, node)
	return v.book.take(), nil
}

// turn adds to the state of a question the volumes that a node may reach, if they matter.
func (v *Volumes) turn(q *question, row int32) {
	host := v.c.Nodes.Rows[row].Labels[corev1.LabelHostname]
	if !q.open || q.host == host {
		return
	}
	q.host = host
	v.binding.PreFilter(v.ctx, q.state, q.pod, nil) // no trouble is found, as before
}

// ask determines what is the same on all nodes for a task. It caches the result of the last task until storage changes.
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

// catchUp updates the indexers with the changes of storage.
func (v *Volumes) catchUp() {
	v.cursor.Follow(&v.c.Storage.Log, v.put, v.readAll)
}

// readAll fills the indexers from scratch.
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
		_ = indexer.Delete(old) // its key function is the one for objects, and never fails for one
	}
}

// put stores an object in its indexer, as it will be after its promises are fulfilled.
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

// volume returns a volume with the claim that it is promised to, whatever its object states. A promise is valid until its owner undoes it.
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
	bound := pv.DeepCopy() // its claim was lost meanwhile: until that is noticed, the volume must not be used for another claim
	namespace, name, _ := strings.Cut(to, "/")
	bound.Spec.ClaimRef = &corev1.ObjectReference{Kind: model.VolumeClaim, Namespace: namespace, Name: name}
	return bound
}

// claim returns a claim with the node for which its volume is provisioned.
func (v *Volumes) claim(id model.StorageID, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	node := v.c.Storage.Promised(id)
	if node == "" || claim.Spec.VolumeName != "" || claim.Annotations[storagehelpers.AnnSelectedNode] == node {
		return claim
	}
	selected := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&selected.ObjectMeta, storagehelpers.AnnSelectedNode, node)
	return selected
}

// class returns a class with the default binding mode of the API server, because files did not pass through one.
func class(o *storagev1.StorageClass) *storagev1.StorageClass {
	if o.VolumeBindingMode != nil {
		return o
	}
	immediate := o.DeepCopy()
	immediate.VolumeBindingMode = new(storagev1.VolumeBindingImmediate)
	return immediate
}
