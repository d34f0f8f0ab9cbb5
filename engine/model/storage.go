package model

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/celsius-scheduler/celsius/engine/follow"
)

// Kinds of storage objects.
const (
	PersistentVolume = "PersistentVolume"
	VolumeClaim      = "PersistentVolumeClaim"
	StorageClass     = "StorageClass"
	CSINode          = "CSINode"
	CSIDriver        = "CSIDriver"
	StorageCapacity  = "CSIStorageCapacity"
	VolumeAttachment = "VolumeAttachment"
)

// StorageID identifies a storage object: its kind, and namespace/name, or only the name if the kind has no namespaces.
type StorageID struct{ Kind, Key string }

// Storage contains what the cluster knows about volumes: the objects, and the promises that the objects do not show yet. It is for library
// code that needs the Kubernetes objects.
type Storage struct {
	// Objects by ID. They are never changed.
	Objects map[StorageID]metav1.Object
	// Version increases with every change of an object, of a promise, or of the users of a claim. Log lists what changed.
	Version uint64
	Log     follow.Log[StorageID]
	// Library creates Volumes. nil: there is no library, and tasks with volumes fit on no node.
	Library VolumeLibrary

	promised map[StorageID]map[string]int // to what an object is promised, and by how many tasks
	users    map[string]int               // claim -> number of tasks that have a node, or are promised one
}

// VolumeBind is what must be done for one claim before a task that was placed can be bound to its node.
type VolumeBind struct {
	// Claim is namespace/name.
	Claim string `json:"claim"`
	// Volume is the PersistentVolume that gets bound to the claim. "": one has to be provisioned for the task's node.
	Volume string `json:"volume,omitempty"`
}

// VolumeLibrary creates Volumes for a cluster. engine/volume has the only one. The caller passes it to a cluster, because it links much of
// Kubernetes, which the program in a browser must not contain.
type VolumeLibrary func(*Cluster) (Volumes, error)

// Volumes determines on which nodes a task's volumes can be used, and what must be done there. It belongs to the owner of the cluster, who
// may discard it at any time.
type Volumes interface {
	// Missing returns the first of a task's claims that does not exist, as namespace/name; "" if all exist.
	Missing(t *Task) string
	// Trouble returns why a task's claims can be used on no node; "" if there is no such reason. An error is a mistake in an object.
	Trouble(t *Task) (string, error)
	// Places states where the bound volumes of a task's claims are. It returns "" if some claim is not bound, or if every node reaches them.
	Places(t *Task) string
	// Defect states which existing claim of a task no node can use, and what a user can do. It returns "" if there is no such claim.
	Defect(t *Task) string
	// Fits reports whether all claims of a task can be used on a node.
	Fits(t *Task, row int32) (bool, error)
	// ZoneFits reports whether a node is in the zone and region of every bound volume that names one.
	ZoneFits(t *Task, row int32) (bool, error)
	// LimitsFit reports whether a node can attach as many more volumes as a task needs.
	LimitsFit(t *Task, row int32) (bool, error)
	// Free reports whether no other pod uses a volume that a task must use exclusively.
	Free(t *Task, row int32) (bool, error)
	// Bindings returns what must be done for a task's claims on a node that Fits.
	Bindings(t *Task, row int32) ([]VolumeBind, error)
}

func newStorage() Storage {
	return Storage{Objects: map[StorageID]metav1.Object{}, promised: map[StorageID]map[string]int{}, users: map[string]int{}}
}

// Promised returns what an object is promised to: a volume to a claim (namespace/name), or a claim that waits for provisioning to a node.
// "": the object is not promised.
func (s *Storage) Promised(id StorageID) string {
	to := s.promised[id]
	if len(to) == 0 {
		return ""
	}
	return slices.Min(slices.Collect(maps.Keys(to))) // there is only one, unless a caller broke a promise
}

// Users returns the number of tasks that use a claim and have a node, or are promised one.
func (s *Storage) Users(claim string) int { return s.users[claim] }

func (s *Storage) touch(id StorageID) {
	s.Version++
	s.Log.Add(id)
}

func (s *Storage) promise(id StorageID, to string, by int) {
	if s.promised[id] == nil {
		s.promised[id] = map[string]int{}
	}
	s.promised[id][to] += by
	if s.promised[id][to] == 0 {
		delete(s.promised[id], to)
	}
	if len(s.promised[id]) == 0 {
		delete(s.promised, id)
	}
	s.touch(id)
}

