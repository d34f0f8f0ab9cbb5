// Package flows contains the controllers of JobFlows and JobTemplates, which run the state machine of JobFlows.
//
//	JobFlow, its Jobs --observe--> world --Machine.Step--> sync: create the Jobs that may begin; or delete; or rest
//	                                                         |
//	JobTemplate, patch --flow.Job--> Job <-- probes succeed -+
//	                                                         |
//	             phase, states of the Jobs --write--> JobFlow status
//
//	Jobs by the template that they were created from --> JobTemplate status
//
// Package controller watches the objects and wakes these controllers.
package flows

import (
	"context"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines"
)

// Shared contains what these controllers share with the other controllers.
type Shared struct {
	Client client.Client     // reads from caches
	Live   client.Reader     // reads from the API server
	Owner  client.FieldOwner // the field manager of all writes
	// ByOwner is the index of Jobs and pods by the UID of their controller. ByTemplate is the index of Jobs by the template in their label.
	ByOwner, ByTemplate string
	Machine             *statemachines.Machine
	// MaxJobs is the maximum number of flows in a JobFlow. For a JobFlow with more, no Job is created; -1: no limit.
	MaxJobs int
	Memory  Memory
	// Serves reports whether these controllers manage Jobs of a scheduler; "" is the scheduler of a Job that names none.
	Serves func(scheduler string) bool
	// Tell writes an event on an object.
	Tell func(on runtime.Object, kind, reason, action, format string, args ...any)
	// Ended counts a JobFlow that has ended.
	Ended func(of *flowv1alpha1.JobFlow)
	// Dial connects to a pod.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	Now  func() time.Time
}

// Memory stores what this process wrote and its caches may not show yet.
type Memory interface {
	// Behind reports whether a cached object is older than the last write of this process.
	Behind(of client.Object) bool
	// Wrote records an object after a write.
	Wrote(of client.Object)
	// Forget removes what is known about a deleted object.
	Forget(name types.NamespacedName)
}

// The intervals of repeated checks: for a cache that is behind, and for changes that no event reports.
const (
	catchUp   = 20 * time.Millisecond
	lookAgain = 30 * time.Second
)
