package eviction

import (
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// inVain is why nobody goes for the present task, or gang.
type inVain struct {
	report.InVain
	tell func(*model.Job, *model.Task, model.InVain) // nil: nobody is told, as of a detour
}

// node counts a node on which nobody goes: as some would take the room back, or for another cause if anybody is asked.
func (v *inVain) node(candidates []*model.Task, back bool, cause func(*report.InVain)) {
	switch {
	case v.tell == nil:
	case back:
		v.TakenBack()
	case len(candidates) > 0:
		cause(&v.InVain)
	}
}

// told tells it; if room was found, that there is nothing to tell.
func (v *inVain) told(by *Search, j *model.Job, t *model.Task, found bool) {
	if found {
		v.Reset()
	}
	if v.tell != nil {
		v.tell(j, t, v.Told(by.Action, by.scope))
	}
}

// TellAgain tells of a task what was told of another that fares alike.
func (x *Search) TellAgain(t *model.Task, why model.InVain) {
	if x.vain.tell != nil {
		x.vain.tell(t.Job, t, why)
	}
}
