package session

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// forget drops, at the beginning of a cycle, what is kept of objects that are gone.
func (s *Session) forget() {
	if s.startsSwept.Due(len(s.starts), s.Keep) {
		names := s.NamespaceNames()
		maps.DeleteFunc(s.starts, func(key started, _ ref.Val) bool { return !there(s.c, key.of.On, key.owner, names) })
		s.startsSwept = slab.Swept(len(s.starts))
	}
	if s.NamespacesSwept.Due(len(s.Namespaces), s.Keep) {
		names := s.NamespaceNames()
		maps.DeleteFunc(s.Namespaces, func(name string, _ *language.NamespaceView) bool { return !there(s.c, "namespace", name, names) })
		s.NamespacesSwept = slab.Swept(len(s.Namespaces))
	}
	s.Topology.Forget(s.Keep)
	s.LimitViews()
	s.items.begin(s.c)
	s.begin(s.c)
}

// BeganAs has what a session took down at its beginning be what another of the same cluster and policy did.
func BeganAs(s, other *Session) { s.starts = maps.Clone(other.starts) }

// there says whether the cluster has the owner of an attribute; namespaces are the names of those that it has.
func there(c *model.Cluster, on, name string, namespaces []string) bool {
	ok := true
	switch on {
	case "queue":
		_, ok = c.Queues[name]
	case "job":
		_, ok = c.Jobs[name]
	case "task":
		_, ok = c.Tasks[name]
	case "node":
		_, ok = c.Nodes.Index[name]
	case "namespace":
		_, ok = slices.BinarySearch(namespaces, name)
	}
	return ok
}
