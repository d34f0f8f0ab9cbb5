package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=cronjobs,scope=Namespaced,shortName=cronvcjob;cronvj
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 52",optionalOldSelf=true,message="metadata.name has more than 52 characters; write a shorter one, as the names of Jobs and their pods begin with it"

// CronJob creates Jobs repeatedly, at the times that its schedule states.
type CronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The desired state of the CronJob.
	// +optional
	Spec CronJobSpec `json:"spec,omitempty"`

	// The observed state of the CronJob. The controllers write it.
	// +optional
	Status CronJobStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// CronJobList is what a list request for cronjobs answers.
type CronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The cronjobs found.
	Items []CronJob `json:"items"`
}

// ConcurrencyPolicy says what happens when a Job is due while an earlier one has not ended.
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

// The values of ConcurrencyPolicy.
const (
	// AllowConcurrent starts it beside the other.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent starts it when the other has ended, if it is not too late then.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent deletes the other, and starts it.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// CronJobSpec is what is wanted of a CronJob.
type CronJobSpec struct {
	// When Jobs are started: minute, hour, day of the month, month and day of the week. A word
	// such as @hourly, or @every with a duration, is also valid.
	// +kubebuilder:validation:XValidation:rule="self.size() > 0",message="is empty; write when Jobs are due, such as 0 3 * * * for three o'clock each night"
	Schedule string `json:"schedule"`

	// The time zone of the schedule, such as Europe/Berlin. Unset: the time zone of the
	// controllers.
	// +kubebuilder:validation:XValidation:rule="self.size() > 0",message="is empty; write the name of a time zone, such as Europe/Berlin, or leave it out"
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`

	// How late a Job may start after its scheduled time, in seconds. At least 0. Unset: no limit.
	// +kubebuilder:validation:Minimum=0
	// +optional
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// How to handle a Job whose time has come while an earlier Job has not ended. Allow: both run.
	// Forbid: the new Job starts after the earlier Job has ended, unless that is too late.
	// Replace: the earlier Job is deleted and the new Job starts. Default: Allow.
	// +kubebuilder:default:=Allow
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// Whether to start no further Jobs. Jobs that run are not affected. Default: false.
	// +kubebuilder:default:=false
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// The template of the Jobs that are created.
	JobTemplate JobTemplateSpec `json:"jobTemplate"`

	// How many completed Jobs are kept; the oldest are deleted first. At least 0. Default: 3.
	// +kubebuilder:default:=3
	// +kubebuilder:validation:Minimum=0
	// +optional
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// How many failed or terminated Jobs are kept; the oldest are deleted first. At least 0.
	// Default: 1.
	// +kubebuilder:default:=1
	// +kubebuilder:validation:Minimum=0
	// +optional
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
}

// JobTemplateSpec is what a Job is made from.
type JobTemplateSpec struct {
	// Labels and annotations of the Job.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The desired state of the Job.
	// +optional
	Spec JobSpec `json:"spec,omitempty"`
}

// CronJobStatus is what was last seen of a CronJob.
type CronJobStatus struct {
	// The Jobs that have not ended.
	// +listType=atomic
	// +optional
	Active []corev1.ObjectReference `json:"active,omitempty"`

	// The scheduled time of the last Job that was started.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// The time at which a Job last completed.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
}
