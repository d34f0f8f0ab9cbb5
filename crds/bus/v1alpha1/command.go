package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=commands,scope=Namespaced
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || has(self.target)",optionalOldSelf=true,fieldPath=".target",message="is missing; write apiVersion, kind, name and uid of a Job of this namespace or of a Queue"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || has(self.action) && self.action.size() > 0",optionalOldSelf=true,fieldPath=".action",message="is missing; write what to do, such as AbortJob or CloseQueue"

// Command asks the controllers for one action upon one object, once. It has no spec:
// its fields stand at the top.
type Command struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to do: AbortJob, RestartJob, TerminateJob, CompleteJob or ResumeJob for a Job,
	// OpenQueue or CloseQueue for a Queue.
	// +optional
	Action string `json:"action,omitempty"`

	// The object to act upon, a Job of the same namespace or a Queue.
	// +optional
	TargetObject *metav1.OwnerReference `json:"target,omitempty"`

	// Why, as one word in CamelCase, for programs.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Why, in words for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// +kubebuilder:object:root=true

// CommandList is what a list request for commands answers.
type CommandList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The commands found.
	Items []Command `json:"items"`
}
