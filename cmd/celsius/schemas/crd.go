package schemas

import (
	"encoding/json"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/crds"
)

// definitions reads the manifests of the CRDs.
func definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := fs.Glob(crds.Manifests, "manifests/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("manifests: %w", err)
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		data, err := crds.Manifests.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, crd)
	}
	return out, nil
}

// ofCRD returns the schema of a kind in its only version.
func ofCRD(crd *apiextensionsv1.CustomResourceDefinition) *Schema {
	version := crd.Spec.Versions[0]
	s := converted(version.Schema.OpenAPIV3Schema)
	s.Properties["apiVersion"] = &Schema{Type: "string", Values: Values{Const: crd.Spec.Group + "/" + version.Name}}
	s.Properties["kind"] = &Schema{Type: "string", Values: Values{Const: crd.Spec.Names.Kind}}
	s.Properties["metadata"] = metadata(crd.Spec.Scope == apiextensionsv1.NamespaceScoped)
	s.Required = append(s.Required, "apiVersion", "kind", "metadata")
	return s
}

// converted converts a schema of Kubernetes to JSON Schema. It omits CEL rules and formats. Fields that the API server would prune are
// refused.
func converted(p *apiextensionsv1.JSONSchemaProps) *Schema {
	if p == nil {
		return nil
	}
	s := &Schema{
		Description: p.Description,
		Values: Values{
			Pattern: p.Pattern, Minimum: p.Minimum, Maximum: p.Maximum, MinLength: p.MinLength, MaxLength: p.MaxLength,
		},
		Contents: Contents{Required: p.Required, MinItems: p.MinItems, MaxItems: p.MaxItems},
		Logic:    Logic{AllOf: all(p.AllOf), AnyOf: all(p.AnyOf), OneOf: all(p.OneOf), Not: converted(p.Not)},
	}
	if p.Type != "" {
		s.Type = p.Type
	}
	if p.Nullable && p.Type != "" {
		s.Type = []string{p.Type, "null"}
	}
	for _, e := range p.Enum {
		s.Enum = append(s.Enum, plain(e))
	}
	if p.Default != nil {
		s.Default = plain(*p.Default)
	}
	if p.Items != nil {
		s.Items = converted(p.Items.Schema)
	}
	if len(p.Properties) > 0 {
		s.Properties = map[string]*Schema{}
		for name := range p.Properties {
			field := p.Properties[name]
			s.Properties[name] = converted(&field)
		}
	}
	keeps := p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields
	switch {
	case p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil:
		s.Additional = converted(p.AdditionalProperties.Schema)
	case len(p.Properties) > 0 && !keeps:
		s.Additional = false
	}
	return s
}

func all(list []apiextensionsv1.JSONSchemaProps) []*Schema {
	var out []*Schema
	for i := range list {
		out = append(out, converted(&list[i]))
	}
	return out
}

func plain(raw apiextensionsv1.JSON) any {
	var v any
	_ = json.Unmarshal(raw.Raw, &v) // the manifests are generated, so this cannot fail; the value would be null
	return v
}
