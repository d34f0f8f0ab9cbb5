// Package coverage records which rows of policies were evaluated during a run, and the outcomes of their conditions.
//
//	documents --Recorder.Load--> policies whose expressions are watched --run--> Recorder.Report: rows, conditions
package coverage

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/facts"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Report lists the evaluated parts of policies. It is written as JSON.
type Report struct {
	// Percent is the fraction of points that was seen. Each row counts one point, and each of its conditions two.
	Percent float64 `json:"percent"`
	Seen    int     `json:"seen"`
	Of      int     `json:"of"`
	Rows    []Row   `json:"rows"`
}

// Row is a row of a policy, a computed field, a variable, or a step of an action.
type Row struct {
	Site  string `json:"site"`
	Table string `json:"table"` // the table of a row, or the action of a step
	Name  string `json:"name"`
	Place
	// Asked is the number of evaluations.
	Asked      int         `json:"asked"`
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition is a part of a row's expressions that is true or false.
type Condition struct {
	Text string `json:"text"`
	Place
	True  int `json:"true"`
	False int `json:"false"`
}

// Place is a position in a file.
type Place struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// String returns file:line:column.
func (p Place) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// Points returns how many of a row's points were seen, and how many it has. A row has one for its evaluation, and two for the outcomes of
// each condition.
func (r *Row) Points() (seen, of int) {
	point := func(n int) {
		of++
		if n > 0 {
			seen++
		}
	}
	point(r.Asked)
	for _, c := range r.Conditions {
		point(c.True)
		point(c.False)
	}
	return seen, of
}

// Recorder compiles policies, and records the evaluated rows. The zero value is ready for use. It is not safe for concurrent use, and
// neither are its policies.
type Recorder struct {
	loaded map[*source.Document]loaded
	rows   []*watchedRow
}

type loaded struct {
	policy *policy.Policy
	issues source.Issues
}

// watchedRow is a row with its watched expressions.
type watchedRow struct {
	Row
	watched []*eval.Watched
	of      []*eval.Expr
}

// Load compiles a policy as policy.Load does, once for each document, and watches its expressions.
func (r *Recorder) Load(doc *source.Document) (*policy.Policy, source.Issues) {
	if r.loaded == nil {
		r.loaded = map[*source.Document]loaded{}
	}
	known, ok := r.loaded[doc]
	if !ok {
		known.policy, known.issues = policy.Load(doc)
		if known.policy != nil {
			if err := r.watch(known.policy); err != nil {
				known = loaded{issues: append(known.issues, doc.Root.Issuef("", "%v", err))}
			}
		}
		r.loaded[doc] = known
	}
	return known.policy, known.issues
}

// watch watches all rows of a policy.
func (r *Recorder) watch(p *policy.Policy) error {
	for _, part := range facts.Parts(p) {
		row := &watchedRow{Row: Row{Site: part.Site, Table: part.Table, Name: part.Name}, of: part.Expressions}
		for _, e := range part.Expressions {
			w, err := e.Watch()
			if err != nil {
				return fmt.Errorf("%s/%s: %w", part.Table, part.Name, err)
			}
			row.watched = append(row.watched, w)
		}
		r.rows = append(r.rows, row)
	}
	return nil
}

// Report returns all rows whose place is wanted, ordered by place. A row that was compiled more than once is listed once.
func (r *Recorder) Report(wanted func(Place) bool) *Report {
	out := &Report{Percent: 100, Rows: []Row{}}
	at := map[string]int{}
	for _, x := range r.rows {
		row := x.told()
		key := fmt.Sprint(row.Place, row.Site, row.Table, row.Name)
		if i, again := at[key]; again {
			out.Rows[i].add(row)
		} else if wanted(row.Place) {
			at[key] = len(out.Rows)
			out.Rows = append(out.Rows, row)
		}
	}
	slices.SortStableFunc(out.Rows, func(a, b Row) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	for i := range out.Rows {
		seen, of := out.Rows[i].Points()
		out.Seen, out.Of = out.Seen+seen, out.Of+of
	}
	if out.Of > 0 {
		out.Percent = math.Floor(1000*float64(out.Seen)/float64(out.Of)) / 10
	}
	return out
}

// told returns the row with its current counts.
func (x *watchedRow) told() Row {
	row := x.Row
	row.Place = placeIn(x.of[max(slices.IndexFunc(x.of, func(e *eval.Expr) bool { return !e.Text.Joined() }), 0)], 0)
	for i, w := range x.watched {
		row.Asked = max(row.Asked, w.Asked) // expressions behind a guard are evaluated less often
		for _, c := range w.Conditions {
			row.Conditions = append(row.Conditions, Condition{Text: c.Text, Place: placeIn(x.of[i], c.At), True: c.True, False: c.False})
		}
	}
	return row
}

// add adds the counts of the same row.
func (r *Row) add(other Row) {
	r.Asked += other.Asked
	for i, c := range other.Conditions {
		r.Conditions[i].True += c.True
		r.Conditions[i].False += c.False
	}
}

// placeIn returns the position of a part of an expression.
func placeIn(e *eval.Expr, offset int) Place {
	i := e.Text.Issue(offset, 1, "", "")
	return Place{i.File, i.Line, i.Column}
}
