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

// Names of kinds in messages.
const (
	kindNodes    = "nodes"
	kindPods     = "pods"
	kindGroups   = "podgroups.scheduling.volcano.sh"
	kindJobs     = "jobs.batch.volcano.sh"
	kindQueues   = "queues.scheduling.volcano.sh"
	kindPolicies = "schedulingpolicies.scheduling.celsius.dev"
	kindFigures  = "metrics.explain.celsius.dev"
)

// Gap states that something is not shown.
type Gap struct {
	// Of is what is missing: a kind, or the figures of the scheduler.
	Of string `json:"of"`
	// Why is the cause, with a remedy.
	Why string `json:"why"`
	at  time.Time
}

// gapHolds is how long a failure of a watch is shown after it was last seen. Watches are retried at least twice a minute.
const gapHolds = 2 * time.Minute

// state is the known state of the cluster. Objects in it are never changed. It is safe for concurrent use.
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
	// changed states that the newest picture does not show everything.
	changed bool

	sorted []string // sorted names of nodes; nil: they must be sorted again
	shown  []int    // numbers of the shown resources, in the order in which they were first seen
}

func newState() *state {
	return &state{
		resources: newResources(), nodes: map[string]*node{}, pods: map[string]*pod{}, groups: map[string]*group{}, jobs: map[string]*job{},
		queues: map[string]*queue{}, policies: map[string]*policyObject{}, gaps: map[string]Gap{}, figures: &figures{}, history: newHistory(),
		changed: true, shown: []int{cpu, memory, pods},
	}
}

// put stores the result of strip for an object.
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

// drop removes a deleted object.
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

// lack records why something is not shown. If why is "", it is shown.
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

// lacking returns the current gaps, sorted. The caller must hold the lock.
func (s *state) lacking(now time.Time) []Gap {
	maps.DeleteFunc(s.gaps, func(_ string, g Gap) bool { return now.Sub(g.at) > gapHolds })
	return slices.SortedFunc(maps.Values(s.gaps), func(a, b Gap) int { return strings.Compare(a.Of, b.Of) })
}

// nodeNames returns the sorted names of all nodes. The caller must hold the lock.
func (s *state) nodeNames() []string {
	if s.sorted == nil {
		s.sorted = slices.Sorted(maps.Keys(s.nodes))
	}
	return s.sorted
}

// title returns the name of a job for people: the name of its Job, or of its PodGroup.
func (g *group) title() string { return cmp.Or(g.job, g.Name) }
