// Package unread remembers the objects that a scheduler could not read completely, until they are corrected or deleted.
package unread

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// ID names an object. Name is namespace/name, or name where the kind has no namespaces.
type ID struct{ Kind, Name string }

// Object describes an object with mistakes.
type Object struct {
	UID   types.UID
	Group string // the key of the PodGroup that a pod names
	why   string
}

// Book holds the objects with mistakes. The zero value is an empty book that is ready for use.
type Book struct{ objects map[ID]Object }

// Note replaces the mistakes of an object. The book forgets an object that has no mistakes or is deleted. A late deletion does not remove a
// newer object of the same name.
func (b *Book) Note(id ID, o Object, deleted bool, mistakes []error) {
	switch old := b.objects[id]; {
	case deleted && old.UID != o.UID:
		return
	case deleted || len(mistakes) == 0:
		delete(b.objects, id)
		return
	}
	var why []string
	for _, err := range mistakes {
		if wrong, ok := err.(interface{ Problem() string }); ok {
			why = append(why, wrong.Problem())
		}
	}
	if o.why = strings.Join(why, "; "); b.objects == nil {
		b.objects = map[ID]Object{}
	}
	b.objects[id] = o
}

// Clone returns a copy that does not change with the book.
func (b *Book) Clone() Book { return Book{maps.Clone(b.objects)} }

// Empty reports whether no object has mistakes.
func (b *Book) Empty() bool { return len(b.objects) == 0 }

// Why returns the mistakes of an object; "": there are none.
func (b *Book) Why(kind, name string) string { return b.objects[ID{kind, name}].why }

// Names returns the objects of a kind that have mistakes, in order.
func (b *Book) Names(kind string) []string {
	return b.names(func(id ID, _ Object) bool { return id.Kind == kind })
}

// PodsOf returns the pods with mistakes that name a PodGroup, in order.
func (b *Book) PodsOf(group string) []string {
	return b.names(func(id ID, o Object) bool { return id.Kind == "Pod" && o.Group == group })
}

func (b *Book) names(fits func(ID, Object) bool) (out []string) {
	for id, o := range b.objects {
		if fits(id, o) {
			out = append(out, id.Name)
		}
	}
	slices.Sort(out)
	return out
}
