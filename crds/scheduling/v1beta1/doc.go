// Package v1beta1 is the scheduling.volcano.sh API: the PodGroup, pods that are of use
// only together, and the Queue, whose share of the cluster they are counted against.
//
//	pods --annotation--> PodGroup --spec.queue--> Queue --spec.parent--> Queue
//
// Names of kinds, fields, phases, conditions, labels and annotations, and their
// defaults, are Volcano's, byte for byte. The manifests are generated from these types
// into crds/manifests.
//
// +kubebuilder:object:generate=true
// +groupName=scheduling.volcano.sh
package v1beta1
