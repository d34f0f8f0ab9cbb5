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

// Default names of a scheduler's objects in a cluster.
const (
	// FieldManager owns the fields of statuses that the scheduler writes.
	FieldManager = "celsius-scheduler"
	// DefaultNamespace is the namespace of leases and of data that must outlive the scheduler.
	DefaultNamespace = "celsius-system"
	// DefaultLease is the lease that the leading scheduler holds.
	DefaultLease = "celsius-scheduler"
	// DefaultControllersLease is the lease of the controllers. Package controller uses the same name.
	DefaultControllersLease = "celsius-controllers"
	// DefaultPolicy is the name of the SchedulingPolicy that is obeyed.
	DefaultPolicy = "default"
)

// Values of Options.BindingEvents: the objects that get an event for a binding.
const (
	BindingsOfGangs = "gang" // each gang gets one event, with its nodes
	BindingsOfPods  = "pod"  // each gang gets one event, and each pod gets its own
	BindingsOfNone  = "none"
)

// Options configures a scheduler. The zero value is usable: each field documents its default.
type Options struct {
	// SchedulerNames are the values of spec.schedulerName of the pods that this scheduler places. All other pods only count as usage. Default:
	// celsius and volcano.
	SchedulerNames []string
	// Policy is the name of the SchedulingPolicy that is obeyed. "": default.
	Policy string
	// NodeSelector is a label selector in kubectl's syntax. The scheduler sees only nodes that match it. "": all nodes.
	NodeSelector string
	// Namespace contains the lease and the stored revisions of policies. "": celsius-system.
	Namespace string

	// Period is the longest time between the starts of two cycles. 0: 1 s.
	Period time.Duration
	// Window is the longest time for which changes are collected before a cycle starts. A cycle starts earlier if no change came for a quarter
	// of it. 0: 20 ms.
	Window time.Duration
	// BindWorkers is the maximum number of concurrent writes to the API server. Fewer run while it responds slowly. 0: 64.
	BindWorkers int
	// BindingEvents selects the objects that get an event for a binding: BindingsOfGangs, BindingsOfPods or BindingsOfNone. "": gangs. The
	// annotation WhyAnnotation of a pod always contains the reason for its node, and costs no request.
	BindingEvents string
	// GangTimeout is the time after which an incomplete gang gives up its bound members. It applies if a binding of a member was refused and
	// the gang never was whole. 0: 1 minute.
	GangTimeout time.Duration
	// CycleTimeout is the time without a completed cycle, while changes wait, after which the health check fails. It is at least two periods.
	// 0: 1 minute.
	CycleTimeout time.Duration
	// VolumeTimeout limits the binding or the creation of a pod's volumes. After it, the scheduler decides on the pod again. 0: 10 minutes, as
	// in kube-scheduler.
	VolumeTimeout time.Duration
	// NodeMetricsInterval is the interval at which the measured load of nodes is read from the API metrics.k8s.io, if the policy reads it. 0:
	// never.
	NodeMetricsInterval time.Duration
	// Prometheus is the source of the measured load instead of metrics.k8s.io, if its URL is set.
	Prometheus load.Options

	// Limits bounds the sizes of pods and PodGroups that are scheduled.
	Limits model.Limits

	// Extenders configures the servers that policies ask.
	Extenders asks.Options

	// VerifyEvictions is the maximum time per cycle for checking evictions after they were decided. 0: they are not checked.
	VerifyEvictions time.Duration

	// Recording configures where the inputs of cycles are recorded, and how much of them is kept.
	Recording recording.Options

	// Explain configures the server for questions about the last cycle.
	Explain questions.Options

	// LeaderElect makes schedulers with the same lease take turns. Without it, this scheduler leads at once.
	LeaderElect bool
	// LeaseName is the name of this lease. "": celsius-scheduler.
	LeaseName string
	// ControllersLeaseName is the Lease of the controllers, in the same namespace. If no process holds it, the scheduler reports this on
	// Jobs and pods that wait for the controllers. Default: celsius-controllers.
	ControllersLeaseName string
	// LeaseTimes contains the durations of the lease.
	LeaseTimes lease.Times

	scrape.Served
}

// complete sets defaults and refuses invalid options.
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

// belowZero refuses negative values.
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
