package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Cycle is a completed cycle. It answers questions until the cluster changes.
type Cycle struct {
	// Session ran the cycle, or is another session that began at the same time. Its cluster is as the cycle left it.
	Session *session.Session
	Plan    *model.Plan
	// Past contains the decisions of earlier cycles; nil: they are unknown.
	Past *Past
	// Sees reports whether the user who asks may see a namespace; nil: all namespaces. Objects of other namespaces are reported without names.
	Sees func(namespace string) bool

	// Titles are the titles of the cluster's jobs.
	Titles Titles
	// Controllers returns why a batch Job has no pods, or why its pods do not run, as the controllers report it. nil: this is not known.
	Controllers func(job string) string
	// Refused are the jobs whose pods the API server refuses, in order.
	Refused []string

	cluster *model.Cluster
	decided *decisions        // nil: not computed yet
	inDepth map[string]string // explanations about nodes, by a key of equal pods
}

// Kinds of objects that can be asked about.
const (
	Job   = "job"
	Pod   = "pod"
	Queue = "queue"
	Node  = "node"
)

// Kinds returns all kinds.
func Kinds() []string { return []string{Job, Pod, Queue, Node} }

// Words returns the words for a kind that users may write: the kind itself first, and then those that kubectl knows.
func Words(kind string) []string {
	return map[string][]string{
		Job:   {Job, "jobs", "vcjob", "vj", "podgroup", "podgroups", "pg"},
		Pod:   {Pod, "pods", "po"},
		Queue: {Queue, "queues", "q"},
		Node:  {Node, "nodes", "no"},
	}[kind]
}

// UnknownError states that no object has this name.
type UnknownError struct {
	Kind, Name string
	Near       string // a similar name, which the user may have meant
}

func (e *UnknownError) Error() string {
	if e.Near != "" {
		return fmt.Sprintf("there is no %s %s; did you mean %s?", e.Kind, e.Name, e.Near)
	}
	return fmt.Sprintf("there is no %s %s", e.Kind, e.Name)
}

// New returns a Cycle for a plan.
func New(s *session.Session, plan *model.Plan) *Cycle {
	return &Cycle{Session: s, Plan: plan, cluster: s.Cluster(), Titles: TitlesOf(s.Cluster()), inDepth: map[string]string{}}
}

// Explanation is the explanation of one object.
type Explanation struct {
	Kind      string `json:"kind"` // job, pod, queue or node
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Policy is the policy of the cycle at Time.
	Policy string    `json:"policy"`
	Time   time.Time `json:"time"`
	// Text is the complete explanation, for people.
	Text string `json:"text"`
	// The cycle's decisions about a job and its pods, or about a pod.
	Binds  []model.Bind  `json:"binds,omitempty"`
	Evicts []model.Evict `json:"evicts,omitempty"`
	Waits  []model.Wait  `json:"waits,omitempty"`
}

// Object explains one object. It finds a job by the name of its PodGroup, or of the Job or pod for which the PodGroup was created.
func (x *Cycle) Object(kind, namespace, name string) (*Explanation, error) {
	out := &Explanation{
		Kind: kind, Namespace: namespace, Name: name, Time: x.Plan.Now, Policy: fmt.Sprintf("%s@%d", x.Plan.Policy, x.Plan.Generation),
	}
	key := model.Key(namespace, name)
	switch kind {
	case Job:
		if j := called(x, key); j != nil {
			x.cluster.Handle(j)
			out.Text = x.job(j)
			x.add(out, j.Key, "")
			return out, nil
		}
		if out := leftOutObject(x, out, key); out != nil {
			return out, nil
		}
		return nil, x.unknown(kind, key, titles(x))
	case Pod:
		if t := x.cluster.Tasks[key]; t != nil {
			x.cluster.Handle(t)
			out.Text = x.pod(t)
			x.add(out, t.Job.Key, key)
			return out, nil
		}
		if out := leftOutObject(x, out, key); out != nil {
			return out, nil
		}
		return nil, x.unknown(kind, key, slices.Collect(maps.Keys(x.cluster.Tasks)))
	case Queue:
		if q := x.cluster.Queues[name]; q != nil {
			x.cluster.Handle(q)
			out.Text = x.queue(q)
			return out, nil
		}
		if out := leftOutObject(x, out, name); out != nil {
			return out, nil
		}
		return nil, x.unknown(kind, name, slices.Collect(maps.Keys(x.cluster.Queues)))
	case Node:
		if row, ok := x.cluster.Nodes.Index[name]; ok {
			out.Text = x.node(row)
			return out, nil
		}
		return nil, x.unknown(kind, name, slices.Collect(maps.Keys(x.cluster.Nodes.Index)))
	}
	return nil, fmt.Errorf("a %s cannot be explained; there are %s", kind, strings.Join(Kinds(), ", "))
}

