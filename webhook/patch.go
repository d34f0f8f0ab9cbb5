package webhook

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
)

// patchOf returns the JSON patch (RFC 6902) that changes before into after, in the order of fields. Fields that did not change are not in
// it. Both objects are JSON in the form that rules read. A null that was removed stays, which is the same to the API server.
func patchOf(before, after map[string]any) []jsonpatch.Operation {
	return appendPatch(nil, "", before, after)
}

func appendPatch(out []jsonpatch.Operation, path string, before, after any) []jsonpatch.Operation {
	switch after := after.(type) {
	case map[string]any:
		if before, ok := before.(map[string]any); ok {
			return appendFields(out, path, before, after)
		}
	case []any:
		if before, ok := before.([]any); ok && len(before) <= len(after) && !slices.Contains(before, nil) {
			return appendElements(out, path, before, after)
		}
	}
	if reflect.DeepEqual(before, after) {
		return out
	}
	return append(out, jsonpatch.NewOperation("replace", path, after))
}

func appendFields(out []jsonpatch.Operation, path string, before, after map[string]any) []jsonpatch.Operation {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[key]; !kept && before[key] != nil {
			out = append(out, jsonpatch.NewOperation("remove", pointer(path, key), nil))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		old, had := before[key]
		switch {
		case old != nil:
			out = appendPatch(out, pointer(path, key), old, after[key])
		case !had || after[key] != nil: // the API server does not find a null to replace, and adds the value instead
			out = append(out, jsonpatch.NewOperation("add", pointer(path, key), after[key]))
		}
	}
	return out
}

func appendElements(out []jsonpatch.Operation, path string, before, after []any) []jsonpatch.Operation {
	for i := range after {
		if at := pointer(path, strconv.Itoa(i)); i < len(before) {
			out = appendPatch(out, at, before[i], after[i])
		} else {
			out = append(out, jsonpatch.NewOperation("add", at, after[i]))
		}
	}
	return out
}

// pointer appends the name of a field or the index of an element to a JSON pointer (RFC 6901).
func pointer(path, step string) string {
	return path + "/" + strings.ReplaceAll(strings.ReplaceAll(step, "~", "~0"), "/", "~1")
}
