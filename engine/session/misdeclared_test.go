package session

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
)

// misdeclaration is a field that is declared twice: once correctly and once wrongly.
type misdeclaration struct {
	object, name          string
	right, wrong          rules.Origin
	changes, wrongChanges rules.Changes
	get                   func(object any) int64
}

// misdeclared returns a mistake of each kind: the declared part of the world is not the part that is read.
func misdeclared() []misdeclaration {
	const byStep, byObject = rules.ByStep, rules.ByObject
	return []misdeclaration{
		{"Node", "zoneTasks", language.FromDomain, language.FromState, byStep, byStep, ofView(zoneTasks)},
		{"Node", "busy", language.FromState, language.FromSpec, byStep, byObject, ofView(nodeTasks)},
		{"Node", "hurry", language.FromState, language.FromState, byStep, rules.ByCycle, ofView(nodeTasks)},
		{
			"Node", "labelled", language.FromSpec, language.FromSpec | language.FromAmounts, byObject, byObject,
			ofView(func(n *language.NodeView) int64 { return int64(len(n.Of.Labels["zone"])) }),
		},
		{
			"Node", "portion", language.FromState | language.FromCluster, language.FromState, byStep, byStep,
			ofView(func(n *language.NodeView) int64 { return int64(n.World.Cluster().Used.Get(model.CPU)) }),
		},
		{"Node", "jobPhases", language.FromAll, language.ToTasks, byStep, byStep, ofView(waitingBeside)},
		{
			"Task", "title", language.FromSpec, language.FromIdentity, byObject, rules.Static,
			ofView(func(t *language.TaskView) int64 { return int64(len(t.Of.Labels["app"])) }),
		},
		{"Task", "beside", language.FromAll, language.FromState, byStep, byStep, ofView(queueHolds)},
		{"Task", "claimed", language.FromSpec | language.FromVolumes, language.FromSpec, byStep, byObject, ofView(claimsMissing)},
		{
			"Task", "imaged", language.FromSpec | language.FromImages, language.FromSpec, byObject, byObject,
			ofView(func(t *language.TaskView) int64 {
				return int64(len(t.World.TopologyOf(t.Of).Images()))
			}),
		},
		{
			"Task", "spokenOf", language.FromSpec | language.FromOthersTerms, language.FromTerms, byObject, byObject,
			ofView(func(t *language.TaskView) int64 {
				return int64(len(strings.Fields(t.World.TopologyOf(t.Of).Matched())))
			}),
		},
		{
			"Task", "polite", language.FromSpec | language.FromRelated, language.FromSpec, byObject, byObject,
			ofView(func(t *language.TaskView) int64 { return int64(len(t.Of.PreemptionPolicy)) }),
		},
		{
			"Job", "minutes", language.FromClock, language.FromState, rules.ByCycle, rules.ByCycle,
			ofView(func(j *language.JobView) int64 { return j.World.Now.Unix() / 60 }),
		},
		{
			"Job", "letIn", language.FromState, language.FromSpec, rules.ByAdmit, byObject,
			ofView(func(j *language.JobView) int64 { return int64(strings.Index("PI", j.Of.Phase[:1])) }),
		},
		{"Queue", "rank", language.FromAll, language.FromSpec, byObject, byObject, ofView(heavierQueues)},
	}
}

func nodeTasks(n *language.NodeView) int64 {
	return int64(len(n.World.Cluster().Nodes.Tasks[n.Of.Row]))
}

func waitingBeside(n *language.NodeView) (sum int64) {
	for _, t := range n.World.TasksOn(n.Of.Row) {
		sum += t.Job.Counts[model.Pending]
	}
	return sum
}

func queueHolds(t *language.TaskView) int64 {
	if q := t.Of.Job.Queue; q != nil {
		return int64(q.Allocated.Get(model.CPU))
	}
	return 0
}

func claimsMissing(t *language.TaskView) int64 {
	v, err := t.World.Storage()
	if err != nil {
		return -1
	}
	return int64(len(v.Missing(t.Of)))
}

func heavierQueues(q *language.QueueView) (rank int64) {
	for _, other := range q.World.Cluster().Queues {
		if other.Weight > q.Of.Weight {
			rank++
		}
	}
	return rank
}

func zoneTasks(n *language.NodeView) (sum int64) {
	nodes := &n.World.Cluster().Nodes
	for row, other := range nodes.Rows {
		if other != nil && other.Labels["zone"] == n.Of.Labels["zone"] {
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

// with returns the language with some more fields, and a function that reads them.
func with(add func(x *misdeclaration) []*rules.Member) rules.Vocabulary {
	v := policy.Vocabulary()
	for _, x := range misdeclared() {
		i := slices.IndexFunc(v.Objects, func(o *rules.Object) bool { return o.Name == x.object })
		v.Objects[i].Members = append(v.Objects[i].Members, add(&x)...)
	}
	return v
}

// withMisdeclared returns each field in both forms, and a function that does not declare what it reads.
func withMisdeclared() rules.Vocabulary {
	v := with(func(x *misdeclaration) []*rules.Member {
		return []*rules.Member{x.member("", x.right, x.changes), x.member("Wrongly", x.wrong, x.wrongChanges)}
	})
	inZone := func(args ...ref.Val) ref.Val { return types.Int(zoneTasks(args[0].(*language.NodeView))) }
	v.Functions = append(v.Functions,
		language.Method("inZone", "for a test", []*cel.Type{language.NodeType()}, cel.IntType, inZone, "{0}.zoneTasks"),
		language.Method("wronglyInZone", "for a test", []*cel.Type{language.NodeType()}, cel.IntType, inZone, "{0}.labels", "{0}.tasks"))
	return v
}
