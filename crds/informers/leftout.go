package informers

import (
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leftOut knows the objects that cannot be decoded. It is for any goroutine.
type leftOut struct {
	log   logr.Logger
	gauge *prometheus.GaugeVec

	mu     sync.Mutex
	byKind map[string]map[types.NamespacedName]*entry
	tell   func(o client.Object, why string) // nil: nobody wants to know yet
}

type entry struct {
	object *undecodable
	// unseen says that a list is under way which has not shown it yet.
	unseen bool
}

// Metrics registers what caches count.
func Metrics(into prometheus.Registerer) error {
	_, err := newLeftOut(logr.Discard(), into)
	return err
}

func newLeftOut(log logr.Logger, registry prometheus.Registerer) (*leftOut, error) {
	l := &leftOut{
		log: log, byKind: map[string]map[types.NamespacedName]*entry{},
		gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "celsius_undecodable_objects",
			Help: "Objects that are left out because they cannot be decoded, by kind. Their events and the log say what is wrong.",
		}, []string{"kind"}),
	}
	if err := registry.Register(l.gauge); err != nil {
		return nil, fmt.Errorf("count what cannot be decoded: %w", err)
	}
	return l, nil
}

// add notes an object, and tells of a version that was not told of.
func (l *leftOut) add(u *undecodable) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.byKind[u.Kind]
	if all == nil {
		all = map[types.NamespacedName]*entry{}
		l.byKind[u.Kind] = all
	}
	key := client.ObjectKeyFromObject(u)
	old := all[key]
	all[key] = &entry{object: u}
	l.gauge.WithLabelValues(u.Kind).Set(float64(len(all)))
	if old != nil && old.object.UID == u.UID && old.object.ResourceVersion == u.ResourceVersion {
		return
	}
	l.log.Info("an object cannot be decoded and is left out, until it is mended or deleted",
		"kind", u.Kind, "namespace", u.Namespace, "name", u.Name, "resourceVersion", u.ResourceVersion, "error", u.why.Error())
	if l.tell != nil {
		l.tell(&u.PartialObjectMetadata, message(u))
	}
}

// message says to its owner what an object lacks.
func message(u *undecodable) string {
	return fmt.Sprintf("cannot be decoded, and is passed over as if it was not there until that is mended: %s", u.why)
}

// tellTo tells of all that there are, and from now on.
func (l *leftOut) tellTo(tell func(o client.Object, why string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell = tell
	for _, all := range l.byKind {
		for _, e := range all {
			tell(&e.object.PartialObjectMetadata, message(e.object))
		}
	}
}

// drop forgets an object that is gone or mended.
func (l *leftOut) drop(kind string, key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all := l.byKind[kind]; all[key] != nil {
		delete(all, key)
		l.gauge.WithLabelValues(kind).Set(float64(len(all)))
	}
}

func (l *leftOut) why(kind string, key types.NamespacedName) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.byKind[kind][key]; e != nil {
		return e.object.why
	}
	return nil
}

// begin and end enclose a list, or the initial events of a watch: what was not seen between them is gone.
func (l *leftOut) begin(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.byKind[kind] {
		e.unseen = true
	}
}

func (l *leftOut) end(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.byKind[kind]
	for key, e := range all {
		if e.unseen {
			delete(all, key)
			l.gauge.WithLabelValues(kind).Set(float64(len(all)))
		}
	}
}

// pass gives an event of a watch as the informer is to see it: what cannot be decoded is deleted.
func (l *leftOut) pass(kind string, e watch.Event) watch.Event {
	if e.Type == watch.Error {
		return e
	}
	u, wrong := e.Object.(*undecodable)
	if wrong && e.Type != watch.Deleted {
		l.add(u)
		return watch.Event{Type: watch.Deleted, Object: u.empty}
	}
	o, err := meta.Accessor(e.Object)
	if err != nil {
		return e
	}
	switch {
	case e.Type != watch.Bookmark:
		l.drop(kind, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
	case o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true":
		l.end(kind)
	}
	if wrong {
		e.Object = u.empty
	}
	return e
}
