package policy

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// misdeclaration is a field that is declared once rightly and once wrongly.
type misdeclaration struct {
	object, name          string
	right, wrong          rules.Origin
	changes, wrongChanges rules.Changes
	get                   func(object any) int64
}

// misdeclared has a mistake of each kind: what of the world is said to be read is another part of it than that which is.
func misdeclared() []misdeclaration {
	const byStep, byObject = rules.ByStep, rules.ByObject
	return []misdeclaration{
		{"Node", "zoneTasks", fromDomain, fromState, byStep, byStep, ofView(zoneTasks)},
		{"Node", "busy", fromState, fromSpec, byStep, byObject, ofView(nodeTasks)},
		{"Node", "hurry", fromState, fromState, byStep, rules.ByCycle, ofView(nodeTasks)},
		{"Node", "labelled", fromSpec, fromSpec | fromAmounts, byObject, byObject, ofView(func(n *nodeView) int64 { return int64(len(n.of.Labels["zone"])) })},
		{"Node", "portion", fromState | fromCluster, fromState, byStep, byStep, ofView(func(n *nodeView) int64 { return int64(n.w.Cluster().Used.Get(model.CPU)) })},
		{"Node", "jobPhases", fromAll, toTasks, byStep, byStep, ofView(waitingBeside)},
		{"Task", "title", fromSpec, fromIdentity, byObject, rules.Static, ofView(func(t *taskView) int64 { return int64(len(t.of.Labels["app"])) })},
		{"Task", "beside", fromAll, fromState, byStep, byStep, ofView(queueHolds)},
		{"Task", "claimed", fromSpec | fromVolumes, fromSpec, byStep, byObject, ofView(claimsMissing)},
		{"Task", "imaged", fromSpec | fromImages, fromSpec, byObject, byObject, ofView(func(t *taskView) int64 {
			return int64(len(t.w.topologyOf(t.of).Images()))
		})},
		{"Task", "spokenOf", fromSpec | fromOthersTerms, fromTerms, byObject, byObject, ofView(func(t *taskView) int64 {
			return int64(len(strings.Fields(t.w.topologyOf(t.of).Matched())))
		})},
		{"Task", "polite", fromSpec | fromRelated, fromSpec, byObject, byObject, ofView(func(t *taskView) int64 { return int64(len(t.of.PreemptionPolicy)) })},
		{"Job", "minutes", fromClock, fromState, rules.ByCycle, rules.ByCycle, ofView(func(j *jobView) int64 { return j.w.now.Unix() / 60 })},
		{"Job", "letIn", fromState, fromSpec, rules.ByAdmit, byObject, ofView(func(j *jobView) int64 { return int64(strings.Index("PI", j.of.Phase[:1])) })},
		{"Queue", "rank", fromAll, fromSpec, byObject, byObject, ofView(heavierQueues)},
	}
}

func nodeTasks(n *nodeView) int64 { return int64(len(n.w.Cluster().Nodes.Tasks[n.of.Row])) }

func waitingBeside(n *nodeView) (sum int64) {
	for _, t := range n.w.tasksOn(n.of.Row) {
		sum += t.Job.Counts[model.Pending]
	}
	return sum
}

func queueHolds(t *taskView) int64 {
	if q := t.of.Job.Queue; q != nil {
		return int64(q.Allocated.Get(model.CPU))
	}
	return 0
}

func claimsMissing(t *taskView) int64 {
	v, err := t.w.storage()
	if err != nil {
		return -1
	}
	return int64(len(v.Missing(t.of)))
}

func heavierQueues(q *queueView) (rank int64) {
	for _, other := range q.w.Cluster().Queues {
		if other.Weight > q.of.Weight {
			rank++
		}
	}
	return rank
}

func zoneTasks(n *nodeView) (sum int64) {
	nodes := &n.w.Cluster().Nodes
	for row, other := range nodes.Rows {
		if other != nil && other.Labels["zone"] == n.of.Labels["zone"] {
			sum += int64(len(nodes.Tasks[row]))
		}
	}
	return sum
}

func ofView[T any](get func(T) int64) func(any) int64 {
	return func(object any) int64 {
		v, ok := object.(T)
		if !ok {
			return -1
		}
		return get(v)
	}
}

func (x *misdeclaration) member(name string, origin rules.Origin, changes rules.Changes) *rules.Member {
	get := func(object any) ref.Val { return types.Int(x.get(object)) }
	return &rules.Member{Name: x.name + name, Type: cel.IntType, Doc: "for a test", Origin: origin, Changes: changes, Get: get}
}

// with is the language with some more fields, and a function of them.
func with(add func(x *misdeclaration) []*rules.Member) rules.Vocabulary {
	v := Vocabulary()
	for _, x := range misdeclared() {
		i := slices.IndexFunc(v.Objects, func(o *rules.Object) bool { return o.Name == x.object })
		v.Objects[i].Members = append(v.Objects[i].Members, add(&x)...)
	}
	return v
}

// withMisdeclared has each field both ways, and a function that leaves out of its reads what it reads.
func withMisdeclared() rules.Vocabulary {
	v := with(func(x *misdeclaration) []*rules.Member {
		return []*rules.Member{x.member("", x.right, x.changes), x.member("Wrongly", x.wrong, x.wrongChanges)}
	})
	inZone := func(args ...ref.Val) ref.Val { return types.Int(zoneTasks(args[0].(*nodeView))) }
	v.Functions = append(v.Functions,
		method("inZone", "for a test", []*cel.Type{nodeType()}, cel.IntType, inZone, "{0}.zoneTasks"),
		method("wronglyInZone", "for a test", []*cel.Type{nodeType()}, cel.IntType, inZone, "{0}.labels", "{0}.tasks"))
	return v
}
