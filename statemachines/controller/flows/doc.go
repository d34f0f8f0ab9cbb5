// Package flows holds the controllers of JobFlows and JobTemplates, which obey the machine of JobFlows.
//
//	JobFlow, its Jobs --observe--> world --Machine.Step--> sync: make the Jobs that may begin; or delete; or rest
//	                                                         |
//	JobTemplate, patch --flow.Job--> Job <-- probes hold ----+
//	                                                         |
//	             phase, what became of the Jobs --write--> JobFlow status
//
//	Jobs by the template that they were made from --> JobTemplate status
//
// Package controller watches, and wakes these.
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

// Shared is what these have in common with the other controllers.
type Shared struct {
	Client client.Client     // reads from caches
	Live   client.Reader     // reads from the API server
	Owner  client.FieldOwner // under which name is written
	// ByOwner is the index of Jobs and pods by the UID of their controller, ByTemplate that of Jobs by the template that they were made
	// from, as their label has it.
	ByOwner, ByTemplate string
	Machine             *statemachines.Machine
	// MaxJobs is how many flows a JobFlow may list: of one that lists more no Job is made; -1: without limit.
	MaxJobs int
	Memory  Memory
	// Serves says whether Jobs of a scheduler are cared for here; "" is that of a Job that names none.
	Serves func(scheduler string) bool
	// Tell tells people about an object, by an event.
	Tell func(on runtime.Object, kind, reason, action, format string, args ...any)
	// Ended counts a JobFlow that has come to its end.
	Ended func(of *flowv1alpha1.JobFlow)
	// Dial connects to a pod.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	Now  func() time.Time
}

// Memory is what this process knows of what it wrote, and its caches may not show yet.
type Memory interface {
	// Behind says whether an object from a cache is older than what was written of it.
	Behind(of client.Object) bool
	// Wrote notes an object as the API server has it since.
	Wrote(of client.Object)
	// Forget drops what is known of an object that is gone.
	Forget(name types.NamespacedName)
}

// After how long is looked again: at a cache that is behind, and at what nobody tells of.
const (
	catchUp   = 20 * time.Millisecond
	lookAgain = 30 * time.Second
)
