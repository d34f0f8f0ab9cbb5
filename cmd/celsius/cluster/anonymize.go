package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Anonymize replaces names by numbered names. The new names have the same order, so that the scheduler makes the same decisions.
func Anonymize(objects []*unstructured.Unstructured) {
	x := &pseudonyms{names: map[string]string{}, values: map[string]string{}, images: map[string]string{}}
	x.learn(objects)
	for _, o := range objects {
		o.Object, _ = x.within("", o.Object).(map[string]any)
	}
}

// pseudonyms maps names, values of labels and images to their replacements.
type pseudonyms struct{ names, values, images map[string]string }

// public are domains of labels and annotations whose values do not identify the users of a cluster.
const public = "kubernetes.io k8s.io volcano.sh celsius.dev nvidia.com amd.com intel.com node.kubernetes.io"

// isPublic reports whether a label or an annotation belongs to a public domain.
func isPublic(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	return ok && slices.ContainsFunc(strings.Fields(public), func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// known reports whether Kubernetes or Volcano gives the name.
func known(name string) bool {
	return name == "" || name == "default" || name == "root" || strings.HasPrefix(name, "kube-") || strings.HasPrefix(name, "system-")
}

// learn creates a replacement for every name, value and image.
func (x *pseudonyms) learn(objects []*unstructured.Unstructured) {
	namespaces, names, pods := map[string]bool{}, map[string]bool{}, map[string]bool{}
	values, images := map[string]bool{}, map[string]bool{}
	for _, o := range objects {
		switch o.GetKind() {
		case "Namespace":
			namespaces[o.GetName()] = true
		case "Pod":
			pods[o.GetName()] = true
			if node, ok, err := unstructured.NestedString(o.Object, "spec", "nodeName"); ok && err == nil {
				names[node] = true // the nodes themselves may not be in the list
			}
			fallthrough
		default:
			names[o.GetName()] = true
			namespaces[o.GetNamespace()] = true
		}
		for _, owner := range o.GetOwnerReferences() {
			names[owner.Name] = true
		}
		walk("", o.Object, func(path, key, text string) {
			switch {
			case key == "image":
				images[text] = true
			case strings.HasSuffix(path, "images.names"):
				images[text] = true
			case ofLabels(path) && !isPublic(key):
				values[text] = true
			}
		})
	}
	// The scheduler compares keys of the form namespace/name.
	number(x.names, namespaces, "namespace", known, func(a, b string) int { return strings.Compare(a+"/", b+"/") }, nil)
	number(x.names, names, "name", known, strings.Compare, pods)
	plain := func(v string) bool { return v == "" || v == "true" || v == "false" || x.names[v] != "" }
	number(x.values, values, "value", plain, strings.Compare, nil)
	number(x.images, images, "image", func(i string) bool { return i == "" }, strings.Compare, nil)
}

// number creates a numbered replacement for each word that has none, in their order. Words in indexed keep the number at their end.
func number(
	to map[string]string, words map[string]bool, what string, leave func(string) bool, order func(a, b string) int, indexed map[string]bool,
) {
	width := len(strconv.Itoa(len(words)))
	for i, word := range slices.SortedFunc(maps.Keys(words), order) {
		if _, has := to[word]; has || leave(word) {
			continue
		}
		to[word] = fmt.Sprintf("%s%s-%0*d", beside(word, leave), what, width, i+1)
		if prefix := strings.TrimRight(word, "0123456789"); indexed[word] && strings.HasSuffix(prefix, "-") && prefix != word {
			to[word] += "-" + word[len(prefix):]
		}
	}
}

// beside returns a prefix for the replacement of a word. With it, the order relative to names that stay unchanged is the same.
func beside(word string, leave func(string) bool) string {
	if !leave("default") {
		return ""
	}
	for _, before := range []struct{ fixed, opens string }{{"default", "a-"}, {"kube-", "e-"}, {"root", "m-"}, {"system-", "s-"}} {
		if word < before.fixed {
			return before.opens
		}
	}
	return "z-"
}

// ofLabels reports whether the values at a path are values of labels or of label selectors.
func ofLabels(path string) bool {
	return slices.Contains([]string{"labels", "matchLabels", "nodeSelector"}, path[strings.LastIndex(path, ".")+1:])
}

// walk calls see for all strings of an object, with the path of the enclosing object and the key.
func walk(path string, o any, see func(path, key, text string)) {
	switch o := o.(type) {
	case map[string]any:
		for key, value := range o {
			if text, ok := value.(string); ok {
				see(path, key, text)
			} else {
				walk(path+"."+key, value, see)
			}
		}
	case []any:
		for _, value := range o {
			if text, ok := value.(string); ok {
				see(path, "", text)
			} else {
				walk(path, value, see)
			}
		}
	}
}

// within returns a value with all replacements applied.
func (x *pseudonyms) within(path string, o any) any {
	at := path[strings.LastIndex(path, ".")+1:]
	switch o := o.(type) {
	case map[string]any:
		out := make(map[string]any, len(o))
		for key, value := range o {
			switch {
			case key == "message" || at == "annotations" && !isPublic(key):
			case at == "annotations":
				x.annotate(out, key, value)
			default:
				out[key] = x.field(path, o, key, value)
			}
		}
		return out
	case []any:
		out := make([]any, len(o))
		for i := range o {
			out[i] = x.within(path, o[i])
		}
		return out
	case string:
		if slices.Contains([]string{"kind", "apiVersion", "phase", "type", "status", "operator", "effect", "uid"}, at) {
			return o
		}
		return replaced(o, x.names)
	}
	return o
}

// annotate writes an annotation that a scheduler may read. In JSON it applies the replacements. It omits texts for people.
func (x *pseudonyms) annotate(to map[string]any, key string, value any) {
	text, _ := value.(string)
	var fields map[string]any
	switch {
	case json.Unmarshal([]byte(text), &fields) == nil:
		if written, err := json.Marshal(x.within("", fields)); err == nil {
			to[key] = string(written)
		}
	case !strings.Contains(text, " "):
		to[key] = replaced(text, x.names)
	}
}

// field returns the replaced value of a field of an object at a path.
func (x *pseudonyms) field(path string, of map[string]any, key string, value any) any {
	selected := fmt.Sprint(of["key"]) // the key of the label, if the object is a requirement of a selector
	switch {
	case key == "expression" || key == "by":
		return value
	case key == "image" || strings.HasSuffix(path, ".images") && key == "names":
		return replaced(value, x.images)
	case ofLabels(path) && !isPublic(key) || key == "values" && of["key"] != nil && !isPublic(selected):
		return replaced(replaced(value, x.names), x.values)
	}
	return x.within(path+"."+key, value)
}

// replaced returns the replacement of a string, or of each string in a list.
func replaced(value any, by map[string]string) any {
	switch v := value.(type) {
	case string:
		if other, ok := by[v]; ok {
			return other
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = replaced(v[i], by)
		}
		return out
	}
	return value
}
