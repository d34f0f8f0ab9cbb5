package live

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/lease"
)

// pods is what the scheduler does to pods.
type pods interface {
	// Bind puts a pod on a node. The Binding carries the pod's UID.
	Bind(ctx context.Context, b *corev1.Binding) error
	// Get reads a pod as the API server has it now.
	Get(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	// Evict asks for the end of a pod, as far as disruption budgets let it.
	Evict(ctx context.Context, namespace, name string, uid types.UID) error
	// Delete asks for the end of a pod, whatever disruption budgets say.
	Delete(ctx context.Context, namespace, name string, uid types.UID) error
	// PatchStatus is a strategic merge patch of a pod's status.
	PatchStatus(ctx context.Context, namespace, name string, patch []byte) error
}

// statusWriter writes the statuses of our own kinds, each with the fields that are the scheduler's.
type statusWriter interface {
	// MakeGroup makes a PodGroup with the status that it has, and fills in what the API server does.
	MakeGroup(ctx context.Context, g *v1beta1.PodGroup) error
	// ApplyGroup gives the PodGroup back as it is then.
	ApplyGroup(ctx context.Context, namespace, name string, apply []byte) (*v1beta1.PodGroup, error)
	ApplyQueue(ctx context.Context, name string, apply []byte) error
}

// corePods is pods by the core client, in protobuf.
type corePods struct {
	client   *corev1client.CoreV1Client
	bindings *poster
}

// writes is the way to the API server for what only the leader may do.
type writes struct {
	cfg    *rest.Config
	client *http.Client
}

// newWrites ends at the fence of a lease; without one it is as the config says.
func newWrites(cfg *rest.Config, l *lease.Lease) (writes, error) {
	cfg, c, err := l.Fence().Client(cfg, l.Tail())
	return writes{cfg, c}, err
}

func newCorePods(w writes) (corePods, error) {
	client, err := newCoreClient(w)
	if err != nil {
		return corePods{}, err
	}
	bindings, err := newPoster(client)
	return corePods{client, bindings}, err
}

// newCoreClient speaks protobuf, whatever the config says: bindings are what there is most of.
func newCoreClient(w writes) (*corev1client.CoreV1Client, error) {
	cfg := rest.CopyConfig(w.cfg)
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c, err := corev1client.NewForConfigAndClient(cfg, w.client)
	if err != nil {
		return nil, fmt.Errorf("make a client for core/v1: %w", err)
	}
	return c, nil
}

func (p corePods) Bind(ctx context.Context, b *corev1.Binding) error {
	return p.bindings.bind(ctx, b)
}

func (p corePods) Get(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return p.client.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Evict does not do what client-go's EvictV1 does, which asks again and again while a budget refuses, and keeps a worker as long.
func (p corePods) Evict(ctx context.Context, namespace, name string, uid types.UID) error {
	return p.client.RESTClient().Post().MaxRetries(0).Namespace(namespace).Resource("pods").Name(name).SubResource("eviction").
		Body(&policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: namespace, Name: name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
		}).Do(ctx).Error()
}

func (p corePods) Delete(ctx context.Context, namespace, name string, uid types.UID) error {
	return p.client.Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
}

func (p corePods) PatchStatus(ctx context.Context, namespace, name string, patch []byte) error {
	_, err := p.client.Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{
		FieldManager: FieldManager,
	}, "status")
	return err
}

// applied is statusWriter by server-side apply.
type applied struct{ client client.Client }

func (a applied) MakeGroup(ctx context.Context, g *v1beta1.PodGroup) error {
	return a.client.Create(ctx, g, client.FieldOwner(FieldManager))
}

func (a applied) ApplyGroup(ctx context.Context, namespace, name string, apply []byte) (*v1beta1.PodGroup, error) {
	g := &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	err := a.client.Patch(ctx, g, client.RawPatch(types.ApplyPatchType, apply), client.FieldOwner(FieldManager), client.ForceOwnership)
	return g, err
}

func (a applied) ApplyQueue(ctx context.Context, name string, apply []byte) error {
	q := &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return a.client.Status().Patch(ctx, q, client.RawPatch(types.ApplyPatchType, apply), client.FieldOwner(FieldManager),
		client.ForceOwnership)
}

// applyMeta is the metadata of an apply. The UID keeps an apply from making an object anew that is gone.
type applyMeta struct {
	Namespace       string    `json:"namespace,omitempty"`
	Name            string    `json:"name,omitempty"`
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

// applyBody is an object that has nothing but a status.
type applyBody struct {
	APIVersion string    `json:"apiVersion,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	Metadata   applyMeta `json:"metadata"`
	Status     any       `json:"status"`
}

// encode is JSON of what always has one.
func encode(body applyBody) []byte {
	data, err := json.Marshal(body)
	if err != nil {
		return []byte("{}") // never: there are only strings, numbers and times in it
	}
	return data
}
