package policy

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/types/ref"
)

// mostKept is how much of a kind a session may keep of what is gone, beyond as much again as is there, so that its memory depends
// on what the cluster holds, and not on how long it has run.
const mostKept = 1024

// swept is the size of something when it was swept last.
type swept int

// due says whether it has outgrown that: sweeping then costs what growing did.
func (w swept) due(size, kept int) bool { return size > 2*int(w)+kept }

// forget drops, at the beginning of a cycle, what is kept of objects that are gone.
func (s *Session) forget() {
	if s.startsSwept.due(len(s.starts), s.kept) {
		names := s.namespaceNames()
		maps.DeleteFunc(s.starts, func(key started, _ ref.Val) bool { return !s.there(key.of.On, key.owner, names) })
		s.startsSwept = swept(len(s.starts))
	}
	if s.namespacesSwept.due(len(s.namespaces), s.kept) {
		names := s.namespaceNames()
		maps.DeleteFunc(s.namespaces, func(name string, _ *namespaceView) bool { return !s.there("namespace", name, names) })
		s.namespacesSwept = swept(len(s.namespaces))
	}
	s.peers.forget()
}

// there says whether the cluster has the owner of an attribute; namespaces are the names of those that it has.
func (s *Session) there(on, name string, namespaces []string) bool {
	ok := true
	switch on {
	case "queue":
		_, ok = s.c.Queues[name]
	case "job":
		_, ok = s.c.Jobs[name]
	case "task":
		_, ok = s.c.Tasks[name]
	case "node":
		_, ok = s.c.Nodes.Index[name]
	case "namespace":
		_, ok = slices.BinarySearch(namespaces, name)
	}
	return ok
}

// forget has everything be counted anew where most companies and images may be of tasks that are gone. How many are in use shows
// in the cycle after that.
func (p *peers) forget() {
	size := len(p.companies) + len(p.images)
	if p.fresher {
		p.swept, p.fresher = swept(size), false
	}
	if p.swept.due(size, p.w.kept) {
		p.begun, p.fresher = false, true
		p.clock = 0
	}
}
