package policy

import (
	"slices"

	"github.com/google/cel-go/cel"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/policy/params"
	"github.com/celsius-scheduler/celsius/rules"
)

// Site is one type of decision that rows of a section make. Sites returns the closed list.
type Site struct {
	rules.Section
	// Roots are the variables that a row sees, in addition to cluster, now, params, variables, action and pipeline.
	Roots []string
	// Want is the type of a row's expression.
	Want rules.Kind
	// OnError is the default for a row's onError: the answer of a row that fails.
	OnError string
	// Doc describes the question, and how the answers of rows are combined.
	Doc string
	// DenyIs is the answer that denies. It is true for sites whose rows name objects to skip.
	DenyIs bool
	// Otherwise is the built-in table whose rows are used if a policy uses the site but has no rows for it; "": none.
	Otherwise string
}

// Names of the sites.
const (
	QueueOrder       = "queueOrder"
	JobOrder         = "jobOrder"
	TaskOrder        = "taskOrder"
	JobValid         = "jobValid"
	JobReady         = "jobReady"
	JobPipelined     = "jobPipelined"
	JobStarving      = "jobStarving"
	JobEnqueueable   = "jobEnqueueable"
	Overused         = "overused"
	Allocatable      = "allocatable"
	BeyondShare      = "beyondShare"
	Bindable         = "bindable"
	Preemptive       = "preemptive"
	TaskFeasible     = "taskFeasible"
	Predicates       = "predicates"
	Scores           = "scores"
	DevicePredicates = "devicePredicates"
	DeviceScores     = "deviceScores"
	Preemptable      = "preemptable"
	Reclaimable      = "reclaimable"
	Evictable        = "evictable"
	Victims          = "victims"
	VictimOrder      = "victimOrder"
	VictimCost       = "victimCost"
	BeyondDue        = "beyondDue"
)

// Sites returns every site, in the order of docs/rule-language.md, Sections.
func Sites() []Site {
	order := func(name, doc string, roots ...string) Site {
		return Site{rules.Section{Name: name, Expression: "by", Keys: []string{"descending"}}, roots, rules.SortKey(), "skip", doc, false, ""}
	}
	share := []string{"share"}
	say := func(name, onError, doc string, keys []string, roots ...string) Site {
		return Site{rules.Section{Name: name, Expression: "expression", Keys: keys}, roots, rules.Bool(), onError, doc, name == Overused, ""}
	}
	score := func(name, doc string, keys []string, roots ...string) Site {
		return Site{
			rules.Section{Name: name, Expression: "expression", Keys: append([]string{"weight"}, keys...)},
			roots, rules.Number(), "skip",
			doc, false, "",
		}
	}
	veto := []string{"veto"}
	return []Site{
		order(QueueOrder, "A sort key of a queue. First difference in tier order, then creation time, then name.", "queue"),
		order(JobOrder, "A sort key of a job. First difference in tier order, then creation time, then namespace and name.", "job"),
		order(TaskOrder, "A sort key of a task. First difference in tier order; then tasks that the minimum of their role needs come first, "+
			"then numeric suffix, creation time, namespace and name.",
			"task"),
		say(JobValid, "deny", "Must hold, or the job is left, with this reason on its PodGroup. All.", nil, "job"),
		say(JobReady, "deny", "May the job's placements be kept? All.", nil, "job"),
		say(JobPipelined, "deny", "May they be held until what they wait for is released? A vote: tier by tier a refusal is final, else a "+
			"permit is. Without votes: permit.", nil, "job"),
		say(JobStarving, "deny", "Does the job still want tasks placed? All rows of the first tier that has any.", nil, "job"),
		say(JobEnqueueable, "deny", "May the job be admitted? A vote: tier by tier a refusal is final, else a permit is. Without votes: permit.",
			nil, "job", "queue"),
		say(Overused, "deny", "Skip this queue now? Any. A step whose gates name `beyondShare` does not ask the rows with `share: true`.", share,
			"queue"),
		say(Allocatable, "deny", "May the queue take this task? All. A step whose gates name `beyondShare` does not ask the rows with "+
			"`share: true`.", share, "queue", "job", "task"),
		say(BeyondShare, "deny", "May the job start, although its queue then holds more than its share? Any. `request` is that of the pods that "+
			"it lacks to start, or of one pod if it has started. If the rows refuse, they are asked again without the first pods, as long as "+
			"the job can start without them. They are also asked again before a turn binds more than they accepted.", nil,
			"queue", "job", "request"),
		say(Bindable, "deny", "May the task be bound now? All. If not, it gets no idle node: it waits until its queue has released resources. "+
			"It can still be promised a node on which it waits for pods that are terminating. A step whose gates name `beyondShare` does not "+
			"ask the rows with `share: true`.", share, "queue", "job", "task"),
		say(Preemptive, "deny", "May the queue take by force? All.", nil, "queue", "job", "request"),
		say(TaskFeasible, "deny", "Can the task be placed anywhere at all? All.", nil, "task", "job"),
		say(Predicates, "deny", "Is the node fit for the task? All; rejections are counted by row: the first that says no, of those that read "+
			"of the node its object alone, then of those that read the node, of those that read who is in its topology domains, and of those "+
			"that read volumes.", []string{"curable"}, "task", "node", "job", "queue"),
		score(Scores, "How good the node is for the task: normalised, rounded, weighted, summed.", []string{"normalize", "round"}, "task", "node",
			"job", "queue"),
		say(DevicePredicates, "deny", "May the task have this device of the node? All; a node on which too few of the devices that have room "+
			"are left is refused by the first row that leaves too few. `gpu` is the device as it is, or, where the task waits for what is "+
			"being released, as it will be.", nil, "task", "node", "gpu"),
		score(DeviceScores, "How good a device is for the task; those with the largest sums are taken.", nil, "task", "node", "gpu"),
		say(Preemptable, "deny", "May this victim of the preemptor's own queue go? Inside a tier all tables that have an opinion; the first "+
			"tier that names anybody decides.", veto, "preemptor", "victim", "scope"),
		say(Reclaimable, "deny", "May this victim of another queue go? Inside a tier all tables that have an opinion; the first tier that "+
			"names anybody decides.", veto, "preemptor", "victim", "scope"),
		say(Evictable, "deny", "May this victim go for a whole gang? Inside a tier all tables that have an opinion; the first tier that names "+
			"anybody decides.", veto, "job", "victim", "scope"),
		say(Victims, "deny", "Should this task be evicted now? The first tier whose rows name a task decides: all tasks that any of its "+
			"rows names, less vetoes.",
			[]string{"veto", "every"}, "victim"),
		order(VictimOrder, "Who goes first. Without rows: the reverse of queueOrder, jobOrder and taskOrder.", "preemptor", "victim"),
		{
			rules.Section{Name: VictimCost, Expression: "expression", Keys: []string{"fold"}},
			[]string{"preemptor", "victim", "scope"},
			rules.Number(), "skip",
			"What it costs that this victim goes, with all others who go with it gone. Of several nodes the one is taken where it is least for " +
				"all of them together: first difference in tier order. Without rows: those of the table `least-harm`.", false, "least-harm",
		},
		{
			rules.Section{Name: BeyondDue, Expression: "expression"},
			[]string{"queue"},
			rules.Number(), "skip",
			"How much of what the queue holds is beyond what it is due. Where rows of the same table let pods go for another queue, the sum over " +
				"all queues falls with that: whoever checks evictions asks. It decides nothing.", false, "",
		},
	}
}

