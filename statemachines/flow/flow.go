// Package flow computes the Jobs of a JobFlow. It stores nothing and sends no request.
//
//	JobFlow, one of its flows, the JobTemplate that the flow names --Job--> the Job
//	spec of a template, patch of a flow --Patched--> spec of the Job
package flow

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
)

// JobName returns the name of a flow's Job.
func JobName(jobFlow, flow string) string { return jobFlow + "-" + flow }

// Job returns the Job of a flow.
func Job(of *flowv1alpha1.JobFlow, f *flowv1alpha1.Flow, template *flowv1alpha1.JobTemplate) (*batchv1alpha1.Job, error) {
	spec := template.Spec.DeepCopy()
	if f.Patch != nil && f.Patch.JobSpec != nil {
		patched, err := Patched(spec, f.Patch.JobSpec)
		if err != nil {
			return nil, fmt.Errorf("merge patch.jobSpec into jobtemplate %s: %w", template.Name, err)
		}
		spec = patched
	}
	marks := func() map[string]string {
		return map[string]string{
			flowv1alpha1.CreatedByJobTemplate: template.Namespace + "." + template.Name,
			flowv1alpha1.CreatedByJobFlow:     of.Namespace + "." + of.Name,
		}
	}
	return &batchv1alpha1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: JobName(of.Name, f.Name), Labels: marks(), Annotations: marks(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(of, flowv1alpha1.GroupVersion.WithKind("JobFlow"))},
		},
		Spec: *spec,
	}, nil
}
