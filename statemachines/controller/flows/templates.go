package flows

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
)

// Templates writes into each JobTemplate which Jobs were created from it.
type Templates struct{ Shared }

// TemplateOf returns a list with the template that a Job was created from, or an empty list. The label joins namespace and name with a dot.
// A namespace contains no dot, but the name of a template may.
func TemplateOf(job client.Object) []reconcile.Request {
	namespace, name, ok := strings.Cut(job.GetLabels()[flowv1alpha1.CreatedByJobTemplate], ".")
	if !ok || namespace != job.GetNamespace() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// Reconcile lists the Jobs that were created from one template.
func (r *Templates) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	template := &flowv1alpha1.JobTemplate{}
	if err := r.Client.Get(ctx, req.NamespacedName, template); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.Serves(template.Spec.SchedulerName) {
		return reconcile.Result{}, nil
	}
	list := &batchv1alpha1.JobList{}
	if err := r.Client.List(ctx, list, client.InNamespace(req.Namespace),
		client.MatchingFields{r.ByTemplate: req.Namespace + "." + req.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list the Jobs of jobtemplate %s: %w", req, err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	if template.DeletionTimestamp != nil || slices.Equal(names, template.Status.JobDependsOnList) {
		return reconcile.Result{}, nil
	}
	old := template.DeepCopy()
	template.Status.JobDependsOnList = names
	err := r.Client.Status().Patch(ctx, template, client.MergeFrom(old), r.Owner)
	if err != nil && !IsGone(err) {
		return reconcile.Result{}, fmt.Errorf("write the status of jobtemplate %s: %w", req, err)
	}
	return reconcile.Result{}, nil
}
