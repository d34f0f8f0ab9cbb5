// Package unread remembers the objects that a scheduler could not read completely, until they are corrected or deleted.
package unread

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// ID identifies an object. Name is namespace/name, or only the name if the kind has no namespaces.
type ID struct{ Kind, Name string }

// Object describes an object with mistakes.
type Object struct {
	UID   types.UID
	Group string // the key of the PodGroup that a pod names
	why   string
}

// Book contains the objects with mistakes. The zero value is an empty book that is ready for use.
type Book struct {
	objects map[ID]Object
	pods    map[string]map[string]bool // of objects, the pods by the key of their PodGroup
}

// longest limits the text of an object's mistakes in bytes. Users write the values that the text quotes.
const longest = 1000

// Note replaces the mistakes of an object. The book forgets an object that has no mistakes or is deleted. A late deletion does not remove a
// newer object of the same name.
func (b *Book) Note(id ID, o Object, deleted bool, mistakes []error) {
	old := b.objects[id]
	if deleted && old.UID != o.UID {
		return
	}
	delete(b.objects, id)
	if of := b.pods[old.Group]; of != nil && id.Kind == "Pod" {
		if delete(of, id.Name); len(of) == 0 {
			delete(b.pods, old.Group)
		}
	}
	if deleted || len(mistakes) == 0 {
		return
	}
	var why []string
	for _, err := range mistakes {
		if wrong, ok := err.(interface{ Problem() string }); ok {
			why = append(why, wrong.Problem())
		}
	}
	if o.why = strings.Join(why, "; "); len(o.why) > longest {
		o.why = strings.ToValidUTF8(o.why[:longest], "") + " …"
	}
	if b.objects == nil {
		b.objects, b.pods = map[ID]Object{}, map[string]map[string]bool{}
	}
	b.objects[id] = o
	if id.Kind == "Pod" {
		if b.pods[o.Group] == nil {
			b.pods[o.Group] = map[string]bool{}
		}
		b.pods[o.Group][id.Name] = true
	}
}

// Clone returns a copy that does not change with the book.
func (b *Book) Clone() Book {
	out := Book{maps.Clone(b.objects), maps.Clone(b.pods)}
	for group, names := range out.pods {
		out.pods[group] = maps.Clone(names)
	}
	return out
}

// Empty reports whether no object has mistakes.
func (b *Book) Empty() bool { return len(b.objects) == 0 }

// Why returns the mistakes of an object; "": there are none.
func (b *Book) Why(kind, name string) string { return b.objects[ID{kind, name}].why }

// Names returns the objects of a kind that have mistakes, in order.
func (b *Book) Names(kind string) (out []string) {
	for id := range b.objects {
		if id.Kind == kind {
			out = append(out, id.Name)
		}
	}
	slices.Sort(out)
	return out
}

// PodsOf returns the pods with mistakes that name a PodGroup, in order.
func (b *Book) PodsOf(group string) []string { return slices.Sorted(maps.Keys(b.pods[group])) }
