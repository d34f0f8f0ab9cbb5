// Package v1alpha1 is the scheduling.celsius.dev API: the SchedulingPolicy, in which all
// that a scheduler decides by is written as data.
//
//	SchedulingPolicy --rules: compile--> policy that Decide obeys
//	                 <--status---------- compiled or not, who serves it, warnings
//
// The schema keeps fields that it does not know wherever a rule is written, so that the
// webhook and the compiler can answer a misspelt key with its place and the nearest
// name. These Go types do not keep them: compile from the document as it was received,
// and use the types for what is known (names, mode, status).
//
// +kubebuilder:object:generate=true
// +groupName=scheduling.celsius.dev
package v1alpha1
