package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=numatopologies,scope=Cluster,shortName=numatopo

// Numatopology describes the NUMA nodes of the node of the same name, as its kubelet uses them.
type Numatopology struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The NUMA topology that the node reports.
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

	// The amount of each resource that is reserved for the system, as a quantity.
	// +optional
	ResReserved map[string]string `json:"resReserved,omitempty"`

	// The free amount and the capacity of each resource. Only cpu is read.
	// +optional
	NumaResMap map[string]ResourceInfo `json:"numares,omitempty"`

	// The location of each CPU, by the number of the CPU.
	// +optional
	CPUDetail map[string]CPUInfo `json:"cpuDetail,omitempty"`

	// The pods that have exclusive resources from the kubelet.
	// +optional
	PodAllocations []PodAllocation `json:"podAllocations,omitempty"`
}

// ResourceInfo is what is free of a resource.
type ResourceInfo struct {
	// The free units of the resource, as a list of numbers, such as 0,2-4.
	// +optional
	Allocatable string `json:"allocatable,omitempty"`

	// The total number of units of the resource.
	// +optional
	Capacity int `json:"capacity,omitempty"`
}

// CPUInfo says where a CPU is.
type CPUInfo struct {
	// The number of the NUMA node of the CPU.
	// +optional
	NUMANodeID int `json:"numa"`

	// The number of the socket of the CPU.
	// +optional
	SocketID int `json:"socket"`

	// The number of the core of the CPU.
	// +optional
	CoreID int `json:"core"`
}

// PodAllocation is what one pod has.
type PodAllocation struct {
	// The UID of the pod. If it is missing, or if it is that of a file on the node (static pods),
	// name and namespace identify the pod.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// The name of the pod.
	// +optional
	Name string `json:"name,omitempty"`

	// The namespace of the pod.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// The resources of each container of the pod.
	// +optional
	ContainerAllocations []ContainerAllocation `json:"containerAllocations,omitempty"`
}

// ContainerAllocation is what one container has.
type ContainerAllocation struct {
	// The name of the container.
	// +optional
	Name string `json:"name,omitempty"`

	// The units of each resource that the container has, as a list of numbers, such as 0,2-4.
	// +optional
	Allocations map[string]string `json:"allocations,omitempty"`
}
