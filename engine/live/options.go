package live

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/celsius-scheduler/celsius/engine/live/asks"
	"github.com/celsius-scheduler/celsius/engine/live/lease"
	"github.com/celsius-scheduler/celsius/engine/live/load"
	"github.com/celsius-scheduler/celsius/engine/live/questions"
	"github.com/celsius-scheduler/celsius/engine/live/scrape"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/recording"
)

// Names that a scheduler goes by in a cluster.
const (
	// FieldManager owns the fields of statuses that the scheduler writes.
	FieldManager = "celsius-scheduler"
	// DefaultNamespace is where leases and what must outlive the scheduler are kept.
	DefaultNamespace = "celsius-system"
	// DefaultLease is the lease that the leading scheduler holds.
	DefaultLease = "celsius-scheduler"
	// DefaultControllersLease is the lease of the controllers, as package controller names it.
	DefaultControllersLease = "celsius-controllers"
	// DefaultPolicy is the SchedulingPolicy that is obeyed.
	DefaultPolicy = "default"
)

// Of what bindings are told by events.
const (
	BindingsOfGangs = "gang" // a gang has one, with its nodes
	BindingsOfPods  = "pod"  // and each pod has one
	BindingsOfNone  = "none"
)

// Options of a scheduler. The zero value is of use: every field says what it then means.
type Options struct {
	// SchedulerNames are the names in spec.schedulerName whose pods are placed; all other pods count
	// as usage only. None: celsius and volcano.
	SchedulerNames []string
	// Policy is the name of the SchedulingPolicy that is obeyed. "": default.
	Policy string
	// NodeSelector, a label selector in kubectl's syntax, says which nodes are seen. "": all.
	NodeSelector string
	// Namespace is where the lease and the policies that served are kept. "": celsius-system.
	Namespace string

	// Period is the longest time between the starts of two cycles. 0: 1 s.
	Period time.Duration
	// Window is for how long changes are gathered before a cycle starts, at most; a quarter of it after the newest. 0: 20 ms.
	Window time.Duration
	// BindWorkers is how many writes to the API server are under way at once, at most: fewer while it answers slowly. 0: 64.
	BindWorkers int
	// BindingEvents says of what a binding is told by an event: BindingsOfGangs, BindingsOfPods or BindingsOfNone. "": of gangs. Why a pod is
	// where it is stands in its annotation WhyAnnotation in any case, which costs no request.
	BindingEvents string
	// GangTimeout is after what time a gang that lost a member to a refused binding, and never was
	// whole, gives up the members that are bound. 0: 1 minute.
	GangTimeout time.Duration
	// CycleTimeout is for how long no cycle may end while changes wait, before the check of health fails: at least two periods. 0: 1 minute.
	CycleTimeout time.Duration
	// VolumeTimeout is how long the binding or the making of a pod's volumes may take, before the pod is decided on
	// anew. 0: 10 minutes, as Kubernetes' scheduler has it.
	VolumeTimeout time.Duration
	// NodeMetricsInterval is how often the measured load of nodes is read from the API metrics.k8s.io, while the policy reads it. 0: never.
	NodeMetricsInterval time.Duration
	// Prometheus is asked for that instead, if its URL is given.
	Prometheus load.Options

	// Limits bound the sizes of pods and PodGroups that are scheduled.
	Limits model.Limits

	// Extenders are what is known of the servers that policies ask.
	Extenders asks.Options

	// VerifyEvictions has evictions checked after they were decided, for at most so long a cycle. 0: never.
	VerifyEvictions time.Duration

	// Recording says where what cycles are decided from is kept, and how much of it.
	Recording recording.Options

	// Explain says where questions about the last cycle are taken.
	Explain questions.Options

	// LeaderElect has several schedulers of the same lease take turns. Without it this one leads at once.
	LeaderElect bool
	// LeaseName is the lease that they take turns by. "": celsius-scheduler.
	LeaseName string
	// ControllersLeaseName is the Lease of the controllers, in the same namespace. If no process holds it, the scheduler reports this on
	// Jobs and pods that wait for the controllers. Default: celsius-controllers.
	ControllersLeaseName string
	// LeaseTimes say how long it holds.
	LeaseTimes lease.Times

	scrape.Served
}

// complete fills in what was left out, and refuses what cannot be meant.
func (o Options) complete() (Options, error) {
	if len(o.SchedulerNames) == 0 {
		o.SchedulerNames = []string{"celsius", "volcano"}
	}
	if slices.Contains(o.SchedulerNames, "") {
		return o, fmt.Errorf("scheduler name \"\" is empty: give the spec.schedulerName of the pods to place")
	}
	orElse(&o.Policy, DefaultPolicy)
	orElse(&o.Namespace, DefaultNamespace)
	orElse(&o.LeaseName, DefaultLease)
	orElse(&o.ControllersLeaseName, DefaultControllersLease)
	orElse(&o.BindingEvents, BindingsOfGangs)
	if known := []string{BindingsOfGangs, BindingsOfPods, BindingsOfNone}; !slices.Contains(known, o.BindingEvents) {
		return o, fmt.Errorf("binding events of %q: give one of %s", o.BindingEvents, strings.Join(known, ", "))
	}
	orElse(&o.Period, time.Second)
	orElse(&o.Window, 20*time.Millisecond)
	orElse(&o.BindWorkers, 64)
	orElse(&o.GangTimeout, time.Minute)
	orElse(&o.VolumeTimeout, 10*time.Minute)
	orElse(&o.CycleTimeout, time.Minute)
	if err := o.belowZero(); err != nil {
		return o, err
	}
	if p := o.Prometheus; p.URL != "" || p.CAFile != "" || p.TokenFile != "" {
		if _, err := load.New(p); err != nil {
			return o, err
		}
	}
	if err := o.Extenders.Check(); err != nil {
		return o, err
	}
	if err := errors.Join(o.Explain.Check(), o.Recording.Check(), o.Limits.Check()); err != nil {
		return o, err
	}
	if _, err := labels.Parse(o.NodeSelector); err != nil {
		return o, fmt.Errorf("node selector %q: %w", o.NodeSelector, err)
	}
	var err error
	o.LeaseTimes, err = o.LeaseTimes.Complete()
	return o, err
}

// belowZero refuses what is below 0 and must not be.
func (o *Options) belowZero() error {
	switch {
	case o.NodeMetricsInterval < 0:
		return fmt.Errorf("node metrics interval %s is below 0; 0 is never", o.NodeMetricsInterval)
	case o.Period < 0 || o.Window < 0 || o.GangTimeout < 0 || o.VolumeTimeout < 0:
		return fmt.Errorf("period %s, window %s, gang timeout %s and volume timeout %s must not be below 0", o.Period, o.Window, o.GangTimeout,
			o.VolumeTimeout)
	case o.CycleTimeout < 0:
		return fmt.Errorf("cycle timeout %s is below 0", o.CycleTimeout)
	case o.VerifyEvictions < 0:
		return fmt.Errorf("time for the check of evictions %s is below 0; 0 is never", o.VerifyEvictions)
	case o.BindWorkers < 0:
		return fmt.Errorf("%d bind workers: at least 1 is needed", o.BindWorkers)
	}
	return nil
}

func orElse[T comparable](field *T, otherwise T) {
	var zero T
	if *field == zero {
		*field = otherwise
	}
}
