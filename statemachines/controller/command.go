package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// The reasons of events about Commands.
const (
	commandIssued  = string(batchv1alpha1.CommandIssued)
	commandRefused = "CommandRefused"
)

// errLeftOut states that an object exists but cannot be decoded.
var errLeftOut = errors.New("cannot be decoded")

// untilMended is how long the controllers wait before they retry a Command on such an object.
const untilMended = time.Minute

// commands executes Commands, each at most once: only the process that deletes the Command executes it.
type commands struct {
	*parts
	wakeJob, wakeQueue wake
}

func addCommands(mgr manager.Manager, p *parts, wakeJob, wakeQueue wake) error {
	return ctrl.NewControllerManagedBy(mgr).Named("command").For(&busv1alpha1.Command{}).
		WithOptions(p.controllerOptions()).
		Complete(p.recovering(&busv1alpha1.Command{}, &commands{p, wakeJob, wakeQueue}))
}

// Reconcile takes one Command.
func (c *commands) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	command := &busv1alpha1.Command{}
	if err := c.client.Get(ctx, req.NamespacedName, command); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if command.TargetObject == nil || command.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	at, ours, err := c.aim(ctx, command)
	switch {
	case errors.Is(err, errLeftOut):
		return reconcile.Result{RequeueAfter: untilMended}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("find the target of command %s: %w", req, err)
	case !ours:
		return reconcile.Result{}, nil
	}
	if taken, err := c.take(ctx, command); err != nil || !taken {
		return reconcile.Result{}, err
	}
	switch target := command.TargetObject; {
	case at.missing || target.UID != "" && target.UID != at.on.GetUID():
		logOf(ctx).Info("dropped a command: its target is not there", "action", command.Action, "kind", target.Kind, "target", target.Name,
			"uid", target.UID)
	case at.refusal != "":
		logOf(ctx).Info("dropped a command", "why", at.refusal, "action", command.Action, "kind", target.Kind, "target", target.Name)
		c.event(at.on, corev1.EventTypeWarning, commandRefused, command.Action, "command %s dropped: %s", req, at.refusal)
	default:
		c.obey(ctx, command, at.on, at.to)
	}
	return reconcile.Result{}, nil
}

// aimed is the target of a Command, with the channel that wakes the target's controller.
type aimed struct {
	on      client.Object
	to      wake
	missing bool
	// refusal is why the Command is not executed, or "" if it may be executed.
	refusal string
}

// aim finds the target of a Command. ours is false if other controllers execute the Command.
func (c *commands) aim(ctx context.Context, command *busv1alpha1.Command) (at aimed, ours bool, err error) {
	target := command.TargetObject
	of := schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).GroupKind()
	switch of {
	case jobKind():
		job := &batchv1alpha1.Job{}
		at = aimed{on: job, to: c.wakeJob}
		err = c.target(ctx, types.NamespacedName{Namespace: command.Namespace, Name: target.Name}, job)
		ours = err != nil || c.serves(job)
	case schedulingv1beta1.GroupVersion.WithKind("Queue").GroupKind():
		at, ours = aimed{on: &schedulingv1beta1.Queue{}, to: c.wakeQueue}, true
		if err = c.target(ctx, types.NamespacedName{Name: target.Name}, at.on); err == nil {
			at.refusal, err = c.refusal(ctx, command)
		}
	}
	if apierrors.IsNotFound(err) {
		at.missing, err = true, nil
	}
	return at, ours, err
}

// refusal returns why a Command on a Queue is not executed. All users share a queue. A Command in the user's own namespace must not do what
// the user could not do to the queue directly.
func (c *commands) refusal(ctx context.Context, command *busv1alpha1.Command) (string, error) {
	if command.TargetObject.UID == "" {
		return "target.uid is empty; write the UID of the queue", nil
	}
	why, err := c.unguarded(ctx, command)
	if why != "" {
		why = "it cannot be verified that its creator may change the queue: " + why +
			"; install deploy/guard (kubectl apply -k deploy/guard), then create the command again"
	}
	return why, err
}

// take deletes the Command, and reports whether this process was the one that deleted it.
func (c *commands) take(ctx context.Context, command *busv1alpha1.Command) (bool, error) {
	uid := command.UID
	err := c.client.Delete(ctx, command, client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("take command %s/%s: %w", command.Namespace, command.Name, err)
	}
	return true, nil
}

// obey passes the action of a Command to its target.
func (c *commands) obey(ctx context.Context, command *busv1alpha1.Command, on client.Object, to wake) {
	c.metrics.commands.WithLabelValues(command.TargetObject.Kind, command.Action).Inc()
	c.event(on, corev1.EventTypeNormal, commandIssued, command.Action,
		"Start to execute command %s, and clean it up to make sure executed not more than once.", command.Action)
	if !c.memory.of(client.ObjectKeyFromObject(on), on.GetUID()).ask(request{
		action: command.Action, reason: commandIssued,
		message: commandText(command),
	}) {
		logOf(ctx).Info("dropped a command: too many wait for its target", "action", command.Action, "kind", command.TargetObject.Kind,
			"target", on.GetName())
		return
	}
	select {
	case to <- event.GenericEvent{Object: on}:
	case <-ctx.Done():
	}
}

// commandText returns a text about a Command for messages.
func commandText(command *busv1alpha1.Command) string {
	text := fmt.Sprintf("command %s asked for %s", command.Name, command.Action)
	switch {
	case command.Message != "":
		text += ": " + command.Message
	case command.Reason != "":
		text += ": " + command.Reason
	}
	return text
}

// target reads the target of a Command from the cache. If the cache does not have it yet, it reads from the API server.
func (c *commands) target(ctx context.Context, key types.NamespacedName, into client.Object) error {
	err := c.client.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		into.SetNamespace(key.Namespace)
		into.SetName(key.Name)
		if c.leftOut(into) != nil {
			return errLeftOut
		}
		err = c.live.Get(ctx, key, into)
	}
	return err //nolint:wrapcheck // the caller says what was done
}
