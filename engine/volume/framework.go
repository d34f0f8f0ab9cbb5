package volume

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// handle contains the parts of a scheduler that the four plugins use.
type handle struct {
	fwk.Handle // nil: no other method is called
	factory    informers.SharedInformerFactory
	client     kubernetes.Interface
	csi        fwk.CSIManager
	users      users
}

// SharedInformerFactory implements fwk.Handle.
func (h handle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }

// ClientSet implements fwk.Handle.
func (h handle) ClientSet() kubernetes.Interface { return h.client }

// SharedCSIManager implements fwk.Handle.
func (h handle) SharedCSIManager() fwk.CSIManager { return h.csi }

// SnapshotSharedLister implements fwk.Handle.
func (h handle) SnapshotSharedLister() fwk.SharedLister { return h.users }

// users reports which claims are in use.
type users struct {
	fwk.SharedLister
	of *Volumes
}

// StorageInfos implements fwk.SharedLister.
func (u users) StorageInfos() fwk.StorageInfoLister { return u }

// IsPVCUsedByPods implements fwk.StorageInfoLister. It does not count the task itself, which may already be promised a node.
func (u users) IsPVCUsedByPods(claim string) bool {
	own := 0
	if t := u.of.asked.task; t.Status != model.Pending {
		own = 1
	}
	return u.of.c.Storage.Users(claim) > own
}

// nodeInfo contains the parts of a node that the four plugins use: its object, and its pods with volumes.
type nodeInfo struct {
	fwk.NodeInfo
	node *corev1.Node
	pods []fwk.PodInfo
}

// Node implements fwk.NodeInfo.
func (n nodeInfo) Node() *corev1.Node { return n.node }

// GetPods implements fwk.NodeInfo.
func (n nodeInfo) GetPods() []fwk.PodInfo { return n.pods }

type podInfo struct {
	fwk.PodInfo
	pod *corev1.Pod
}

// GetPod implements fwk.PodInfo.
func (p podInfo) GetPod() *corev1.Pod { return p.pod }

// node returns the node of a row as a task sees it: without the task itself. It costs the number of tasks on the node.
func (v *Volumes) node(t *model.Task, row int32, pods bool) nodeInfo {
	n := nodeInfo{node: v.c.Nodes.Rows[row].Object}
	if !pods {
		return n
	}
	for _, other := range v.c.Nodes.Tasks[row] {
		if other.HasVolumes && other != t {
			n.pods = append(n.pods, podInfo{pod: other.Object})
		}
	}
	return n
}
