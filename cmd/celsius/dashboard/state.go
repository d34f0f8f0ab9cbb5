package dashboard

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// Kinds of objects, as messages name them.
const (
	kindNodes    = "nodes"
	kindPods     = "pods"
	kindGroups   = "podgroups.scheduling.volcano.sh"
	kindJobs     = "jobs.batch.volcano.sh"
	kindQueues   = "queues.scheduling.volcano.sh"
	kindPolicies = "schedulingpolicies.scheduling.celsius.dev"
	kindFigures  = "metrics.explain.celsius.dev"
)

// Gap is something that is not shown.
type Gap struct {
	// Of is what is not shown: a kind, or the figures of the scheduler.
	Of string `json:"of"`
	// Why it is not, and what would be right.
	Why string `json:"why"`
	at  time.Time
}

// gapHolds is for how long a failure to watch is told after it was seen last: watches are tried again at least twice a minute.
const gapHolds = 2 * time.Minute

// state is what is known of the cluster now. Objects are never changed once they are in it. It is for any goroutine.
type state struct {
	*resources
	mu       sync.Mutex
	nodes    map[string]*node
	pods     map[string]*pod
	groups   map[string]*group
	jobs     map[string]*job
	queues   map[string]*queue
	policies map[string]*policyObject
	gaps     map[string]Gap
	figures  *figures
	history  *history
	// changed says whether there is something that no picture shows yet.
	changed bool

	sorted []string // names of nodes, in order; nil: they are to be sorted again
	shown  []int    // numbers of the resources that are shown, in the order in which they were seen first
}

func newState() *state {
	return &state{
		resources: newResources(), nodes: map[string]*node{}, pods: map[string]*pod{}, groups: map[string]*group{}, jobs: map[string]*job{},
		queues: map[string]*queue{}, policies: map[string]*policyObject{}, gaps: map[string]Gap{}, figures: &figures{}, history: newHistory(),
		changed: true, shown: []int{cpu, memory, pods},
	}
}

// put takes in what strip made of an object.
func (s *state) put(o any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = true
	switch o := o.(type) {
	case *node:
		if s.nodes[o.Name] == nil {
			s.sorted = nil
		}
		s.nodes[o.Name] = o
	case *pod:
		s.pods[o.key()] = o
	case *group:
		s.groups[o.key()] = o
	case *job:
		s.jobs[o.key()] = o
	case *queue:
		s.queues[o.Name] = o
	case *policyObject:
		s.policies[o.Name] = o
	}
}

// drop takes away an object that is gone.
func (s *state) drop(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = true
	switch o := o.(type) {
	case *node:
		s.sorted = nil
		delete(s.nodes, o.Name)
	case *pod:
		delete(s.pods, o.key())
	case *group:
		delete(s.groups, o.key())
	case *job:
		delete(s.jobs, o.key())
	case *queue:
		delete(s.queues, o.Name)
	case *policyObject:
		delete(s.policies, o.Name)
	}
}

// lack remembers why something is not shown; why "": it is shown.
func (s *state) lack(of, why string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gaps[of].Why != why {
		s.changed = true
	}
	if why == "" {
		delete(s.gaps, of)
		return
	}
	s.gaps[of] = Gap{of, why, now}
}

// lacking are the gaps that hold, in order. The lock is held.
func (s *state) lacking(now time.Time) []Gap {
	maps.DeleteFunc(s.gaps, func(_ string, g Gap) bool { return now.Sub(g.at) > gapHolds })
	return slices.SortedFunc(maps.Values(s.gaps), func(a, b Gap) int { return strings.Compare(a.Of, b.Of) })
}

// nodeNames are those of all nodes, in order. The lock is held.
func (s *state) nodeNames() []string {
	if s.sorted == nil {
		s.sorted = slices.Sorted(maps.Keys(s.nodes))
	}
	return s.sorted
}

// title is what people call a job: its Job's name, or that of its PodGroup.
func (g *group) title() string { return cmp.Or(g.job, g.Name) }
