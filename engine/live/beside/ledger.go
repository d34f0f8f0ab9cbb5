package beside

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/engine/compare"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Results of a comparison.
const (
	Alike     = "Alike"     // both decided the same
	Elsewhere = "Elsewhere" // both bound the pod, but to different nodes
	Alone     = "Alone"     // the other scheduler did it; the policy would not
	Later     = "Later"     // the other scheduler did it; the policy would have done it earlier
	NotYet    = "NotYet"    // the policy would have done it; the other scheduler has not
)

// Sides of a comparison.
const (
	other   = compare.Old
	celsius = compare.New
)

// mostKept is the number of differences that are stored with their texts. All are counted.
const mostKept = 1000

// Difference is a decision on which the two schedulers do not agree.
type Difference struct {
	Verb   string `json:"verb"` // Admit, Bind or Evict
	Kind   string `json:"kind"` // Elsewhere, Alone, Later or NotYet
	Object string `json:"object"`
	Job    string `json:"job"` // the key of its PodGroup
	Queue  string `json:"queue"`
	// At is when it was seen. For NotYet it is when the check last ran.
	At time.Time `json:"at"`
	// Since is when the policy first decided it, for Later and NotYet.
	Since time.Time `json:"since,omitzero"`
	// Other and Celsius are the decisions of each scheduler, with their reasons if known.
	Other   Side `json:"other"`
	Celsius Side `json:"celsius"`
	// Refused is why the policy refuses the node that the other scheduler chose; nil: it does not refuse it.
	Refused *model.Reason `json:"refused,omitempty"`
}

// Side is the decision of one of the two schedulers.
type Side struct {
	Node string `json:"node,omitempty"`
	Text string `json:"text,omitempty"`
	// Scores are the node's scores by row under the policy, if both nodes were feasible.
	Scores []model.RowScore `json:"scores,omitempty"`
}

// Counts contains the numbers of decisions by result.
type Counts struct {
	Queue     string `json:"queue"`
	Verb      string `json:"verb"`
	Alike     int    `json:"alike"`
	Elsewhere int    `json:"elsewhere"`
	Alone     int    `json:"alone"`
	Later     int    `json:"later"`
	NotYet    int    `json:"notYet"`
}

// All returns the number of decisions.
func (c *Counts) All() int { return c.Alike + c.Elsewhere + c.Alone + c.Later + c.NotYet }

// Agreement returns the fraction of decisions that are alike; 1 if there are none.
func (c *Counts) Agreement() float64 {
	if c.All() == 0 {
		return 1
	}
	return float64(c.Alike) / float64(c.All())
}

func (c *Counts) of(kind string) *int {
	switch kind {
	case Alike:
		return &c.Alike
	case Elsewhere:
		return &c.Elsewhere
	case Alone:
		return &c.Alone
	case Later:
		return &c.Later
	}
	return &c.NotYet
}

// ledger collects the results so far.
type ledger struct {
	tell   func(*Difference)
	counts map[Counts]*Counts // by queue and verb
	kept   []*Difference
	jobs   compare.Book
	gone   map[string]time.Time // by job: since when it no longer exists in the cluster
	closed closed
	titles explain.Titles // the titles of the known jobs
}

// closed contains jobs that were affected and are gone.
type closed struct {
	kept []compare.Difference
	more int // the number of jobs that are not stored
}

func newLedger(tell func(*Difference)) ledger {
	if tell == nil {
		tell = func(*Difference) {}
	}
	return ledger{tell: tell, counts: map[Counts]*Counts{}, gone: map[string]time.Time{}, titles: explain.Titles{}}
}

// close forgets jobs that have been gone for longer than the grace period. It stores the first of those that were affected, and none of the
// others.
func (l *ledger) close(there func(job string) bool, now time.Time, grace time.Duration) {
	for job := range l.jobs.Jobs() {
		since, gone := l.gone[job]
		switch {
		case there(job):
			delete(l.gone, job)
		case !gone:
			l.gone[job] = now
		case now.Sub(since) > grace:
			delete(l.gone, job)
			d, otherwise := l.jobs.Close(job)
			if otherwise && len(l.closed.kept) < mostKept {
				l.closed.kept = append(l.closed.kept, d)
				continue
			}
			delete(l.titles, job)
			if otherwise {
				l.closed.more++
			}
		}
	}
}

// otherwise returns the affected jobs in key order. A job that is gone comes before a later job with the same name.
func (l *ledger) otherwise() []compare.Difference {
	out := append(slices.Clone(l.closed.kept), l.jobs.Differences()...)
	slices.SortStableFunc(out, func(a, b compare.Difference) int { return strings.Compare(a.Job, b.Job) })
	return out
}

func (l *ledger) row(d *Difference) *Counts {
	key := Counts{Queue: d.Queue, Verb: d.Verb}
	if l.counts[key] == nil {
		l.counts[key] = &Counts{Queue: d.Queue, Verb: d.Verb}
	}
	return l.counts[key]
}

// add counts the result of one decision. It stores and reports a difference.
func (l *ledger) add(d *Difference) *Difference {
	*l.row(d).of(d.Kind)++
	if d.Kind != Alike {
		if len(l.kept) < mostKept {
			l.kept = append(l.kept, d)
		}
		l.tell(d)
	}
	return d
}

// became replaces a difference by another one, after the other scheduler has carried out the decision.
func (l *ledger) became(was, is *Difference) {
	*l.row(was).of(was.Kind)--
	*l.row(is).of(is.Kind)++
	*was = *is
	l.tell(was)
}

// rows returns the counts, ordered by queue and verb.
func (l *ledger) rows() []Counts {
	order := []string{Admit, Bind, Evict}
	out := make([]Counts, 0, len(l.counts))
	for _, c := range l.counts {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Counts) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), slices.Index(order, a.Verb)-slices.Index(order, b.Verb))
	})
	return out
}

// sum returns the sum of all counts.
func (l *ledger) sum() (sum Counts) {
	for _, c := range l.counts {
		for _, kind := range []string{Alike, Elsewhere, Alone, Later, NotYet} {
			*sum.of(kind) += *c.of(kind)
		}
	}
	return sum
}
