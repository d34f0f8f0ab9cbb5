package questions

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// The objects that route questions to the scheduler are created again after their deletion.
func TestRegistrationIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exist := map[string]bool{}
		c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(meta.NewDefaultRESTMapper([]schema.GroupVersion{})).
			WithInterceptorFuncs(interceptor.Funcs{
				Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
					named := o.(interface {
						GetKind() string
						GetName() string
					})
					exist[named.GetKind()+" "+named.GetName()] = true
					return nil
				},
			}).Build()
		ctx, stop := context.WithCancel(context.Background())
		s := &Server{Options: Options{Host: "10.0.0.7"}, Namespace: "celsius-system", Client: c, Ending: c, Log: logr.Discard()}
		go s.register(ctx, 8443, []byte("authority"))
		want := []*unstructured.Unstructured{s.slice(8443), s.apiService(8443, nil)}
		for _, when := range []string{"after the start", "after the deletion"} {
			clear(exist)
			time.Sleep(registerEvery + time.Second)
			for _, o := range want {
				if !exist[o.GetKind()+" "+o.GetName()] {
					t.Errorf("%s there is no %s %s", when, o.GetKind(), o.GetName())
				}
			}
		}
		stop()
	})
}
