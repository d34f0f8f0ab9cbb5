package extender

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind and version of an answer as an object in files.
const (
	Kind    = "ExtenderAnswer"
	Version = "sim.celsius.dev/v1alpha1"
)

// Answer is the answer of one address about one subject.
type Answer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// URL is the address that was asked.
	URL string `json:"url"`
	// As is the form of the question, one of Forms; "": it answers each form.
	As string `json:"as,omitempty"`
	// Of is the subject of the question.
	Of Subject `json:"of"`
	// At is when the question was asked; if nodes were asked about at several times, the first of them.
	At metav1.Time `json:"at,omitzero"`
	// Error states why the question could not be asked; "": it was asked.
	Error string `json:"error,omitempty"`
	// Says is the answer about the subject as a whole; "" if the question was about nodes.
	Says string `json:"says,omitempty"`
	// Nodes are the answers about nodes.
	Nodes []NodeAnswer `json:"nodes,omitempty"`
}

// NodeAnswer is the answer about a subject and a node.
type NodeAnswer struct {
	Name string `json:"name"`
	// Version is the version of the node's object that was sent; "" if unknown.
	Version string `json:"version,omitempty"`
	// Error states why the question could not be asked; "": it was asked.
	Error string `json:"error,omitempty"`
	// Refused states why the node is rejected; "": it is not.
	Refused string  `json:"refused,omitempty"`
	Score   float64 `json:"score,omitempty"`
}

// Subject is the subject of a question.
type Subject struct {
	// Kind is Task, Job or Queue.
	Kind string `json:"kind"`
	// Job is namespace/name of a PodGroup, and Queue the name of a queue.
	Job   string `json:"job,omitempty"`
	Queue string `json:"queue,omitempty"`
	// Role is the role of the tasks; "": all tasks of the job.
	Role string `json:"role,omitempty"`
	// Like distinguishes tasks of one role with different requests; "": all tasks of the role.
	Like string `json:"like,omitempty"`
}

// Kinds of subjects.
const (
	Task  = "Task"
	Job   = "Job"
	Queue = "Queue"
)

// Possible values of an answer: a vote, or yes or no. For a node: allow or refuse, and failed if the question could not be asked.
const (
	Permit  = "permit"
	Reject  = "reject"
	Abstain = "abstain"
	Yes     = "yes"
	No      = "no"
	Failed  = "failed"
	Allow   = "allow"
	Refuse  = "refuse"
)

// String returns the name of a subject.
func (s Subject) String() string {
	switch {
	case s.Kind == Queue:
		return "queue " + s.Queue
	case s.Kind == Job:
		return "job " + s.Job
	case s.Role == "":
		return "tasks of " + s.Job
	}
	return "tasks " + s.Role + " of " + s.Job
}

// Wider returns the subjects whose answers also apply to this one, itself first.
func (s Subject) Wider() []Subject {
	out := []Subject{s}
	if s.Like != "" {
		s.Like = ""
		out = append(out, s)
	}
	if s.Role != "" {
		s.Role = ""
		out = append(out, s)
	}
	return out
}

// Mistake is a mistake in an answer.
type Mistake struct{ Field, Text string }

// mistakes collects mistakes.
type mistakes []Mistake

func (m *mistakes) add(field, format string, args ...any) {
	*m = append(*m, Mistake{field, fmt.Sprintf(format, args...)})
}

