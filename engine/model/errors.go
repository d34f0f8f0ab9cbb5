package model

import (
	"fmt"
	"slices"
	"strings"
)

// ObjectError is one mistake in one object. The cluster leaves out what it cannot read. It leaves out a pod without a node, a PodGroup, a
// Queue or a PriorityClass as a whole. For a node, and for a pod on a node, it leaves out only the field, because the resources stay used.
type ObjectError struct {
	// Object is the object that was given to Apply.
	Object any
	Kind   string
	// Name is namespace/name, or only the name if the kind has no namespaces.
	Name string
	// Field is a path: metadata.annotations[celsius.dev/gpu-milli]. It is "" if the object as a whole is wrong.
	Field string
	// Text states the mistake and the correct form.
	Text string
}

// Error returns "Pod ns/name: field: text".
func (e *ObjectError) Error() string { return fmt.Sprintf("%s %s: %s", e.Kind, e.Name, e.Problem()) }

// Problem returns "field: text".
func (e *ObjectError) Problem() string {
	if e.Field == "" {
		return e.Text
	}
	return e.Field + ": " + e.Text
}

// mistakes collects the errors of one object.
type mistakes struct {
	object          any
	kind            string
	namespace, name string
	namespaced      bool
	under           string // the prefix of field paths, with a point at its end
	errs            []error
}

// called returns the name of the object in errors.
func (m *mistakes) called() string {
	if m.namespaced {
		return Key(m.namespace, m.name)
	}
	return m.name
}

func (m *mistakes) add(field, format string, args ...any) {
	m.errs = append(m.errs, &ObjectError{
		Object: m.object, Kind: m.kind, Name: m.called(), Field: m.under + field, Text: fmt.Sprintf(format, args...),
	})
}

// checkName reports an object without a name, or with a character in its name that the API server would not accept.
func (m *mistakes) checkName() {
	if m.namespaced && m.namespace == "" {
		m.add("metadata.namespace", "is missing")
	}
	if m.name == "" {
		m.add("metadata.name", "is missing")
	}
	if strings.ContainsAny(m.name, orphanPrefix+"/") || strings.ContainsRune(m.namespace, '/') || m.namespaced &&
		strings.ContainsAny(m.namespace, orphanPrefix) {
		m.add("metadata.name", "%q has a character that no name has", m.called())
	}
}

// annotation returns the path of an annotation.
func annotation(key string) string { return "metadata.annotations[" + key + "]" }

// notNegative reports amounts below 0.
func (m *mistakes) notNegative(d *Dims, field string, r Resources) {
	if !slices.ContainsFunc(r, func(v float64) bool { return v < 0 }) {
		return
	}
	for _, i := range d.Sorted() {
		if r.Get(i) < 0 {
			m.add(field+"["+d.Name(i)+"]", "%s is below 0", d.Quantity(i, r[i]))
		}
	}
}
