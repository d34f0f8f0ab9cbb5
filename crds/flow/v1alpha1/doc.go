// Package v1alpha1 is the flow.volcano.sh API: the JobTemplate, from which Jobs are made, and the JobFlow, which makes them one after
// another.
//
//	JobTemplate --+
//	              +-- JobFlow --controllers--> Jobs, each once those that it depends on are Completed
//	patch --------+
//
// Names are Volcano's, byte for byte.
//
// +kubebuilder:object:generate=true
// +groupName=flow.volcano.sh
package v1alpha1
