package schemas

import (
	"fmt"
	"maps"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/policy"
)

// All returns the schema of each of our kinds, by kind. An error is a mistake of a declaration.
func All() (map[string]*Schema, error) {
	out := map[string]*Schema{"World": world()}
	crds, err := definitions()
	if err != nil {
		return nil, err
	}
	for _, crd := range crds {
		out[crd.Spec.Names.Kind] = ofCRD(crd)
	}
	shipped, issues := policy.Shipped()
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("shipped tables: %w", err)
	}
	if err := refine(out["SchedulingPolicy"], shipped); err != nil {
		return nil, err
	}
	if out[policy.TableKind], err = ruleTable(); err != nil {
		return nil, err
	}
	for _, f := range files() {
		if out[f.kind], err = f.schema(); err != nil {
			return nil, err
		}
	}
	for kind, s := range out {
		s.Dialect, s.Title = draft, kind
	}
	return out, nil
}

// Any returns a schema for documents of all our kinds. It accepts documents of other kinds. file returns the file name of a kind's schema.
func Any(all map[string]*Schema, file func(kind string) string) *Schema {
	s := &Schema{
		Dialect: draft, Title: "Celsius", Description: "Any kind of Celsius and Volcano; other kinds are not looked at.", Type: "object",
	}
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		is := having("kind", kind)
		version := having("apiVersion", all[kind].Properties["apiVersion"].Const)
		s.AllOf = append(s.AllOf, when(&Schema{Logic: Logic{AllOf: []*Schema{is, version}}}, &Schema{Ref: file(kind)}))
	}
	return s
}
