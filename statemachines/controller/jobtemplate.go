package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
)

// jobTemplates tells of each JobTemplate which Jobs were made from it.
type jobTemplates struct{ *parts }

func addJobTemplates(mgr manager.Manager, p *parts) error {
	r := &jobTemplates{p}
	return ctrl.NewControllerManagedBy(mgr).Named("jobtemplate").
		For(&flowv1alpha1.JobTemplate{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&batchv1alpha1.Job{}, handler.EnqueueRequestsFromMapFunc(templateOf),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})).
		WithOptions(p.controllerOptions()).
		Complete(r)
}

// templateOf names the template that a Job was made from. A namespace has no dot, and a template's name may.
func templateOf(_ context.Context, job client.Object) []reconcile.Request {
	namespace, name, ok := strings.Cut(job.GetLabels()[flowv1alpha1.CreatedByJobTemplate], ".")
	if !ok || namespace != job.GetNamespace() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// Reconcile lists the Jobs that were made from one template.
func (r *jobTemplates) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	template := &flowv1alpha1.JobTemplate{}
	if err := r.client.Get(ctx, req.NamespacedName, template); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	list := &batchv1alpha1.JobList{}
	if err := r.client.List(ctx, list, client.InNamespace(req.Namespace),
		client.MatchingFields{byTemplate: req.Namespace + "." + req.Name}, client.UnsafeDisableDeepCopy); err != nil {
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
	err := r.client.Status().Patch(ctx, template, client.MergeFrom(old), client.FieldOwner(fieldManager))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write the status of jobtemplate %s: %w", req, err)
	}
	return reconcile.Result{}, nil
}