// promiseOf returns what a task's placement promises for one claim.
func (t *Task) promiseOf(v VolumeBind) (id StorageID, to string) {
	if v.Volume != "" {
		return StorageID{PersistentVolume, v.Volume}, v.Claim
	}
	return StorageID{VolumeClaim, v.Claim}, t.NodeName
}

// count adds (by 1) or removes (by -1) the promises and claims of a task. A task without claims costs nothing.
func (s *Storage) count(t *Task, by int) {
	for _, v := range t.Volumes {
		id, to := t.promiseOf(v)
		s.promise(id, to, by)
	}
	if !t.Status.onNode() {
		return
	}
	for _, claim := range t.Claims {
		s.users[claim] += by
		if s.users[claim] == 0 {
			delete(s.users, claim)
		}
		s.touch(StorageID{VolumeClaim, claim})
	}
}

// Reserve promises to a task that was just allocated or pipelined the volumes that it needs on its node. The promise is a part of the
// placement. It ends with the placement: by Unplace, by Rollback, or by a change of the pod that undoes it.
func (x *Txn) Reserve(t *Task, volumes []VolumeBind) {
	if len(volumes) == 0 ||
		!x.c.promise(t.Status == Allocated || t.Status == Pipelined, "reserve volumes for", t, "is Allocated or Pipelined") {
		return
	}
	for _, v := range volumes {
		id, to := t.promiseOf(v)
		was := x.c.Storage.Promised(id)
		x.c.promise(was == "" || was == to, "reserve volumes for", t, "gets none that was promised elsewhere")
		x.c.promise(slices.Contains(t.Claims, v.Claim), "reserve volumes for", t, "has the claim")
	}
	to := t.spot()
	to.volumes = slices.Clone(volumes)
	x.step(t, to, 0)
}

// storageKind returns the kind of a storage object, or "".
func storageKind(object any) string {
	switch object.(type) {
	case *corev1.PersistentVolume:
		return PersistentVolume
	case *corev1.PersistentVolumeClaim:
		return VolumeClaim
	case *storagev1.StorageClass:
		return StorageClass
	case *storagev1.CSINode:
		return CSINode
	case *storagev1.CSIDriver:
		return CSIDriver
	case *storagev1.CSIStorageCapacity:
		return StorageCapacity
	case *storagev1.VolumeAttachment:
		return VolumeAttachment
	}
	return ""
}

// upsert stores the newest version of a storage object.
func (s *Storage) upsert(id StorageID, object any) {
	s.Objects[id], _ = object.(metav1.Object)
	s.touch(id)
}

func (s *Storage) remove(id StorageID) {
	delete(s.Objects, id)
	s.touch(id)
}

// readVolumes reads a pod's claims, and whether it has volumes that a node may not support.
func readVolumes(t *Task, o *corev1.Pod) {
	for i := range o.Spec.Volumes {
		v := &o.Spec.Volumes[i]
		claim := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			claim = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			claim = ephemeral.VolumeClaimName(o, v)
		default:
			t.HasVolumes = t.HasVolumes || isDisk(v)
			continue
		}
		t.HasVolumes = true
		if key := Key(o.Namespace, claim); !slices.Contains(t.Claims, key) {
			t.Claims = append(t.Claims, key)
		}
	}
}

// isDisk reports whether a volume that a pod names directly may exclude other pods, or counts against a node's limits.
func isDisk(v *corev1.Volume) bool {
	return v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.AzureDisk != nil || v.Cinder != nil ||
		v.PortworxVolume != nil || v.ISCSI != nil || v.RBD != nil
}

// checkStorage checks that promises and users are those of the tasks.
func (c *Cluster) checkStorage() error {
	want := newStorage()
	for _, t := range c.TasksByKey() {
		want.count(t, 1)
		if len(t.Volumes) > 0 && !t.Status.onNode() {
			return fmt.Errorf("task %s, which is %s: has volumes %v promised", t.Key, t.Status, t.Volumes)
		}
	}
	if !maps.Equal(want.users, c.Storage.users) {
		return fmt.Errorf("storage: claims are used by %v, by the tasks they are by %v", c.Storage.users, want.users)
	}
	if !maps.EqualFunc(want.promised, c.Storage.promised, maps.Equal[map[string]int, map[string]int]) {
		return fmt.Errorf("storage: promised is %v, by the tasks %v", c.Storage.promised, want.promised)
	}
	return nil
}
