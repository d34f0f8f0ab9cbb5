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

// pods is the part of the API for pods that the scheduler uses.
type pods interface {
	// Bind binds a pod to a node. The Binding contains the pod's UID.
	Bind(ctx context.Context, b *corev1.Binding) error
	// Get reads the current version of a pod from the API server.
	Get(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	// Evict evicts a pod if disruption budgets allow it.
	Evict(ctx context.Context, namespace, name string, uid types.UID) error
	// Delete deletes a pod regardless of disruption budgets.
	Delete(ctx context.Context, namespace, name string, uid types.UID) error
	// PatchStatus sends a strategic merge patch of a pod's status.
	PatchStatus(ctx context.Context, namespace, name string, patch []byte) error
}

// statusWriter writes the scheduler's fields in the statuses of our own API types.
type statusWriter interface {
	// MakeGroup creates a PodGroup with its status, and stores the server's fields in g.
	MakeGroup(ctx context.Context, g *v1beta1.PodGroup) error
	// ApplyGroup returns the PodGroup as it is after the apply.
	ApplyGroup(ctx context.Context, namespace, name string, apply []byte) (*v1beta1.PodGroup, error)
	ApplyQueue(ctx context.Context, name string, apply []byte) error
}

// corePods implements pods with the core client, in protobuf.
type corePods struct {
	client   *corev1client.CoreV1Client
	bindings *poster
}

// writes is the client configuration for requests that only the leader may send.
type writes struct {
	cfg    *rest.Config
	client *http.Client
}

// newWrites returns writes that end at the fence of a lease. Without a lease they follow the config alone.
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

// newCoreClient returns a client that always uses protobuf, regardless of the config, because bindings are the most frequent requests.
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

// Evict sends one request. client-go's EvictV1 would retry while a budget refuses, and would occupy a worker for that time.
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

// applied implements statusWriter with server-side apply.
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

// applyMeta is the metadata of an apply. The UID prevents an apply from creating a deleted object again.
type applyMeta struct {
	Namespace       string    `json:"namespace,omitempty"`
	Name            string    `json:"name,omitempty"`
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

// applyBody is an object that contains only a status.
type applyBody struct {
	APIVersion string    `json:"apiVersion,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	Metadata   applyMeta `json:"metadata"`
	Status     any       `json:"status"`
}

// encode returns the JSON of a body.
func encode(body applyBody) []byte {
	data, err := json.Marshal(body)
	if err != nil {
		return []byte("{}") // impossible: the body contains only strings, numbers and times
	}
	return data
}
