package explain

import "github.com/celsius-scheduler/celsius/engine/model"

// decisions contains the decisions of a plan by object, so that a gang of thousands of pods is explained in one pass.
type decisions struct {
	of    map[string]*ofPod         // by the pod's key
	waits map[string]*model.Wait    // of jobs as a whole, by the job's key
	goes  map[string][]*model.Evict // by the pod for which other pods are evicted
}

// ofPod contains the decisions about one pod.
type ofPod struct {
	bound, promised, held []*model.Bind
	waits                 []*model.Wait
	evicts                []*model.Evict
}

// decisions returns the decisions of the plan by object. It computes them once.
func (x *Cycle) decisions() *decisions {
	if x.decided != nil {
		return x.decided
	}
	d := &decisions{of: map[string]*ofPod{}, waits: map[string]*model.Wait{}, goes: map[string][]*model.Evict{}}
	x.decided = d
	at := func(pod string) *ofPod {
		if d.of[pod] == nil {
			d.of[pod] = &ofPod{}
		}
		return d.of[pod]
	}
	for i := range x.Plan.Binds {
		b := &x.Plan.Binds[i]
		at(b.Task).bound = append(at(b.Task).bound, b)
	}
	for i := range x.Plan.Pipelines {
		b := &x.Plan.Pipelines[i]
		at(b.Task).promised = append(at(b.Task).promised, b)
	}
	for i := range x.Plan.Holds {
		b := &x.Plan.Holds[i]
		at(b.Task).held = append(at(b.Task).held, b)
	}
	for i := range x.Plan.Waits {
		if w := &x.Plan.Waits[i]; w.Task == "" {
			d.waits[w.Job] = w
		} else {
			at(w.Task).waits = append(at(w.Task).waits, w)
		}
	}
	for i := range x.Plan.Evicts {
		e := &x.Plan.Evicts[i]
		at(e.Task).evicts = append(at(e.Task).evicts, e)
		d.goes[e.For] = append(d.goes[e.For], e)
	}
	return d
}
