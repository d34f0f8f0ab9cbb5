// Package v1alpha1 is the bus.volcano.sh API: the Command, by which a user tells the
// controllers to act upon a Job or a Queue.
//
//	user --creates--> Command --controller deletes it, then acts--> Job or Queue
//
// It is deleted before it is acted upon, so that it happens at most once. Names are
// Volcano's, byte for byte.
//
// +kubebuilder:object:generate=true
// +groupName=bus.volcano.sh
package v1alpha1
