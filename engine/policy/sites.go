package policy

import (
	"slices"

	"github.com/google/cel-go/cel"

	"github.com/celsius-scheduler/celsius/rules"
)

// Site is one kind of decision that rows of a section make: the closed list of them is sites().
type Site struct {
	rules.Section
	// Roots are the variables that a row sees, besides cluster, now, params, variables, action and pipeline.
	Roots []string
	Want  rules.Kind
	// OnError is what a row that errs says, unless the row has an onError of its own.
	OnError string
	Doc     string
	// DenyIs is the answer that a denial stands for: true where a row names what is to be skipped.
	DenyIs bool
}

// The names of the sites.
const (
	QueueOrder     = "queueOrder"
	JobOrder       = "jobOrder"
	TaskOrder      = "taskOrder"
	JobValid       = "jobValid"
	JobReady       = "jobReady"
	JobPipelined   = "jobPipelined"
	JobStarving    = "jobStarving"
	JobEnqueueable = "jobEnqueueable"
	Overused       = "overused"
	Allocatable    = "allocatable"
	Preemptive     = "preemptive"
	TaskFeasible   = "taskFeasible"
	Predicates     = "predicates"
	Scores         = "scores"
	DeviceScores   = "deviceScores"
	Preemptable    = "preemptable"
	Reclaimable    = "reclaimable"
	Evictable      = "evictable"
	Victims        = "victims"
	VictimOrder    = "victimOrder"
)

// sites lists every site, in the order of DESIGN section 3.
func sites() []Site {
	order := func(name, doc string, roots ...string) Site {
		return Site{rules.Section{Name: name, Expression: "by", Keys: []string{"descending"}}, roots, rules.SortKey(), "skip", doc, false}
	}
	say := func(name, onError, doc string, keys []string, roots ...string) Site {
		return Site{rules.Section{Name: name, Expression: "expression", Keys: keys}, roots, rules.Bool(), onError, doc, name == Overused}
	}
	score := func(name, doc string, keys []string, roots ...string) Site {
		return Site{rules.Section{Name: name, Expression: "expression", Keys: append([]string{"weight"}, keys...)}, roots, rules.Number(), "skip", doc, false}
	}
	veto := []string{"veto"}
	return []Site{
		order(QueueOrder, "A sort key of a queue. First difference in tier order, then creation time, then UID.", "queue"),
		order(JobOrder, "A sort key of a job. First difference in tier order, then creation time, then UID.", "job"),
		order(TaskOrder, "A sort key of a task. First difference in tier order, then numeric suffix, creation time, UID.", "task"),
		say(JobValid, "deny", "Must hold, or the job is left with this reason on its PodGroup. All.", nil, "job"),
		say(JobReady, "deny", "May the job's placements be kept? All.", nil, "job"),
		say(JobPipelined, "deny", "May they be held until what they wait for is released? A vote: tier by tier a refusal is final, else a permit is.", nil, "job"),
		say(JobStarving, "deny", "Does the job still want tasks placed? All rows of the first tier that has any.", nil, "job"),
		say(JobEnqueueable, "deny", "May the job be let in? A vote: tier by tier a refusal is final, else a permit is; nobody: permit.", nil, "job", "queue"),
		say(Overused, "deny", "Skip this queue now? Any.", nil, "queue"),
		say(Allocatable, "deny", "May the queue take this task? All.", nil, "queue", "job", "task"),
		say(Preemptive, "deny", "May the queue take by force? All.", nil, "queue", "job", "request"),
		say(TaskFeasible, "deny", "Can the task be placed anywhere at all? All.", nil, "task", "job"),
		say(Predicates, "deny", "Is the node fit for the task? All; rejections are counted by row.", []string{"curable"}, "task", "node", "job", "queue"),
		score(Scores, "How good the node is for the task: normalised, rounded, weighted, summed.", []string{"normalize", "round"}, "task", "node", "job", "queue"),
		score(DeviceScores, "How good a device is for the task; those with the largest sums are taken.", nil, "task", "node", "gpu"),
		say(Preemptable, "deny", "May this victim of the preemptor's own queue go?", veto, "preemptor", "victim", "scope"),
		say(Reclaimable, "deny", "May this victim of another queue go?", veto, "preemptor", "victim", "scope"),
		say(Evictable, "deny", "May this victim go for a whole gang?", veto, "job", "victim", "scope"),
		say(Victims, "deny", "Should this task go now?", []string{"veto", "every"}, "victim"),
		order(VictimOrder, "Who goes first.", "preemptor", "victim"),
	}
}

// siteNamed finds a site.
func siteNamed(name string) *Site {
	all := sites()
	i := slices.IndexFunc(all, func(s Site) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// rootTypes gives the type of every root that some site has.
func rootTypes() map[string]*cel.Type {
	return map[string]*cel.Type{
		"task": taskType(), "job": jobType(), "queue": queueType(), "node": nodeType(), "gpu": gpuType(),
		"victim": taskType(), "preemptor": taskType(), "request": resourcesType(), "scope": cel.StringType,
		"cluster": clusterType(), "now": cel.TimestampType, "action": cel.StringType, "pipeline": cel.ListType(cel.StringType),
	}
}

// everywhere are the roots that every row sees.
func everywhere() []string { return []string{"cluster", "now", "action", "pipeline"} }

// shape is what a table may hold.
func shape() rules.Shape {
	s := rules.Shape{
		Owners:     []string{"cluster", "queue", "job", "task", "node", "victim"},
		ParamTypes: paramTypes(),
		Functions: []rules.AttributeFunction{
			{Name: "sum", Required: []string{"over", "of"}, Optional: []string{"when"}},
			{Name: "waterFill", Required: []string{"total", "weight", "demand"}, Optional: []string{"among", "floor", "ceiling"}},
		},
	}
	for _, site := range sites() {
		s.Sections = append(s.Sections, site.Section)
	}
	return s
}
