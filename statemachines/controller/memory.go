package controller

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// createdFor is how long a pod that was made is believed to be there, although the cache does not
// show it. After that the API server is asked.
const createdFor = 10 * time.Second

// request is an action that was asked for from outside, not derived from what was observed.
type request struct {
	action  string
	reason  string // one word
	message string
}

// memory holds what this process knows and its caches may not show yet, by the object's name, and the
// commands that were taken and wait to be acted upon. Nothing in it is needed after a restart.
type memory struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*recall
}

func newMemory() *memory { return &memory{byName: map[types.NamespacedName]*recall{}} }

// of gives what is remembered of an object; of another of that name nothing is.
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

// untilNext is how long it takes until the pause after the last look at a job is over.
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

// look notes that it is looked at.
func (r *recall) look(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked = now
}

// has notes how many pods a job has.
func (r *recall) has(pods int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods = pods
}

// forget drops what is remembered of an object that is gone.
func (m *memory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byName, name)
}

type created struct {
	pod *corev1.Pod
	at  time.Time
}

// recall is what is remembered of one job or queue. One object's reconciles are serial, so only what
// comes from elsewhere is guarded.
type recall struct {
	id types.UID

	mu       sync.Mutex
	requests []request
	// freed says that a quota lets more in since the last refusal.
	freed bool
	// looked is when it was last looked at, and pods how many it had then.
	looked time.Time
	pods   int

	// warnedNotServed says that the event of a scheduler's name that is not served was written.
	warnedNotServed bool

	// version is the resourceVersion that our last write gave the object.
	version string
	// written is when the status was written last.
	written time.Time
	// created holds the pods that were made and have not come to the cache yet, by name.
	created map[string]created
	// counted holds the pods that the last status counted; nil where this process has written none.
	counted map[types.UID]*corev1.Pod
	// group is the PodGroup that was deleted last.
	group types.UID
	// collected says that it was deleted, as its time was over.
	collected bool
	// refusals counts reconciles in a row that ended because the API server refused an object.
	refusals int
	// restored reports that the number of refusals was read from the status.
	restored bool
}

// behind says whether a cached object is older than our own last write of it.
func (r *recall) behind(cached string) bool {
	if r.version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached, r.version)
	return err == nil && order < 0
}

// ask notes what was asked for; false where too many requests wait already.
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

// asked gives the oldest request; false where there is none.
func (r *recall) asked() (request, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) == 0 {
		return request{}, false
	}
	return r.requests[0], true
}

// answered drops the request that a cause came from.
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

// free notes that a quota lets more in, so that the try that follows is one more.
func (r *recall) free() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.freed = true
}

// refused counts a refusal in a row, and says how many there were. One of a try that a quota's change gave rise to does not count.
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

// more is when to look again because of another request; 0 where there is none.
func (r *recall) more() time.Duration {
	if _, ok := r.asked(); ok {
		return catchUp
	}
	return 0
}
