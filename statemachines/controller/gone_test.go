package controller

import (
	"context"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// TestDeletedBeforeItsStatusIsWritten deletes an object after a controller has read it, and before the controller writes its status. The
// reconcile ends without an error, because controller-runtime would log it. It ends with an error if the API server does not serve the
// resource.
func TestDeletedBeforeItsStatusIsWritten(t *testing.T) {
	for kind, object := range map[string]func() client.Object{
		"job":     func() client.Object { return trainJob(t, "") },
		"queue":   func() client.Object { return &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "new"}} },
		"cronjob": func() client.Object { return nightly(t) },
		"jobflow": func() client.Object { return flowOf(t, diamond) },
	} {
		for _, served := range []bool{true, false} {
			of := object()
			s := newStage(t, Options{}, openQueue(), template("a"), of)
			s.now = time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
			writes := 0
			s.client = interceptor.NewClient(s.client, s.afterDeletion(of, served, &writes))
			s.newController()
			var failed error
			for i := 0; i < 5 && writes == 0; i++ {
				_, failed = s.reconcilers[kind].Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(of)})
			}
			if writes != 1 || (failed != nil) == served {
				t.Errorf("%s: %d status writes, error %v; served: %t", kind, writes, failed, served)
			}
		}
	}
}

// afterDeletion returns hooks that delete an object before its status is written, or that stop serving the resource.
func (s *stage) afterDeletion(of client.Object, served bool, writes *int) interceptor.Funcs {
	write := func(do func() error) error {
		*writes++
		if !served {
			resource := schema.GroupResource{Resource: "some"}
			return apierrors.NewGenericServerResponse(http.StatusNotFound, "patch", resource, of.GetName(), "404 page not found", 0, true)
		}
		if err := s.api.Delete(context.Background(), of); err != nil {
			return err
		}
		return do()
	}
	return interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			return write(func() error { return c.SubResource(sub).Patch(ctx, obj, p, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration,
			opts ...client.SubResourceApplyOption,
		) error {
			return write(func() error { return c.SubResource(sub).Apply(ctx, obj, opts...) })
		},
	}
}
