package session

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// forget drops what is stored for objects that are gone. It runs at the beginning of a cycle.
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

// BeganAs copies to s the values that other stored at its beginning. Both sessions have the same cluster and policy.
func BeganAs(s, other *Session) { s.starts = maps.Clone(other.starts) }

// Starts contains the values that a session computed for attributes that settle at a start. Another goroutine may use them.
type Starts map[started]ref.Val

// StartsOf copies the Starts of a session. It copies only amounts and scalars, because other values could share memory with the session.
func StartsOf(s *Session) Starts {
	out := Starts{}
	for key, v := range s.starts {
		switch x := v.(type) {
		case *language.Amounts:
			out[key] = &language.Amounts{Resources: x.Resources.Clone()}
		case types.Bool, types.Int, types.Uint, types.Double, types.String, types.Duration, types.Timestamp, types.Null, *types.Err:
			out[key] = v
		}
	}
	return out
}

// BeginWith gives a new session the Starts of another session. Both sessions have the same policy, and their clusters have the same
// resource names in the same order.
func BeginWith(s *Session, x Starts) {
	for key, v := range x {
		if a, ok := v.(*language.Amounts); ok {
			v = s.Amounts(a.Resources.Clone())
		}
		s.starts[key] = v
	}
}

// there reports whether the cluster has the owner of an attribute. namespaces are the names of its namespaces.
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
