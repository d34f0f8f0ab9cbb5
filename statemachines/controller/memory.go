package controller

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// createdFor is how long a created pod is assumed to exist although the cache does not show it. After that the controllers ask the API
// server.
const createdFor = 10 * time.Second

// request is an action that a user requested, in contrast to an action derived from the observed state.
type request struct {
	action  string
	reason  string // one word
	message string
}

// memory stores, by the object's name, what this process knows and its caches may not show yet. It also stores Commands that wait for their
// execution. After a restart the controllers work correctly without it.
type memory struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*recall
}

func newMemory() *memory { return &memory{byName: map[types.NamespacedName]*recall{}} }

// of returns the record of an object. An earlier object of the same name has no influence on it.
func (m *memory) of(name types.NamespacedName, id types.UID) *recall {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.byName[name]
	if r == nil || r.id != id {
		r = &recall{id: id, created: map[string]created{}}
		m.byName[name] = r
	}
	return r
}

// untilNext returns how long the pause after the last reconcile of a job still lasts.
func (m *memory) untilNext(name types.NamespacedName, id types.UID, now time.Time) time.Duration {
	m.mu.Lock()
	r := m.byName[name]
	m.mu.Unlock()
	if r == nil || r.id != id {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	pause := min(max(leastPause, time.Duration(r.pods)*pauseAPod), mostPause)
	return max(0, r.looked.Add(pause).Sub(now))
}

// look records the time of a reconcile.
func (r *recall) look(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked = now
}

// has records how many pods a job has.
func (r *recall) has(pods int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods = pods
}

// forget removes the record of a deleted object.
func (m *memory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byName, name)
}

type created struct {
	pod *corev1.Pod
	at  time.Time
}

// recall is the record of one job or queue. The reconciles of one object are serial. Therefore the mutex only protects fields that other
// goroutines use.
type recall struct {
	id types.UID

	mu       sync.Mutex
	requests []request
	// freed states that a quota has more free resources since the last refusal.
	freed bool
	// looked is the time of the last reconcile, and pods is how many pods the job had then.
	looked time.Time
	pods   int

	// warnedNotServed states that the event about a scheduler name that is not served was written.
	warnedNotServed bool

	// version is the resourceVersion that our last write gave the object.
	version string
	// written is when the status was last written.
	written time.Time
	// created contains the created pods that the cache does not show yet, by name.
	created map[string]created
	// counted contains the pods that the last status counted. It is nil if this process has written no status.
	counted map[types.UID]*corev1.Pod
	// group is the UID of the PodGroup that was deleted last.
	group types.UID
	// collected states that the job was deleted because its time to live was over.
	collected bool
	// refusals counts reconciles in a row that ended because the API server refused an object.
	refusals int
	// restored states that the number of refusals was read from the status.
	restored bool
}

// behind reports whether a cached object is older than the last write of this process.
func (r *recall) behind(cached string) bool {
	if r.version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached, r.version)
	return err == nil && order < 0
}

// ask stores a request. It returns false if too many requests are already waiting.
func (r *recall) ask(q request) bool {
	const most = 100
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) >= most {
		return false
	}
	r.requests = append(r.requests, q)
	return true
}

// asked returns the oldest request, or false if there is none.
func (r *recall) asked() (request, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) == 0 {
		return request{}, false
	}
	return r.requests[0], true
}

// answered removes the request that led to a cause.
func (r *recall) answered(c cause) {
	if !c.asked {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) > 0 {
		r.requests = r.requests[1:]
	}
}

// free records that a quota has more free resources. The retry that follows is then not counted.
func (r *recall) free() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.freed = true
}

// refused counts a refusal, and returns the number of refusals in a row. The refusal of a retry after a change of a quota does not count.
func (r *recall) refused() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.freed {
		r.refusals++
	}
	r.freed = false
	return r.refusals
}

// nextRefusal returns the number of refusals in a row, including the current one.
func (r *recall) nextRefusal() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.freed {
		return r.refusals
	}
	return r.refusals + 1
}

// more returns when to reconcile again because of another request, or 0.
func (r *recall) more() time.Duration {
	if _, ok := r.asked(); ok {
		return catchUp
	}
	return 0
}
