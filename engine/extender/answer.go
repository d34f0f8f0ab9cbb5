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

// The kind of an answer as an object in files, and its version.
const (
	Kind    = "ExtenderAnswer"
	Version = "sim.celsius.dev/v1alpha1"
)

// Answer is what was said of one subject at one address.
type Answer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// URL is the address that was asked.
	URL string `json:"url"`
	// As is the form of the question, which of Forms; "": it is an answer to each.
	As string `json:"as,omitempty"`
	// Of is what was asked about.
	Of Subject `json:"of"`
	// At is when it was asked; where nodes were asked about at several moments, the first of these.
	At metav1.Time `json:"at,omitzero"`
	// Error is why it could not be asked; "": it was.
	Error string `json:"error,omitempty"`
	// Says is the word that was said of the subject as a whole; "" where it was asked about nodes.
	Says string `json:"says,omitempty"`
	// Nodes are what was said of nodes.
	Nodes []NodeAnswer `json:"nodes,omitempty"`
}

// NodeAnswer is what was said of a subject and a node.
type NodeAnswer struct {
	Name string `json:"name"`
	// Version is that of the node's object as it was sent; "" where nobody says so.
	Version string `json:"version,omitempty"`
	// Error is why it could not be asked; "": it was.
	Error string `json:"error,omitempty"`
	// Refused is why the node is refused; "": it is not.
	Refused string  `json:"refused,omitempty"`
	Score   float64 `json:"score,omitempty"`
}

// Subject is what is asked about.
type Subject struct {
	// Kind is Task, Job or Queue.
	Kind string `json:"kind"`
	// Job is namespace/name of a PodGroup, and Queue the name of a queue.
	Job   string `json:"job,omitempty"`
	Queue string `json:"queue,omitempty"`
	// Role is that of the tasks. Without it, it is about all of the job.
	Role string `json:"role,omitempty"`
	// Like tells tasks of one role apart that ask for something else; "": it is about all of the role.
	Like string `json:"like,omitempty"`
}

// The kinds of subject.
const (
	Task  = "Task"
	Job   = "Job"
	Queue = "Queue"
)

// The words of which an answer is one: a vote, or yes or no; of a node it is allow or refuse, and failed where it could not be asked.
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

// String names a subject.
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

// Wider are the subjects of which answers count for this one as well, itself first.
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

// Mistake is something that is wrong in an answer.
type Mistake struct{ Field, Text string }

// mistakes collects what is wrong.
type mistakes []Mistake

func (m *mistakes) add(field, format string, args ...any) {
	*m = append(*m, Mistake{field, fmt.Sprintf(format, args...)})
}

// Mistakes are what is wrong with it.
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

// MostScore is beyond every score that can be meant: what is larger would drown all that it is added to.
const MostScore = 1e15

// Comparable says whether a score can be compared with others, and be added to them.
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

// OneSlash is an address with single slashes in its path, as after a prefix that ends in one.
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

// Ask is a question that a plan would have answered.
type Ask struct {
	URL string  `json:"url"`
	As  string  `json:"as"` // which of Forms
	Of  Subject `json:"of"`
	// Task is one of those that are asked about, by its key; "": the subject is no tasks.
	Task string `json:"task,omitempty"`
	// Nodes are those that are asked about, by name; of others what was said is kept, unless all are asked about.
	Nodes   []string      `json:"nodes,omitempty"`
	All     bool          `json:"all,omitempty"`
	Timeout time.Duration `json:"timeout"`
}

// The forms of questions, by the verbs of Volcano's extender.
const (
	Predicate      = "predicate"
	Prioritize     = "prioritize"
	JobEnqueueable = "jobEnqueueable"
	JobReady       = "jobReady"
	QueueOverused  = "queueOverused"
)

// Forms are the words of the forms, with what each is asked about, by the word of an attribute's owner.
func Forms() map[string]string {
	return map[string]string{Predicate: "task", Prioritize: "task", JobEnqueueable: "job", JobReady: "job", QueueOverused: "queue"}
}

// FormsAbout are the words of the forms of questions about owners of a word; "" of all.
func FormsAbout(on string) (out []string) {
	for form, of := range Forms() {
		if on == "" || on == of {
			out = append(out, form)
		}
	}
	slices.Sort(out)
	return out
}