// SiteNamed returns the site with this name, or nil.
func SiteNamed(name string) *Site {
	all := Sites()
	i := slices.IndexFunc(all, func(s Site) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// Root is a variable that rows see.
type Root struct {
	Name string
	Type *cel.Type
	Doc  string
	// Everywhere is true for variables that every row sees. The others are listed in Site.Roots.
	Everywhere bool
}

// Roots returns every root except params and variables, because each table defines the fields of those two.
func Roots() []Root {
	str := cel.StringType
	return []Root{
		{"cluster", language.ClusterType(), "The whole cluster.", true},
		{"now", cel.TimestampType, "The time of the cycle.", true},
		{"action", str, "The name of the action that asks.", true},
		{"pipeline", cel.ListType(str), "The names of the policy's actions, in order.", true},
		{"task", language.TaskType(), "The task that is asked about.", false},
		{"job", language.JobType(), "Its job, or the job that is asked about.", false},
		{"queue", language.QueueType(), "The job's queue, or the queue that is asked about.", false},
		{"node", language.NodeType(), "The node that is tried.", false},
		{"gpu", language.GPUType(), "The device that is tried.", false},
		{"request", language.ResourcesType(), "The requested resources: those of a task, or of a whole gang.", false},
		{"preemptor", language.TaskType(), "The task for which victims are evicted; null if it is none, as in evict.", false},
		{"victim", language.TaskType(), "The task that would be evicted.", false},
		{"scope", str, "The tasks that may be evicted: those of queue, job or otherQueues.", false},
	}
}

// RootTypes returns the type of every root, by name.
func RootTypes() map[string]*cel.Type {
	out := map[string]*cel.Type{}
	for _, r := range Roots() {
		out[r.Name] = r.Type
	}
	return out
}

// everywhere returns the roots that every row sees.
func everywhere() []string {
	var out []string
	for _, r := range Roots() {
		if r.Everywhere {
			out = append(out, r.Name)
		}
	}
	return out
}

// Shape returns the keys that a table may contain.
func Shape() rules.Shape { return shapeWith(AccountingFunctions()) }

// shapeWith returns the shape of tables with these accounting functions.
func shapeWith(functions []*Accounting) rules.Shape {
	s := rules.Shape{
		Owners:     []string{"cluster", "queue", "job", "task", "node", "namespace", "victim"},
		ParamTypes: params.Types(),
	}
	for _, fn := range functions {
		s.Functions = append(s.Functions, fn.shape())
	}
	for _, site := range Sites() {
		s.Sections = append(s.Sections, site.Section)
	}
	return s
}
