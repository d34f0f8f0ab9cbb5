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

// Kinds of what comes out of a comparison.
const (
	Alike     = "Alike"     // both decided the same
	Elsewhere = "Elsewhere" // both bound the pod, to other nodes
	Alone     = "Alone"     // the other did it; the policy would not have
	Later     = "Later"     // the other did it, the policy would have done so before
	NotYet    = "NotYet"    // the policy would have done it; the other has not
)

// Sides of a comparison.
const (
	other   = compare.Old
	celsius = compare.New
)

// mostKept is how many differences are kept with their words; all are counted.
const mostKept = 1000

// Difference is something on which the two do not agree.
type Difference struct {
	Verb   string `json:"verb"` // Admit, Bind or Evict
	Kind   string `json:"kind"` // Elsewhere, Alone, Later or NotYet
	Object string `json:"object"`
	Job    string `json:"job"` // the key of its PodGroup
	Queue  string `json:"queue"`
	// At is when it was seen; of what the other has not done yet, when that was looked at last.
	At time.Time `json:"at"`
	// Since is since when the policy would have had it, where it is later or not yet.
	Since time.Time `json:"since,omitzero"`
	// Other and Celsius are what each decided, and why, as far as it says so.
	Other   Side `json:"other"`
	Celsius Side `json:"celsius"`
	// Refused is why the policy refuses the node that the other took; nil: it does not.
	Refused *model.Reason `json:"refused,omitempty"`
}

// Side is what one of the two decided.
type Side struct {
	Node string `json:"node,omitempty"`
	Text string `json:"text,omitempty"`
	// Scores are those of the node by row, as the policy has them, where both nodes could be chosen.
	Scores []model.RowScore `json:"scores,omitempty"`
}

// Counts are how many decisions there were of each kind.
type Counts struct {
	Queue     string `json:"queue"`
	Verb      string `json:"verb"`
	Alike     int    `json:"alike"`
	Elsewhere int    `json:"elsewhere"`
	Alone     int    `json:"alone"`
	Later     int    `json:"later"`
	NotYet    int    `json:"notYet"`
}

// All is how many there were.
func (c *Counts) All() int { return c.Alike + c.Elsewhere + c.Alone + c.Later + c.NotYet }

// Agreement is the part of them that is alike; of none it is 1.
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

// ledger is what came out so far.
type ledger struct {
	tell   func(*Difference)
	counts map[Counts]*Counts // by queue and verb
	kept   []*Difference
	jobs   compare.Book
	gone   map[string]time.Time // since when those of jobs are that the cluster has no more
	closed closed
	titles explain.Titles // of the jobs that are known
}

// closed are jobs that fared otherwise, and are gone.
type closed struct {
	kept []compare.Difference
	more int // that are not kept
}

func newLedger(tell func(*Difference)) ledger {
	if tell == nil {
		tell = func(*Difference) {}
	}
	return ledger{tell: tell, counts: map[Counts]*Counts{}, gone: map[string]time.Time{}, titles: explain.Titles{}}
}

// close forgets the jobs that are gone for longer than the grace, so that none is kept that fared alike, and of the others the first only.
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

// otherwise are the jobs that fare otherwise, in key order: those that are gone before those of their names that came later.
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

// add counts what came out of one decision, and keeps and tells it where it is a difference.
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

// became has a difference be another: what had not been done was.
func (l *ledger) became(was, is *Difference) {
	*l.row(was).of(was.Kind)--
	*l.row(is).of(is.Kind)++
	*was = *is
	l.tell(was)
}

// rows are the counts by queue and verb, in the order of these.
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

// sum is all of them.
func (l *ledger) sum() (sum Counts) {
	for _, c := range l.counts {
		for _, kind := range []string{Alike, Elsewhere, Alone, Later, NotYet} {
			*sum.of(kind) += *c.of(kind)
		}
	}
	return sum
}