// Mistakes returns the mistakes of an answer.
func (a *Answer) Mistakes() []Mistake {
	var m mistakes
	if a.URL == "" {
		m.add("url", "is missing: write the address that was asked, as the policy's table has it")
	}
	if a.At.IsZero() {
		m.add("at", "is missing: an answer that was given at no time is of no use")
	}
	a.Of.check(&m)
	if on, ok := Forms()[a.As]; a.As != "" && (!ok || on != strings.ToLower(a.Of.Kind)) {
		m.add("as", "is %q, and no form of question about a %s", a.As, a.Of.Kind)
	}
	words := map[string][]string{Job: {Permit, Reject, Abstain, Yes, No}, Queue: {Yes, No}}[a.Of.Kind]
	switch {
	case a.Error != "":
	case a.Of.Kind == Task && a.Says != "":
		m.add("says", "is %q: of tasks it is said by node, under nodes", a.Says)
	case words != nil && !slices.Contains(words, a.Says):
		m.add("says", "is %q, not one of %s", a.Says, strings.Join(words, ", "))
	}
	for i := range a.Nodes {
		if a.Nodes[i].Name == "" {
			m.add(fmt.Sprintf("nodes[%d].name", i), "is missing")
		}
		if x := a.Nodes[i].Score; !Comparable(x) {
			m.add(fmt.Sprintf("nodes[%d].score", i), "is %v, and no number to be compared; the largest is %g", x, MostScore)
		}
	}
	return m
}

func (s *Subject) check(m *mistakes) {
	switch {
	case s.Kind != Task && s.Kind != Job && s.Kind != Queue:
		m.add("of.kind", "is %q, not Task, Job or Queue", s.Kind)
	case s.Kind == Queue && s.Queue == "":
		m.add("of.queue", "is missing")
	case s.Kind != Queue && !strings.Contains(s.Job, "/"):
		m.add("of.job", "is %q; write NAMESPACE/NAME of the PodGroup", s.Job)
	}
}

// MostScore is larger than every meaningful score. A larger score would make all other scores in a sum irrelevant.
const MostScore = 1e15

// Comparable reports whether a score can be compared with others, and be added to them.
func Comparable(score float64) bool { return math.Abs(score) <= MostScore }

// CheckAddress returns what is wrong with the address of a question, or "" if it is correct. The text never contains a user name or a
// password, because the owners of the pods can read it.
func CheckAddress(address string) string {
	const write = "write http://HOST/PATH or https://HOST/PATH"
	u, err := url.Parse(address)
	switch {
	case strings.Contains(address, "@") && (err != nil || u.User != nil || u.Host == ""):
		return "an address has a user before its host: leave it out, as reasons and logs show addresses, and " + write
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Fragment != "":
		return fmt.Sprintf("%q is no address: %s", address, write)
	}
	return ""
}

// OneSlash returns an address with single slashes in its path. A prefix that ends in a slash can cause double slashes.
func OneSlash(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	for strings.Contains(rest, "//") {
		rest = strings.ReplaceAll(rest, "//", "/")
	}
	return scheme + "://" + rest
}

// Ask is a question that a plan needs answered.
type Ask struct {
	URL string  `json:"url"`
	As  string  `json:"as"` // one of Forms
	Of  Subject `json:"of"`
	// Task is one of the subject's tasks, by its key; "": the subject is not a task.
	Task string `json:"task,omitempty"`
	// Nodes are the names of the nodes of the question. Earlier answers about other nodes are kept, unless All is true.
	Nodes   []string      `json:"nodes,omitempty"`
	All     bool          `json:"all,omitempty"`
	Timeout time.Duration `json:"timeout"`
}

// Forms of questions, by the verbs of Volcano's extender.
const (
	Predicate      = "predicate"
	Prioritize     = "prioritize"
	JobEnqueueable = "jobEnqueueable"
	JobReady       = "jobReady"
	QueueOverused  = "queueOverused"
)

// Forms returns the forms, and the kind of subject of each, as the name of an attribute's owner.
func Forms() map[string]string {
	return map[string]string{Predicate: "task", Prioritize: "task", JobEnqueueable: "job", JobReady: "job", QueueOverused: "queue"}
}

// FormsAbout returns the forms of questions about this kind of subject; "": all forms.
func FormsAbout(on string) (out []string) {
	for form, of := range Forms() {
		if on == "" || on == of {
			out = append(out, form)
		}
	}
	slices.Sort(out)
	return out
}
