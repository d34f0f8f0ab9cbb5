package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// combined returns a mistake if a server-side apply of a policy keeps tiers, tables, rows or settings that only another field manager
// wrote. The API server merges such lists by name, and the result would be a policy that no author wrote. Otherwise it returns nil.
//
// An apply of fields of the specification alone, such as its mode, is not such a merge. The API server sends the options of an update with
// every request. Therefore only the managed fields of the field manager show whether this request is an apply.
func combined(req admission.Request) *Mistake { //nolint:gocyclo // one refusal after the other
	if req.Operation != admissionv1.Update || req.Options.Raw == nil {
		return nil
	}
	var options metav1.UpdateOptions
	if json.Unmarshal(req.Options.Raw, &options) != nil || options.FieldManager == "" {
		return nil
	}
	var old, now unstructured.Unstructured
	if old.UnmarshalJSON(req.OldObject.Raw) != nil || now.UnmarshalJSON(req.Object.Raw) != nil {
		return nil
	}
	applied := entryOf(&now, options.FieldManager, metav1.ManagedFieldsOperationApply)
	if applied == nil || sameFields(applied, entryOf(&old, options.FieldManager, applied.Operation)) {
		return nil // its managed fields have not changed
	}
	const update = metav1.ManagedFieldsOperationUpdate
	if !sameFields(entryOf(&now, options.FieldManager, update), entryOf(&old, options.FieldManager, update)) {
		return nil // the request is an update, and took over fields that were applied before
	}
	m := merge{own: managedFieldsOf(applied)}
	for _, e := range now.GetManagedFields() {
		if e.Subresource == "" && e.FieldsV1 != nil && (e.Manager != options.FieldManager || e.Operation != applied.Operation) {
			m.others = append(m.others, otherManager{e.Manager, managedFieldsOf(&e)})
		}
	}
	spec, _ := now.Object["spec"].(map[string]any)
	own, _ := m.own["f:spec"].(map[string]any)
	for _, list := range []string{"tiers", "actions"} {
		items, _ := spec[list].([]any)
		fields, applies := own["f:"+list].(map[string]any)
		if !applies {
			continue
		}
		others := m.of(m.others, "f:spec", "f:"+list)
		if field, manager := m.list(items, fields, others, "spec."+list); field != "" {
			return &Mistake{Field: field, Message: fmt.Sprintf("only field manager %s has written it, and the server-side apply of %s would "+
				"leave it in: the policy would be a mixture that neither has written; apply the policy with --field-manager=%[1]s, "+
				"replace it whole with kubectl replace -f FILE, or write what is to stay into the file", manager, options.FieldManager)}
		}
	}
	return nil
}

// entryOf returns what a field manager has written to an object by applies or by updates, or nil.
func entryOf(o *unstructured.Unstructured, manager string, by metav1.ManagedFieldsOperationType) *metav1.ManagedFieldsEntry {
	for _, e := range o.GetManagedFields() {
		if e.Manager == manager && e.Operation == by && e.Subresource == "" && e.FieldsV1 != nil {
			return &e
		}
	}
	return nil
}

func sameFields(a, b *metav1.ManagedFieldsEntry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.FieldsV1.String() == b.FieldsV1.String()
}

func managedFieldsOf(e *metav1.ManagedFieldsEntry) (out map[string]any) {
	_ = json.Unmarshal([]byte(e.FieldsV1.String()), &out) // the API server wrote it
	return out
}

// otherManager is a field manager with the fields that it has written below some path.
type otherManager struct {
	name   string
	fields map[string]any
}

// merge compares the applied fields with the fields that other managers have written.
type merge struct {
	own    map[string]any
	others []otherManager
}

// of returns the fields that each manager has written below a path.
func (merge) of(all []otherManager, path ...string) (out []otherManager) {
	for _, other := range all {
		fields, ok := other.fields, true
		for _, key := range path {
			if fields, ok = fields[key].(map[string]any); !ok {
				break
			}
		}
		if ok {
			out = append(out, otherManager{other.name, fields})
		}
	}
	return out
}

// list finds an entry that only another manager has written, in a list that is merged by name.
func (m merge) list(items []any, own map[string]any, others []otherManager, path string) (field, manager string) {
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			return "", ""
		}
		name, _ := fields["name"].(string)
		at := fmt.Sprintf("%s[%d]", path, i)
		byOthers := m.of(others, keyOf(others, name))
		mine, applies := own[keyOf([]otherManager{{fields: own}}, name)].(map[string]any)
		if !applies {
			if len(byOthers) > 0 {
				return at, byOthers[0].name
			}
			continue
		}
		if field, manager := m.fields(fields, mine, byOthers, at); field != "" {
			return field, manager
		}
	}
	return "", ""
}

// keyOf returns the key that managed fields use for the list item with this name.
func keyOf(in []otherManager, name string) string {
	for _, other := range in {
		for key := range other.fields {
			var item struct {
				Name *string `json:"name"`
			}
			if text, ok := strings.CutPrefix(key, "k:"); ok && json.Unmarshal([]byte(text), &item) == nil && item.Name != nil && *item.Name == name {
				return key
			}
		}
	}
	return ""
}

// fields finds a field that only another manager has written, in an object of such a list.
func (m merge) fields(object, own map[string]any, others []otherManager, path string) (field, manager string) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at, key := path+"."+name, "f:"+name
		byOthers := m.of(others, key)
		mine, applies := own[key].(map[string]any)
		if !applies {
			if len(byOthers) > 0 {
				return at, byOthers[0].name
			}
			continue
		}
		if len(mine) == 0 { // a value, or an atomic list
			continue
		}
		switch value := object[name].(type) {
		case map[string]any:
			field, manager = m.fields(value, mine, byOthers, at)
		case []any:
			field, manager = m.list(value, mine, byOthers, at)
		}
		if field != "" {
			return field, manager
		}
	}
	return "", ""
}
