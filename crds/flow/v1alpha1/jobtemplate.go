package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=jobtemplates,scope=Namespaced,shortName=jt
// +kubebuilder:subresource:status

// JobTemplate is what JobFlows make Jobs from. What is changed in it is true of later Jobs only.
type JobTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted of the Jobs.
	// +optional
	Spec batchv1alpha1.JobSpec `json:"spec,omitempty"`

	// What was last seen; written by the controllers.
	// +optional
	Status JobTemplateStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// JobTemplateList is what a list request for jobtemplates answers.
type JobTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The jobtemplates found.
	Items []JobTemplate `json:"items"`
}

// JobTemplateStatus is what was last seen of a JobTemplate.
type JobTemplateStatus struct {
	// The Jobs that were made from it and are there.
	// +listType=atomic
	// +optional
	JobDependsOnList []string `json:"jobDependsOnList,omitempty"`
}
