// Package v1alpha1 is the nodeinfo.volcano.sh API: the Numatopology, by which a node tells which of its CPUs lie on which NUMA node,
// and which of them are free.
//
//	exporter on each node --writes--> Numatopology of the node's name --> scheduler: which CPUs a pod will have
//
// Names are Volcano's, byte for byte.
//
// +kubebuilder:object:generate=true
// +groupName=nodeinfo.volcano.sh
package v1alpha1
