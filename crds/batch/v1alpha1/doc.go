// Package v1alpha1 is the batch.volcano.sh API: the Job, what users submit.
//
//	Job --controllers--> PodGroup (a promise of room) + pods, one set a task
//	    <--status------- phases and counts of those pods
//
// Names of kinds, fields, phases, labels and annotations, and their defaults, are
// Volcano's, so that its manifests, clients and tools work unchanged. The manifest is
// generated from these types into crds/manifests.
//
// +kubebuilder:object:generate=true
// +groupName=batch.volcano.sh
package v1alpha1
