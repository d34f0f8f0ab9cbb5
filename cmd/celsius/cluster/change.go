package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sameSpec reports whether two specs mean the same. Numbers are compared by value, whatever their Go types are. Amounts under params are
// compared as quantities. A field that is null or empty equals a missing one.
func sameSpec(a, b any) bool { return sameValue(plain(a), plain(b), false) }

// plain converts a value to JSON types, with numbers as they are written.
func plain(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var out any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(&out) != nil {
		return v
	}
	return out
}

// sameFields compares objects. An empty field equals a missing one.
func sameFields(a, b map[string]any, inParams bool) bool {
	for key := range a {
		if !sameValue(a[key], b[key], inParams || key == "params") {
			return false
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok && !isEmpty(b[key]) {
			return false
		}
	}
	return true
}

func sameValue(a, b any, inParams bool) bool {
	if isEmpty(a) || isEmpty(b) {
		return isEmpty(a) && isEmpty(b)
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && sameFields(x, y, inParams)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, func(a, b any) bool { return sameValue(a, b, inParams) })
	}
	if a == b {
		return true
	}
	x, isX := a.(json.Number)
	y, isY := b.(json.Number)
	if isX && isY {
		return sameNumber(x, y)
	}
	return inParams && sameQuantity(a, b)
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// sameNumber compares by value: 1 is 1.0, and 1e3 is 1000.
func sameNumber(a, b json.Number) bool {
	x, okX := new(big.Rat).SetString(a.String())
	y, okY := new(big.Rat).SetString(b.String())
	return okX && okY && x.Cmp(y) == 0
}

// sameQuantity compares amounts as Kubernetes does: 1 is 1000m, and 1Gi is 1024Mi. Two strings that are not quantities differ.
func sameQuantity(a, b any) bool {
	x, errX := resource.ParseQuantity(fmt.Sprint(a))
	y, errY := resource.ParseQuantity(fmt.Sprint(b))
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

// changePolicy applies change to a stored policy, stores the result, and reads it back. After a conflict it starts again from the stored
// policy. If dry is true, it stores nothing. It returns the policy that the API server has afterwards.
func (r *Reach) changePolicy(ctx context.Context, name string, dry bool,
	change func(stored *unstructured.Unstructured) error,
) (*unstructured.Unstructured, error) {
	var want any
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		stored, err := storedPolicy(ctx, r, name)
		if err != nil {
			return err
		}
		if err := change(stored); err != nil {
			return err
		}
		want = stored.Object["spec"]
		var options []client.UpdateOption
		if dry {
			options = append(options, client.DryRunAll)
		}
		return r.Update(ctx, stored, options...) //nolint:wrapcheck // the API server names the object
	})
	if err != nil || dry {
		return nil, err
	}
	return r.policyIs(ctx, name, want)
}

// policyIs reads a policy, and reports an error if its spec differs from what was stored.
func (r *Reach) policyIs(ctx context.Context, name string, want any) (*unstructured.Unstructured, error) {
	now, err := r.policy(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("the change of policy %s was sent, but the policy cannot be read back: %w", name, err)
	}
	if !sameSpec(now.Object["spec"], want) {
		return nil, fmt.Errorf("the change of policy %s was sent, but generation %d differs from it: another client or a webhook "+
			"changed it as well; "+
			"kubectl get spol %[1]s -o yaml shows it", name, now.GetGeneration())
	}
	return now, nil
}

// isGone checks whether an object was deleted. It returns the text to report: "deleted", or that it is being deleted, with what blocks it.
func isGone(ctx context.Context, r *Reach, o client.Object) (string, error) {
	uid := o.GetUID()
	err := r.Get(ctx, client.ObjectKeyFromObject(o), o)
	switch {
	case apierrors.IsNotFound(err), err == nil && uid != "" && o.GetUID() != uid:
		return "deleted", nil
	case err != nil:
		return "", fmt.Errorf("the deletion was sent, but the object cannot be read back: %w", err)
	case o.GetDeletionTimestamp() == nil:
		return "", fmt.Errorf("%s is still there, and is not being deleted: it was created again, or a webhook kept it", o.GetName())
	case len(o.GetFinalizers()) > 0:
		return fmt.Sprintf("is being deleted (finalizers: %v)", o.GetFinalizers()), nil
	}
	return "is being deleted", nil
}
