package eviction

import (
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// inVain collects the reasons why no pod is evicted for the current task or gang.
type inVain struct {
	report.InVain
	tell func(*model.Job, *model.Task, model.InVain) // nil: the reasons are dropped, as in a trial
}

// node counts a node without victims: because a victim would take the resources back, or, if the node has candidates, because of another
// cause.
func (v *inVain) node(candidates []*model.Task, back bool, cause func(*report.InVain)) {
	switch {
	case v.tell == nil:
	case back:
		v.TakenBack()
	case len(candidates) > 0:
		cause(&v.InVain)
	}
}

// told reports why no pod is evicted. If a place was found, it clears the reason.
func (v *inVain) told(by *Search, j *model.Job, t *model.Task, found bool) {
	if found {
		v.Reset()
	}
	if v.tell != nil {
		v.tell(j, t, v.Told(by.Action, by.scope))
	}
}

// TellAgain reports for a task the reason of another task for which the search had the same result.
func (x *Search) TellAgain(t *model.Task, why model.InVain) {
	if x.vain.tell != nil {
		x.vain.tell(t.Job, t, why)
	}
}
