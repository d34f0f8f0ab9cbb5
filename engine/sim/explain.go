package sim

import (
	"errors"
	"time"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// cycleLength is the time between two cycles of one run.
const cycleLength = time.Second

// Explain states what the last cycle decided about the jobs, pods, queues and nodes with a name, and why. The name is namespace/name, or
// the name alone. KIND/NAME selects one type. A job has the name of its PodGroup, or of the Job or the pod that the PodGroup was created
// for. "all" explains every job of the cycle.
func (r *Report) Explain(name string) (string, error) {
	plan := r.latest
	if plan == nil {
		return "", errors.New("nothing was decided yet")
	}
	s := session.New(r.world.cluster, r.world.Policy)
	s.Begin(plan.Now)
	x := explain.New(s, plan)
	x.Controllers = func(job string) string { return controllersCause(r.world, job) }
	for _, refused := range r.world.refusedPods() {
		x.Refused = append(x.Refused, refused.Job)
	}
	return x.Named(name)
}
