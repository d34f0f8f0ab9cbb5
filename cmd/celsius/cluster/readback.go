package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// Create creates an object, and reads it back. An error means that the object may not exist. A dry run is not read back.
func (r *Reach) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	var of client.CreateOptions
	of.ApplyOptions(options)
	if err := r.WithWatch.Create(ctx, o, options...); err != nil || len(of.DryRun) > 0 {
		return err //nolint:wrapcheck // the API server names the object
	}
	_, err := r.readBack(ctx, o, "creation")
	return err
}

// Delete deletes an object. It then checks that the object no longer exists, or is being deleted.
func (r *Reach) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	_, err := r.remove(ctx, o, options...)
	return err
}

// remove is Delete, and returns what to report: "deleted", or that the object is being deleted, with what blocks it.
func (r *Reach) remove(ctx context.Context, o client.Object, options ...client.DeleteOption) (string, error) {
	if err := r.WithWatch.Delete(ctx, o, options...); err != nil {
		return "", err //nolint:wrapcheck // the API server names the object
	}
	return isGone(ctx, r, o)
}

// Patch changes an object. It then checks that its spec is the one that the API server returned.
func (r *Reach) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	if err := r.WithWatch.Patch(ctx, o, patch, options...); err != nil {
		return err //nolint:wrapcheck // the API server names the object
	}
	now, err := r.readBack(ctx, o, "change")
	if err != nil {
		return err
	}
	if !sameSpec(specOf(now), specOf(o)) {
		return fmt.Errorf("the change of %s was sent, but the object differs from it: another client or a webhook changed it as well",
			o.GetName())
	}
	return nil
}

// readBack reads an object from the API server again.
func (r *Reach) readBack(ctx context.Context, o client.Object, what string) (client.Object, error) {
	now, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object", o)
	}
	switch err := r.Get(ctx, client.ObjectKeyFromObject(o), now); {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the %s of %s was sent, but the object is not there: a webhook or another client removed it", what, o.GetName())
	case err != nil:
		return nil, fmt.Errorf("the %s of %s was sent, but the object cannot be read back: %w", what, o.GetName(), err)
	}
	return now, nil
}

func specOf(o client.Object) any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil
	}
	return content["spec"]
}

// order is an action that the controllers take because of a Command.
type order struct {
	action, namespace string
	target            *metav1.OwnerReference
	// state reads the state of the target, and whether it is what the action leads to.
	state func(ctx context.Context) (state string, reached bool, err error)
}

// give creates a Command and waits until its target reaches the requested state. It returns what to report. After some time it stops
// waiting: then the Command still exists, and is reported as requested.
func (r *Reach) give(ctx context.Context, o order, patience time.Duration) (string, error) {
	command := &busv1alpha1.Command{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: o.target.Name + "-" + strings.ToLower(o.action) + "-", Namespace: o.namespace,
			OwnerReferences: []metav1.OwnerReference{*o.target},
		},
		TargetObject: o.target, Action: o.action,
	}
	if err := r.WithWatch.Create(ctx, command); err != nil { // the controllers delete it
		return "", err //nolint:wrapcheck // the API server names the object
	}
	if command.ResourceVersion == "" { // the API server returns a resource version for each stored Command
		return "", fmt.Errorf("%s of %s was requested, but the API server stored no Command", o.action, o.target.Name)
	}
	const pause = 100 * time.Millisecond
	for end := time.Now().Add(patience); ; {
		state, reached, err := o.state(ctx)
		if err != nil {
			return "", fmt.Errorf("%s of %s %s was requested, but the state of the %[2]s cannot be read back: %[4]w", o.action, o.target.Kind,
				o.target.Name, err)
		}
		if reached {
			return "is " + state, nil
		}
		waits := r.Get(ctx, client.ObjectKeyFromObject(command), &busv1alpha1.Command{})
		switch late := time.Now().After(end); {
		case waits != nil && !apierrors.IsNotFound(waits):
			return "", fmt.Errorf("%s of %s was requested, but the Command cannot be read back: %w", o.action, o.target.Name, waits)
		case late && waits == nil:
			return fmt.Sprintf("is still %s: %s is requested, and the controllers have not acted on it yet", state, o.action), nil
		case late:
			return "", fmt.Errorf("%s of %s was requested, but the Command is gone, and %[2]s is still %[3]s: the controllers do not take "+
				"this action in this state, or a webhook or another client removed the Command", o.action, o.target.Name, state)
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err() //nolint:wrapcheck // the user ended it
		case <-time.After(pause):
		}
	}
}

// commandJob requests an action on a Job from the controllers. It returns what to report.
func (t *tool) commandJob(ctx context.Context, r *Reach, name types.NamespacedName, action string) (string, error) {
	job := &batchv1alpha1.Job{}
	if err := r.Get(ctx, name, job); err != nil {
		return "", err
	}
	suspended := []batchv1alpha1.JobPhase{batchv1alpha1.Aborting, batchv1alpha1.Aborted}
	return r.give(ctx, order{
		action: action, namespace: name.Namespace, target: metav1.NewControllerRef(job, batchv1alpha1.GroupVersion.WithKind("Job")),
		state: func(ctx context.Context) (string, bool, error) {
			if err := r.Get(ctx, name, job); err != nil {
				return "", false, err
			}
			phase := phaseOf(job)
			switch action {
			case abortJob:
				return string(phase), slices.Contains(suspended, phase), nil
			case resumeJob:
				return string(phase), isResumed(phase), nil
			}
			return string(phase), false, nil
		},
	}, t.Patience)
}

// isResumed reports whether a Job has this phase after it was resumed.
func isResumed(phase batchv1alpha1.JobPhase) bool {
	return slices.Contains([]batchv1alpha1.JobPhase{batchv1alpha1.Pending, batchv1alpha1.Running, batchv1alpha1.Restarting}, phase)
}

// commandQueue requests from the controllers to open or close a queue. It returns what to report.
func (t *tool) commandQueue(ctx context.Context, r *Reach, queue *schedulingv1beta1.Queue, action string) (string, error) {
	leadsTo := []schedulingv1beta1.QueueState{schedulingv1beta1.QueueStateOpen}
	if action == closeQueue {
		leadsTo = []schedulingv1beta1.QueueState{schedulingv1beta1.QueueStateClosing, schedulingv1beta1.QueueStateClosed}
	}
	return r.give(ctx, order{
		action: action, namespace: commandNamespace,
		target: metav1.NewControllerRef(queue, schedulingv1beta1.GroupVersion.WithKind("Queue")),
		state: func(ctx context.Context) (string, bool, error) {
			if err := r.Get(ctx, client.ObjectKeyFromObject(queue), queue); err != nil {
				return "", false, err
			}
			state := queue.Status.State
			if state == "" {
				state = schedulingv1beta1.QueueStateOpen
			}
			return string(state), slices.Contains(leadsTo, state), nil
		},
	}, t.Patience)
}
