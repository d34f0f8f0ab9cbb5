package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=numatopologies,scope=Cluster,shortName=numatopo

// Numatopology is what the kubelet of the node of the same name makes of its NUMA nodes.
type Numatopology struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the node tells of itself.
	// +optional
	Spec NumatopoSpec `json:"spec,omitempty"`
}

// +kubebuilder:object:root=true

// NumatopologyList is what a list request for numatopologies answers.
type NumatopologyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects found.
	Items []Numatopology `json:"items"`
}

// PolicyName names a policy of a kubelet.
type PolicyName string

// The policies that are read.
const (
	// CPUManagerPolicy is static where the kubelet gives containers CPUs of their own.
	CPUManagerPolicy PolicyName = "CPUManagerPolicy"
	// TopologyManagerPolicy is none, best-effort, restricted or single-numa-node.
	TopologyManagerPolicy PolicyName = "TopologyManagerPolicy"
)

// NumatopoSpec is what a node tells of its NUMA nodes.
type NumatopoSpec struct {
	// The kubelet's policies: CPUManagerPolicy and TopologyManagerPolicy.
	// +optional
	Policies map[PolicyName]string `json:"policies,omitempty"`

	// How much of each resource is kept for the system, as a quantity.
	// +optional
	ResReserved map[string]string `json:"resReserved,omitempty"`

	// What is free of each resource, and how much there is; only cpu is read.
	// +optional
	NumaResMap map[string]ResourceInfo `json:"numares,omitempty"`

	// Where each CPU is, by its number.
	// +optional
	CPUDetail map[string]CPUInfo `json:"cpuDetail,omitempty"`

	// The pods to which the kubelet gave resources of their own.
	// +optional
	PodAllocations []PodAllocation `json:"podAllocations,omitempty"`
}

// ResourceInfo is what is free of a resource.
type ResourceInfo struct {
	// What is free, as a list of numbers: 0,2-4.
	// +optional
	Allocatable string `json:"allocatable,omitempty"`

	// How many there are.
	// +optional
	Capacity int `json:"capacity,omitempty"`
}

// CPUInfo says where a CPU is.
type CPUInfo struct {
	// Its NUMA node.
	// +optional
	NUMANodeID int `json:"numa"`

	// Its socket.
	// +optional
	SocketID int `json:"socket"`

	// Its core.
	// +optional
	CoreID int `json:"core"`
}

// PodAllocation is what one pod has.
type PodAllocation struct {
	// The pod's uid; where it is missing, or that of a file on the node, name and namespace tell the pod.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// The pod's name.
	// +optional
	Name string `json:"name,omitempty"`

	// The pod's namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// What each of its containers has.
	// +optional
	ContainerAllocations []ContainerAllocation `json:"containerAllocations,omitempty"`
}

// ContainerAllocation is what one container has.
type ContainerAllocation struct {
	// The container's name.
	// +optional
	Name string `json:"name,omitempty"`

	// Which of each resource, as a list of numbers: 0,2-4.
	// +optional
	Allocations map[string]string `json:"allocations,omitempty"`
}
