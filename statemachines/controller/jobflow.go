package controller

import (
	"context"
	"net"

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
	"github.com/celsius-scheduler/celsius/statemachines/controller/flows"
)

// jobFlowMachine is the name of the state machine of JobFlows.
const jobFlowMachine = "jobflow"

// ofFlows returns what the controllers of flows share with the other controllers.
func (p *parts) ofFlows() flows.Shared {
	return flows.Shared{
		Client: p.client, Live: p.live, Owner: fieldManager, ByOwner: byOwner, ByTemplate: byTemplate,
		Machine: p.options.StateMachines[jobFlowMachine], MaxJobs: p.options.MaxJobs, Memory: versions{newMemory()},
		Serves: func(scheduler string) bool {
			return p.serves(&batchv1alpha1.Job{Spec: batchv1alpha1.JobSpec{SchedulerName: scheduler}})
		},
		Ended: func(of *flowv1alpha1.JobFlow) {
			p.metrics.flows.WithLabelValues(of.Namespace, string(of.Status.State.Phase)).Inc()
		},
		Tell: p.event, Dial: (&net.Dialer{}).DialContext, Now: p.now,
	}
}

// versions is a memory for controllers that only need the version that they last wrote.
type versions struct{ memory *memory }

func (v versions) recall(of client.Object) *recall {
	return v.memory.of(client.ObjectKeyFromObject(of), of.GetUID())
}

// Behind implements flows.Memory.
func (v versions) Behind(of client.Object) bool { return v.recall(of).behind(of.GetResourceVersion()) }

// Wrote implements flows.Memory.
func (v versions) Wrote(of client.Object) { v.recall(of).version = of.GetResourceVersion() }

// Forget implements flows.Memory.
func (v versions) Forget(name types.NamespacedName) { v.memory.forget(name) }

func addJobFlows(mgr manager.Manager, p *parts) error {
	r := flows.New(p.ofFlows())
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &flowv1alpha1.JobFlow{}, handler.OnlyControllerOwner())
	gone := func(e event.DeleteEvent) bool {
		if job, ok := e.Object.(*batchv1alpha1.Job); ok {
			r.JobGone(job)
		}
		return true
	}
	naming := func(ctx context.Context, o client.Object) []reconcile.Request {
		template, ok := o.(*flowv1alpha1.JobTemplate)
		if !ok {
			return nil
		}
		found, err := r.Naming(ctx, template)
		if err != nil {
			logOf(ctx).Error(err, "the flows of a template are not woken")
		}
		return found
	}
	return ctrl.NewControllerManagedBy(mgr).Named("jobflow").
		For(&flowv1alpha1.JobFlow{}, builder.WithPredicates(saysSomethingElse())).
		Watches(&batchv1alpha1.Job{}, owner, builder.WithPredicates(predicate.Funcs{DeleteFunc: gone})).
		Watches(&flowv1alpha1.JobTemplate{}, handler.EnqueueRequestsFromMapFunc(naming), builder.WithPredicates(
			predicate.GenerationChangedPredicate{}, predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }},
		)).
		WithOptions(p.controllerOptions()).
		Complete(p.recovering(&flowv1alpha1.JobFlow{}, r))
}

func addJobTemplates(mgr manager.Manager, p *parts) error {
	of := func(_ context.Context, job client.Object) []reconcile.Request { return flows.TemplateOf(job) }
	labels := func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetLabels()[flowv1alpha1.CreatedByJobTemplate] != e.ObjectNew.GetLabels()[flowv1alpha1.CreatedByJobTemplate]
	}
	return ctrl.NewControllerManagedBy(mgr).Named("jobtemplate").
		For(&flowv1alpha1.JobTemplate{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&batchv1alpha1.Job{}, handler.EnqueueRequestsFromMapFunc(of), builder.WithPredicates(predicate.Funcs{UpdateFunc: labels})).
		WithOptions(p.controllerOptions()).
		Complete(p.recovering(&flowv1alpha1.JobTemplate{}, &flows.Templates{Shared: p.ofFlows()}))
}
