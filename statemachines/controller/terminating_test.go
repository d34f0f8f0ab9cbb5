package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestTerminatingNamespaces has writes that are refused because their namespace is being deleted. controller-runtime would log an ERROR
// line for each error of a reconciler, and retry at once.
func TestTerminatingNamespaces(t *testing.T) {
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "train-worker-0",
		errors.New("unable to create new content in namespace team because it is being terminated"))
	terminating.ErrStatus.Details.Causes = append(terminating.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: "namespace team is being terminated", Field: "metadata.namespace",
	})
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "train-worker-1", errors.New("exceeded quota"))
	for _, c := range []struct {
		name string
		err  error
		ends bool
	}{
		{"nothing", nil, false},
		{"one pod", fmt.Errorf("create pod train-worker-0: %w", terminating), true},
		{"each pod of a job", fmt.Errorf("job team/train: %w", errors.Join(terminating, fmt.Errorf("create: %w", terminating))), true},
		{"another refusal as well", errors.Join(terminating, quota), false},
		{"another refusal", quota, false},
		{"another error", errors.New("connection refused"), false},
	} {
		result, err := patient{reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, c.err
		})}.Reconcile(t.Context(), reconcile.Request{})
		if c.ends && (err != nil || result.RequeueAfter != untilGone) || !c.ends && !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v", c.name, result, err)
		}
	}
}