// add adds the plan's decisions about a job and its pods, or about one of its pods.
func (x *Cycle) add(out *Explanation, job, task string) {
	of := func(j, t string) bool { return j == job && (task == "" || t == "" || t == task) }
	for i := range x.Plan.Binds {
		if b := &x.Plan.Binds[i]; of(b.Job, b.Task) {
			out.Binds = append(out.Binds, *b)
		}
	}
	for i := range x.Plan.Evicts {
		if e := x.Plan.Evicts[i]; of(e.Job, e.Task) {
			out.Evicts = append(out.Evicts, x.Masked(e))
		}
	}
	for i := range x.Plan.Waits {
		if w := &x.Plan.Waits[i]; of(w.Job, w.Task) {
			out.Waits = append(out.Waits, *w)
		}
	}
}

// unknown returns an error that names the most similar object of the same namespace.
func (x *Cycle) unknown(kind, name string, known []string) error {
	namespace, _, namespaced := strings.Cut(name, "/")
	known = slices.DeleteFunc(known, func(k string) bool { return namespaced && !strings.HasPrefix(k, namespace+"/") })
	slices.Sort(known)
	return &UnknownError{kind, name, source.Nearest(name, known)}
}

// jobsAndPods explains the jobs and pods of these kinds whose keys match fits. Pods of an explained job are part of its explanation.
func (x *Cycle) jobsAndPods(kinds []string, fits func(key string) bool) string {
	var out strings.Builder
	told := map[*model.Job]bool{}
	for _, j := range x.jobs() {
		if slices.Contains(kinds, Job) && (fits(j.Key) || fits(x.Titles.Of(j.Key))) {
			out.WriteString(x.job(j))
			told[j] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(x.cluster.Tasks)) {
		if t := x.cluster.Tasks[key]; slices.Contains(kinds, Pod) && fits(key) && !told[t.Job] {
			out.WriteString(x.pod(t))
		}
	}
	return out.String()
}

// Named explains all jobs, pods, queues and nodes with a name. The name of a job or pod may be without its namespace. KIND/NAME selects
// those of a kind, by one of its Words. "all" selects every job that the plan contains. Long values are shortened, and control characters
// are escaped, as in Columns.
func (x *Cycle) Named(name string) (string, error) {
	text, err := x.named(name)
	return source.Escape(source.ShortWords(text)), err
}

func (x *Cycle) named(name string) (string, error) {
	if name == "all" {
		return x.all(), nil
	}
	kind, rest := kindIn(name)
	if kind != "" {
		if text := x.ofKinds(rest, kind); text != "" {
			return text, nil
		}
	}
	if text := x.ofKinds(name, Kinds()...); text != "" { // a namespace can have the name of a kind
		return text, nil
	}
	if kind != "" {
		return "", x.nothingNamed(rest, kind)
	}
	return "", x.nothingNamed(name, Kinds()...)
}

// kindIn splits KIND/NAME. The kind is "" if the name does not begin with a word for a kind.
func kindIn(name string) (kind, rest string) {
	word, rest, _ := strings.Cut(name, "/")
	for _, kind := range Kinds() {
		if rest != "" && slices.Contains(Words(kind), word) {
			return kind, rest
		}
	}
	return "", name
}

// ofKinds explains the objects of these kinds with a name; "" if there are none.
func (x *Cycle) ofKinds(name string, kinds ...string) string {
	fits := func(key string) bool {
		_, short, _ := strings.Cut(key, "/")
		return key == name || short == name
	}
	text := x.jobsAndPods(kinds, fits)
	if text == "" {
		for _, kind := range kinds {
			if kind == Job || kind == Pod {
				text += leftOut(x, kind, fits)
			}
		}
	}
	if text == "" && slices.Contains(kinds, Job) {
		text = withoutPods(x, fits)
	}
	if slices.Contains(kinds, Queue) {
		if q := x.cluster.Queues[name]; q != nil {
			text += x.queue(q)
		} else {
			text += leftOut(x, Queue, func(key string) bool { return key == name })
		}
	}
	if row, ok := x.cluster.Nodes.Index[name]; ok && slices.Contains(kinds, Node) {
		text += x.node(row)
	}
	return text
}

// nothingNamed returns the error for a name that no object of these kinds has.
func (x *Cycle) nothingNamed(name string, kinds ...string) error {
	var namespaced, others []string
	for _, kind := range kinds {
		switch kind {
		case Job:
			namespaced = append(namespaced, titles(x)...)
		case Pod:
			namespaced = slices.AppendSeq(namespaced, maps.Keys(x.cluster.Tasks))
		case Queue:
			others = slices.AppendSeq(others, maps.Keys(x.cluster.Queues))
		case Node:
			others = slices.AppendSeq(others, maps.Keys(x.cluster.Nodes.Index))
		}
	}
	slices.Sort(namespaced)
	slices.Sort(others)
	what := kinds[0]
	if len(kinds) > 1 {
		what = "pod, job, queue or node"
	}
	if strings.Contains(name, "/") {
		if len(kinds) > 1 {
			what = "pod or job"
		}
		return &UnknownError{what, name, source.Nearest(name, namespaced)}
	}
	return &UnknownError{what, name, cmp.Or(source.Nearest("default/"+name, namespaced), source.Nearest(name, others))}
}

// controllersCause returns what the controllers report about a batch Job. "" means nothing.
func controllersCause(x *Cycle, job string) string {
	if x.Controllers == nil {
		return ""
	}
	return x.Controllers(job)
}

// withoutPods explains the batch Jobs that match fits and whose controller creates no pods.
func withoutPods(x *Cycle, fits func(key string) bool) string {
	var out strings.Builder
	for key, phase := range x.cluster.PhasesOfJobs() {
		if !fits(key) {
			continue
		}
		cause, why := "its phase is "+string(phase)+": its controller creates no more pods", controllersCause(x, key)
		switch {
		case model.IsSuspended(phase):
			cause = "it is suspended (phase " + string(phase) + "): " + cmp.Or(why, "it has no pods until it is resumed")
		case model.MakesPods(phase):
			if cause = why; cause == "" {
				continue
			}
		case why != "":
			cause = why + "; " + cause
		}
		printf(&out, "job %s\n  cause  %s\n", key, cause)
	}
	return out.String()
}

// called returns the job with a name or a title; nil: there is none.
func called(x *Cycle, name string) *model.Job {
	if j := x.cluster.Jobs[name]; j != nil && !j.Orphan {
		return j
	}
	for key, title := range x.Titles {
		if title == name {
			return x.cluster.Jobs[key]
		}
	}
	return nil
}

// titles returns the titles of all jobs.
func titles(x *Cycle) []string {
	var out []string
	for _, j := range x.jobs() {
		out = append(out, x.Titles.Of(j.Key))
	}
	return out
}

// jobs returns the jobs that users know, in key order.
func (x *Cycle) jobs() []*model.Job {
	return slices.DeleteFunc(slices.Clone(x.cluster.JobsByKey()), func(j *model.Job) bool { return j.Orphan })
}

// all explains every job that the plan names, in the plan's order.
func (x *Cycle) all() string {
	var out strings.Builder
	seen := map[string]bool{}
	explain := func(key string) {
		if j, ok := x.cluster.Jobs[key]; ok && !seen[key] {
			seen[key] = true
			out.WriteString(x.job(j))
		}
	}
	for _, a := range x.Plan.Admits {
		explain(a.Job)
	}
	for _, binds := range [][]model.Bind{x.Plan.Binds, x.Plan.Pipelines, x.Plan.Holds} {
		for _, b := range binds {
			explain(b.Job)
		}
	}
	for i := range x.Plan.Evicts {
		explain(x.Plan.Evicts[i].Job)
	}
	for _, wait := range x.Plan.Waits {
		explain(wait.Job)
	}
	for _, name := range x.Refused {
		if j := called(x, name); j != nil {
			explain(j.Key)
		} else {
			out.WriteString(withoutPods(x, func(key string) bool { return key == name }))
		}
	}
	if out.Len() == 0 {
		return "nothing was decided\n"
	}
	return out.String()
}

// sees reports whether the user who asks may know an object, by its key.
func (x *Cycle) sees(key string) bool {
	namespace, _, _ := strings.Cut(strings.TrimPrefix(key, "~"), "/")
	return x.Sees == nil || key == "" || x.Sees(namespace)
}

// names returns the titles of some jobs, at most as many as most. It only counts jobs that the user may not know.
func (x *Cycle) names(keys []string, most int) string {
	var named []string
	hidden, more := 0, 0
	for _, key := range keys {
		switch {
		case !x.sees(key):
			hidden++
		case len(named) == most:
			more++
		default:
			named = append(named, x.Titles.Of(key))
		}
	}
	if more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	if hidden > 0 {
		named = append(named, Count(hidden, "job")+" of other namespaces")
	}
	return listed(named)
}

// listed returns "a, b and c".
func listed(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
