package webhook

import (
	"context"
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celsius-scheduler/celsius/rules/typed"
)

// Related is the object that another object refers to: the PodGroup that a Pod names, or the Job that a Command targets.
type Related struct{ Name, UID, Queue string }

// relatedSchema returns the type of Related in rows.
func relatedSchema() *typed.Schema {
	text := func(doc string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "string", Description: doc}
	}
	return typed.New(&apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"name": text("Its name; empty where nothing could be learnt of it."), "uid": text("Its UID."), "queue": text("Its queue."),
	}}, "Related")
}

// relatedTo returns a list with the object that the object refers to. The list is empty if that object does not exist.
func (f *frame) relatedTo() ref.Val {
	if f.request.Related == nil {
		return types.NewErr("what the object speaks of is not known")
	}
	found, err := f.request.Related()
	if err != nil {
		return types.WrapErr(err)
	}
	var out []ref.Val
	if found != nil {
		out = append(out, typed.Object(f.table.related, map[string]any{
			"name": found.Name, "uid": found.UID, "queue": found.Queue,
		}))
	}
	return types.NewRefValList(types.DefaultTypeAdapter, out)
}

// find reads an object that another object refers to. It returns nil if that does not exist.
func (s *server) find(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*Related, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err := s.client.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // it is not there
	}
	if err != nil {
		return nil, fmt.Errorf("find %s %s: %w", kind.Kind, key, err)
	}
	text := func(path ...string) string {
		found, _, _ := unstructured.NestedString(object.Object, path...)
		return found
	}
	return &Related{Name: object.GetName(), UID: string(object.GetUID()), Queue: text("spec", "queue")}, nil
}
