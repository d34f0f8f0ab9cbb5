package informers

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"github.com/celsius-scheduler/celsius/crds/decode"
)

// undecodable stands for an object of which only the metadata could be decoded.
type undecodable struct {
	metav1.PartialObjectMetadata
	// empty is an object of the Go type, with the metadata alone.
	empty runtime.Object
	// why is about one field, where it is known which.
	why error
}

// serializer has everything decoded object by object.
type serializer struct {
	runtime.NegotiatedSerializer
	scheme *runtime.Scheme
	// leftOut is called for items of lists.
	leftOut func(*undecodable)
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (s serializer) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return decoder{s.NegotiatedSerializer.DecoderToVersion(d, gv), s}
}

// decoder gives an *undecodable for an object of a watch that cannot be decoded, and lists without those.
type decoder struct {
	strict runtime.Decoder
	serializer
}

// Decode implements runtime.Decoder. What can be decoded takes the straight way.
func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object,
	*schema.GroupVersionKind, error,
) {
	if !decode.Suspicious(data) {
		out, gvk, err := d.strict.Decode(data, defaults, into)
		if err == nil {
			return out, gvk, nil
		}
	}
	if into != nil && meta.IsListType(into) {
		gvk, err := d.list(data, into)
		return into, gvk, err
	}
	return d.one(data, defaults, into)
}

// one decodes one object whose straight decoding failed, or could take for ever.
func (d decoder) one(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object,
	*schema.GroupVersionKind, error,
) {
	var head metav1.PartialObjectMetadata
	if err := kubejson.Unmarshal(data, &head); err != nil {
		return nil, nil, fmt.Errorf("decode an object: %w", err)
	}
	if head.Kind == "" && defaults != nil {
		head.SetGroupVersionKind(*defaults)
	}
	gvk := head.GroupVersionKind()
	empty, err := d.scheme.New(gvk)
	if err != nil {
		return nil, nil, fmt.Errorf("decode an object: %w", err)
	}
	_, why := decode.Check(data, reflect.TypeOf(empty))
	if why == nil {
		var out runtime.Object
		if out, _, why = d.strict.Decode(data, defaults, into); why == nil {
			return out, &gvk, nil
		}
	}
	if into != nil {
		return nil, nil, why
	}
	metadata, err := json.Marshal(&head)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the metadata of an object: %w", err)
	}
	if err := kubejson.Unmarshal(metadata, empty); err != nil {
		return nil, nil, fmt.Errorf("decode the metadata of an object: %w", err)
	}
	return &undecodable{PartialObjectMetadata: head, empty: empty, why: why}, &gvk, nil
}

// list decodes a list item by item.
func (d decoder) list(data []byte, into runtime.Object) (*schema.GroupVersionKind, error) {
	var raw struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := kubejson.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("decode a list: %w", err)
	}
	var items []runtime.Object
	for _, item := range raw.Items {
		out, _, err := d.Decode(item, nil, nil)
		if err != nil {
			return nil, err
		}
		if wrong, ok := out.(*undecodable); ok {
			d.leftOut(wrong)
			continue
		}
		items = append(items, out)
	}
	list, err := meta.ListAccessor(into)
	if err != nil {
		return nil, fmt.Errorf("decode a list: %w", err)
	}
	list.SetResourceVersion(raw.ResourceVersion)
	list.SetContinue(raw.Continue)
	list.SetRemainingItemCount(raw.RemainingItemCount)
	if err := meta.SetList(into, items); err != nil {
		return nil, fmt.Errorf("decode a list: %w", err)
	}
	gvk := raw.GroupVersionKind()
	into.GetObjectKind().SetGroupVersionKind(gvk)
	return &gvk, nil
}
