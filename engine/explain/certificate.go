package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// certificate shows that an eviction of this cycle has an effect: on which node the preemptor fits after all its victims are gone. For each
// row that permits the eviction, it shows the values that the row read, with the victims still in place. It returns "" if the user may not
// see the preemptor.
func certificate(x *Cycle, e *model.Evict) string {
	victim := x.cluster.Tasks[e.Task]
	if victim == nil || e.For != "" && (x.cluster.Tasks[e.For] == nil || !x.sees(e.For)) {
		return ""
	}
	var out strings.Builder
	if of := x.decisions().of[e.For]; of != nil && len(of.promised) > 0 {
		who := "it"
		if n := len(x.decisions().goes[e.For]); n > 1 {
			who = fmt.Sprintf("all %d who go for it", n)
		}
		printf(&out, "  with %s gone, %s has a place: %s\n", who, e.For, Place(of.promised[len(of.promised)-1]))
	}
	asBefore(x, e, func() {
		for _, r := range x.Session.Policy().Rules(e.Reason.Site) {
			if slices.Contains(e.Rows, model.RowName(r.Table, r.Name)) && !r.Expression.Constant() {
				out.WriteString(permits(x, r, e, victim))
			}
		}
	})
	return out.String()
}

// permits states which values a row read that permits the eviction of a pod; "" if the row no longer permits it.
func permits(x *Cycle, r *policy.Rule, e *model.Evict, victim *model.Task) string {
	scope := policy.ScopeOtherQueues
	switch {
	case e.ForJob == e.Job:
		scope = policy.ScopeJob
	case e.ForQueue == e.Queue:
		scope = policy.ScopeQueue
	}
	told, err := session.Tell(x.Session, r, session.Subject{Victim: victim, Preemptor: x.cluster.Tasks[e.For], Scope: scope})
	if err != nil || told.Value != fmt.Sprint(!r.Site.DenyIs) {
		return ""
	}
	var out strings.Builder
	printf(&out, "  %s is %s:\n", model.RowName(r.Table, r.Name), told.Value)
	write(&out, "    ", &told)
	return out.String()
}

// asBefore calls do on the cluster with all victims of the same preemptor still in place. Afterwards it restores the cluster.
func asBefore(x *Cycle, e *model.Evict, do func()) {
	back := x.decisions().goes[e.For]
	if e.For == "" {
		back = []*model.Evict{e}
	}
	txn := x.cluster.Begin()
	defer txn.Rollback(0)
	for _, other := range back {
		if t := x.cluster.Tasks[other.Task]; t != nil && t.Status == model.Releasing {
			txn.Leave(t)
			txn.Return(t, model.Running)
		}
	}
	do()
}
