// Package recovery turns a panic into a value. The value states where the panic happened and which object was being handled. The process
// then reports the object and leaves it out, instead of ending.
package recovery

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Place is the part of the code that recovers a panic.
type Place string

// The places.
const (
	Intake     Place = "intake"     // one changed object is taken into the model
	Cycle      Place = "cycle"      // one cycle decides
	Look       Place = "look"       // one question about the last cycle is answered
	Verifier   Place = "verifier"   // the evictions of one plan are checked
	Status     Place = "status"     // a plan becomes writes of statuses, bindings and evictions
	Worker     Place = "worker"     // one write to the API server
	Reconciler Place = "reconciler" // one object is reconciled by the controllers
	Admission  Place = "admission"  // one request of the API server is reviewed
)

// Object is the object that was being handled.
type Object struct {
	Kind, Namespace, Name string
}

// String returns "Kind namespace/name", or "" where there is no object.
func (o Object) String() string {
	switch {
	case o == Object{}:
		return ""
	case o.Namespace == "":
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Panic is a panic that was recovered.
type Panic struct {
	Place Place
	// Object was being handled; zero: it is not known.
	Object Object
	// Row is the row of the policy that was being evaluated, as "site/table/rule"; "": none was.
	Row string
	// Cause is the value of the panic.
	Cause string
	// Stack is the stack of the goroutine that panicked.
	Stack string
}

// Error returns the place, the object, the row and the cause.
func (p *Panic) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "panic in %s", p.Place)
	if p.Object != (Object{}) {
		fmt.Fprintf(&b, " at %s", p.Object)
	}
	if p.Row != "" {
		fmt.Fprintf(&b, " in row %s", p.Row)
	}
	fmt.Fprintf(&b, ": %s", p.Cause)
	return b.String()
}

// Again panics with the same value, if there is one: a goroutine that recovered a panic hands it to the goroutine that waits for it.
func (p *Panic) Again() {
	if p != nil {
		panic(p) // Catch recovers it
	}
}

// HandleCrashes makes this process survive panics in handlers of watches. client-go logs such a panic, and skips the event.
func HandleCrashes() { utilruntime.ReallyCrash = false }

// At returns the function, the file and the line of the code that panicked, without the path of the file.
func At() string {
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case strings.HasPrefix(f.Function, "runtime."):
			panicked = panicked || f.Function == "runtime.gopanic"
		case panicked:
			return fmt.Sprintf("%s (%s:%d)", f.Function[strings.LastIndexByte(f.Function, '/')+1:], f.File[strings.LastIndexByte(f.File, '/')+1:],
				f.Line)
		}
		if !more {
			return ""
		}
	}
}

// Catch runs do. It returns nil unless do panics.
func Catch(at Place, do func()) (p *Panic) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case *Panic: // comes from a goroutine that do waited for, see Panic.Again
			p = cause
			p.Place = at
		default:
			p = &Panic{Place: at, Cause: fmt.Sprint(cause), Stack: string(debug.Stack())}
			if where := At(); where != "" {
				p.Cause += " in " + where
			}
		}
	}()
	do()
	return nil
}

// Metric is the name of the counter of recovered panics.
const Metric = "celsius_panics_total"

// NewCounter registers the counter of recovered panics, with a series for each place, so that a first panic shows as an increase.
func NewCounter(in prometheus.Registerer, places ...Place) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: Metric, Help: "Panics that were recovered, by place: " + list(places) + "."},
		[]string{"place"})
	in.MustRegister(c)
	for _, p := range places {
		c.WithLabelValues(string(p))
	}
	return c
}

func list(places []Place) string {
	var names []string
	for _, p := range places {
		names = append(names, string(p))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
