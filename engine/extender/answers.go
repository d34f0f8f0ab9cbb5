package extender

import (
	"cmp"
	"reflect"
	"slices"
)

// Answers contains all known answers. The zero value is empty.
type Answers struct {
	serial   uint64
	byName   map[string]*Known
	byKey    map[key][]*Known   // in name order: the first one counts
	versions map[Subject]uint64 // number of the last change of the subject's answers
	count    map[Subject]int
}

type key struct {
	url, as string
	of      Subject
}

// Known is a known answer.
type Known struct {
	*Answer
	// Serial is unique among all answers.
	Serial uint64
	nodes  map[string]*NodeAnswer
}

// Node returns the answer about a node; nil: there is none.
func (k *Known) Node(name string) *NodeAnswer { return k.nodes[name] }

// Set stores an answer instead of the one with the same name, and returns the subjects whose answers changed.
func (s *Answers) Set(a *Answer) []Subject {
	if s.byName == nil {
		*s = Answers{byName: map[string]*Known{}, byKey: map[key][]*Known{}, versions: map[Subject]uint64{}, count: map[Subject]int{}}
	}
	if old := s.byName[a.Name]; old != nil && same(old.Answer, a) {
		return nil
	}
	touched := s.Remove(a.Name)
	s.serial++
	k := &Known{Answer: a, Serial: s.serial, nodes: make(map[string]*NodeAnswer, len(a.Nodes))}
	for i := range a.Nodes {
		k.nodes[a.Nodes[i].Name] = &a.Nodes[i]
	}
	s.byName[a.Name] = k
	of := key{a.URL, a.As, a.Of}
	s.byKey[of] = append(s.byKey[of], k)
	slices.SortFunc(s.byKey[of], func(a, b *Known) int { return cmp.Compare(a.Name, b.Name) })
	s.count[a.Of]++
	s.versions[a.Of] = s.serial
	return append(touched, a.Of)
}

// Remove removes an answer, and returns the subjects whose answers changed.
func (s *Answers) Remove(name string) []Subject {
	old := s.byName[name]
	if old == nil {
		return nil
	}
	delete(s.byName, name)
	of := key{old.URL, old.As, old.Of}
	if s.byKey[of] = slices.DeleteFunc(s.byKey[of], func(k *Known) bool { return k == old }); len(s.byKey[of]) == 0 {
		delete(s.byKey, of)
	}
	s.serial++
	s.versions[old.Of] = s.serial
	if s.count[old.Of]--; s.count[old.Of] == 0 {
		delete(s.count, old.Of)
		delete(s.versions, old.Of)
	}
	return []Subject{old.Of}
}

// Find returns the answer for an address and a form about a subject, or otherwise about a wider subject; nil: there is none. An answer that
// states no form counts last.
func (s *Answers) Find(url, as string, of Subject) *Known {
	if len(s.byKey) == 0 {
		return nil
	}
	for _, wider := range of.Wider() {
		for _, form := range []string{as, ""} {
			if list := s.byKey[key{url, form, wider}]; len(list) > 0 {
				return list[0]
			}
		}
	}
	return nil
}

// VersionsOf returns numbers that change with the answers about a subject; 0: there are none.
func (s *Answers) VersionsOf(of Subject) (out [3]uint64) {
	if len(s.versions) > 0 {
		for i, wider := range of.Wider() {
			out[i] = s.versions[wider]
		}
	}
	return out
}

// same reports whether two answers have the same content.
func same(a, b *Answer) bool {
	return a.URL == b.URL && a.As == b.As && a.Of == b.Of && a.At.Equal(&b.At) && a.Error == b.Error && a.Says == b.Says &&
		reflect.DeepEqual(a.Nodes, b.Nodes)
}

// None reports whether there are no answers.
func (s *Answers) None() bool { return len(s.byName) == 0 }
