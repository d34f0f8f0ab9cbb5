package extender

import (
	"cmp"
	"reflect"
	"slices"
)

// Answers are all that are known. The zero value has none.
type Answers struct {
	serial   uint64
	byName   map[string]*Known
	byKey    map[key][]*Known   // in the order of their names: the first counts
	versions map[Subject]uint64 // when something that is said of it changed last
	count    map[Subject]int
}

type key struct {
	url, as string
	of      Subject
}

// Known is an answer that is known.
type Known struct {
	*Answer
	// Serial tells it from all others.
	Serial uint64
	nodes  map[string]*NodeAnswer
}

// Node is what was said of a node; nil: nothing.
func (k *Known) Node(name string) *NodeAnswer { return k.nodes[name] }

// Set puts an answer in the place of that of the same name, and lists the subjects of which something else is said now.
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

// Remove takes an answer out, and lists the subjects of which something else is said now.
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

// VersionsOf tell the answers about a subject from those of other moments; 0: there are none.
func (s *Answers) VersionsOf(of Subject) (out [3]uint64) {
	if len(s.versions) > 0 {
		for i, wider := range of.Wider() {
			out[i] = s.versions[wider]
		}
	}
	return out
}

// same says that two answers say the same.
func same(a, b *Answer) bool {
	return a.URL == b.URL && a.As == b.As && a.Of == b.Of && a.At.Equal(&b.At) && a.Error == b.Error && a.Says == b.Says &&
		reflect.DeepEqual(a.Nodes, b.Nodes)
}

// None says that nothing is known.
func (s *Answers) None() bool { return len(s.byName) == 0 }
