package live

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// The queues root and default are created at the start, and again after the CRD of queues was deleted with all queues, and created again.
func TestQueuesAreCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missing := false // the CRD is missing
		noCRD := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: v1beta1.GroupName, Kind: "Queue"}}
		c := fake.NewClientBuilder().WithScheme(newScheme()).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if missing {
					return noCRD
				}
				return c.Get(ctx, key, o, opts...)
			},
		}).Build()
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		go (&scheduler{client: c, log: logr.Discard()}).ensureQueues(ctx)
		exist := func() (n int) {
			for _, name := range []string{v1beta1.RootQueue, v1beta1.DefaultQueue} {
				if c.Get(ctx, client.ObjectKey{Name: name}, &v1beta1.Queue{}) == nil {
					n++
				}
			}
			return n
		}
		time.Sleep(time.Second)
		if n := exist(); n != 2 {
			t.Fatalf("%d of 2 queues exist after the start", n)
		}
		if err := c.DeleteAllOf(ctx, &v1beta1.Queue{}); err != nil {
			t.Fatal(err)
		}
		missing = true
		time.Sleep(time.Minute)
		missing = false
		if n := exist(); n != 0 {
			t.Fatalf("%d queues exist without a CRD", n)
		}
		time.Sleep(2 * time.Second)
		if n := exist(); n != 2 {
			t.Errorf("%d of 2 queues exist after the CRD was created again", n)
		}
	})
}
