package webhook

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/typed"
	"github.com/celsius-scheduler/celsius/statemachines/flow"
)

// JobTemplate is the part of a JobTemplate that rows can read.
type JobTemplate struct {
	Name string
	Spec map[string]any
	// Size is the length of the spec in JSON, in bytes.
	Size int64
}

// templateSchema returns the type of a JobTemplate in rows.
func templateSchema() *typed.Schema {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	return typed.New(&apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Description: "The Job's spec in it."},
		"size": {Type: "integer", Description: "How large its spec is."},
		"tasks": {
			Type: "array", Description: "The names of its tasks.", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text},
		},
	}}, "NamedTemplate")
}

// jobTemplates returns the JobTemplates that a JobFlow names, by name, and caches them.
func (f *frame) jobTemplates() ref.Val {
	if f.templates != nil {
		return f.templates
	}
	if f.request.JobTemplates == nil {
		return types.NewErr("the JobTemplates are not known")
	}
	found, err := f.request.JobTemplates()
	if err != nil {
		return types.WrapErr(err)
	}
	out := map[ref.Val]ref.Val{}
	for _, t := range found {
		names := []any{}
		tasks, _, _ := unstructured.NestedSlice(t.Spec, "tasks") // in another form it has no tasks that rows can read
		for _, task := range tasks {
			if fields, ok := task.(map[string]any); ok {
				name, _ := fields["name"].(string)
				names = append(names, name)
			}
		}
		out[types.String(t.Name)] = typed.Object(f.table.template, map[string]any{"spec": t.Spec, "size": t.Size, "tasks": names})
	}
	f.templates = types.NewRefValMap(types.DefaultTypeAdapter, out)
	return f.templates
}

func sizeOf(v any) (int64, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("write it: %w", err)
	}
	return int64(len(text)), nil
}

// flowFunctions returns functions that compute what a JobFlow creates.
func flowFunctions() []*rules.Function {
	return []*rules.Function{
		{
			Name: "patched", Doc: "The spec of a Job that a JobFlow makes of the spec of a JobTemplate and of what it patches.",
			Overloads: []rules.Overload{{
				ID: "admission_patched", Args: []*cel.Type{cel.DynType, cel.DynType}, Result: cel.DynType, Cost: 1000,
				Eval: func(args ...ref.Val) ref.Val {
					out, err := patchedSpec(args[0], args[1])
					if err != nil {
						return types.WrapErr(err)
					}
					return types.DefaultTypeAdapter.NativeToValue(out)
				},
			}},
		},
		{
			Name: "sizeOf", Doc: "How large a value is, written as JSON.",
			Overloads: []rules.Overload{{
				ID: "admission_sizeOf", Args: []*cel.Type{cel.DynType}, Result: cel.IntType, Cost: 1000,
				Eval: func(args ...ref.Val) ref.Val {
					plain, err := typed.Plain(args[0])
					if err != nil {
						return types.WrapErr(err)
					}
					size, err := sizeOf(plain)
					if err != nil {
						return types.WrapErr(err)
					}
					return types.Int(size)
				},
			}},
		},
	}
}

// patchedSpec merges a patch into a spec in the same way as the controllers. Without a patch the spec stays as written.
func patchedSpec(spec, patch ref.Val) (map[string]any, error) {
	read := func(v ref.Val) (map[string]any, *batchv1alpha1.JobSpec, error) {
		plain, err := typed.Plain(v)
		if err != nil {
			return nil, nil, err
		}
		fields, _ := plain.(map[string]any)
		out := &batchv1alpha1.JobSpec{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, out); err != nil {
			return nil, nil, fmt.Errorf("read a Job's spec: %w", err)
		}
		return fields, out, nil
	}
	fields, base, err := read(spec)
	if err != nil {
		return nil, err
	}
	over, change, err := read(patch)
	if err != nil || len(over) == 0 {
		return fields, err
	}
	merged, err := flow.Patched(base, change)
	if err != nil {
		return nil, err
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(merged)
	if err != nil {
		return nil, fmt.Errorf("write a Job's spec: %w", err)
	}
	return out, nil
}

// mostBytes limits the total size of the JobTemplates that are read for one JobFlow. It equals the maximum size of one API request.
// Templates beyond the limit are not read, and rows see that more exist.
const mostBytes = 3 << 20

// jobTemplatesOf reads the JobTemplates that a JobFlow names.
func (s *server) jobTemplatesOf(ctx context.Context, namespace string, jobFlow map[string]any) (out []JobTemplate, err error) {
	flows, _, _ := unstructured.NestedSlice(jobFlow, "spec", "flows") // the schema refuses another form
	seen, size := map[string]bool{}, int64(0)
	for _, f := range flows {
		fields, _ := f.(map[string]any)
		name, _ := fields["name"].(string)
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		template := &unstructured.Unstructured{}
		template.SetGroupVersionKind(flowv1alpha1.GroupVersion.WithKind("JobTemplate"))
		err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, template)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find JobTemplate %s/%s: %w", namespace, name, err)
		}
		spec, _, _ := unstructured.NestedMap(template.Object, "spec")
		more, err := sizeOf(spec)
		if err != nil {
			return nil, err
		}
		out = append(out, JobTemplate{Name: name, Spec: spec, Size: more})
		if size += more; size > mostBytes {
			break
		}
	}
	return out, nil
}
