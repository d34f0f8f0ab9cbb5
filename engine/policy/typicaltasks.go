package policy

import (
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/rules"
)

// typicalTasksFunction returns the accounting function for the most frequent shapes of tasks.
func typicalTasksFunction() *Accounting {
	return &Accounting{
		Name: "typicalTasks",
		Doc: "On the cluster: the most frequent shapes of task, by CPU, devices, part of each and allowed models, until they are `cover` of " +
			"all tasks, each weighted by its part of these. They are counted over the run's workload where one is given, as by the replay of a " +
			"trace, else over the tasks that are known; beside each stands how many devices the nodes have that it could run on. Settles once a " +
			"cycle unless `settle` says otherwise, which costs a step for each task.",
		Args: []AccountingArgument{
			{Name: "cover", Doc: "A number above 0, at most 1: the part of the tasks that is typical.", Want: rules.Number()},
		},
		On:      []string{"cluster"},
		Settles: "cycle",
		Compile: compileTypicalTasks,
	}
}

// compileTypicalTasks adds the cluster's workload or tasks, and its nodes, to the reads.
func compileTypicalTasks(s *TableScope, a *rules.Attribute, x *Account) bool {
	f := s.OneField(x, a, "cluster")
	f.Type = language.TypicalType()
	reads := x.Fields[0].reads
	tasks := rules.Read{Root: "cluster", Steps: []rules.Step{{Member: s.objects["Cluster"].Find("workload")}}, Changes: rules.ByObject}
	reads.Add(&rules.Reads{All: []rules.Read{tasks}})
	node := s.objects["Node"]
	sizes := &rules.Reads{}
	for _, name := range []string{"allocatable", "gpus", "gpuModel"} {
		sizes.All = append(sizes.All, rules.Read{Root: "node", Steps: []rules.Step{{Member: node.Find(name)}}, Changes: rules.ByObject})
	}
	members(reads, sizes, "node", "cluster")
	x.Keep = func(s *Accounts) Kept { return typicalCount{s} }
	return true
}

// typicalCount keeps no data: the shapes are counted when the memo of the field is not valid.
type typicalCount struct{ s *Accounts }

func (typicalCount) Update() {}

func (typicalCount) Erring() bool { return false }

// Value implements Kept.
func (t typicalCount) Value(x *Attribute, _ ref.Val) ref.Val {
	f := t.s.Ask.Frame()
	defer t.s.Ask.Done()
	return language.TypicalTasks(t.s.c, x.Args["cover"].Eval(f))
}
