package verdict

import (
	"math"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// question is one row of the policy, evaluated for some nodes together, and the place for its results.
type question struct {
	row      *Row
	rows     []int32
	opinions *rowResults[language.Opinion]
	values   *rowResults[float64]
}

// tally counts the evaluations for several nodes, but drops those of dropped nodes.
func (p *pipeline) tally() {
	for i := range p.questions {
		q := &p.questions[i]
		asked := len(q.rows)
		if len(p.dropped) > 0 {
			for _, row := range q.rows {
				if p.isDropped(row) {
					asked--
					q.forget(&p.c.v.Alike, row)
				}
			}
		}
		p.c.v.ask.AskedTogether(q.row.Rule, asked)
	}
}

func (q *question) forget(a *Alike, row int32) {
	if q.opinions != nil {
		q.opinions.forget(a, q.row, row)
	}
	if q.values != nil {
		q.values.forget(a, q.row, row)
	}
}

// missing returns the nodes for which the result of a row is unknown. first are those to evaluate, and others are nodes that equal one of
// these. Both are valid until the next question.
func missing[T language.Opinion | float64](p *pipeline, r *Row, kept *rowResults[T], rows []int32) (first, others []int32) {
	a, versions := &p.c.v.Alike, p.c.v.versionsOf(r)
	p.others = p.others[:0]
	if r.Amounts {
		a.begin()
	}
	from := len(p.arena)
	for _, row := range rows {
		switch at := versions[row] + 1; {
		case p.isDropped(row) || kept.at[row] == at || kept.recall(a, r, row, at):
		case r.Amounts && !a.representative(row):
			p.others = append(p.others, row)
		default:
			p.arena = append(p.arena, row)
		}
	}
	return p.arena[from:len(p.arena):len(p.arena)], p.others
}

// adopt copies the results of nodes to their equals. If the row failed, it is evaluated for each of them.
func adopt[T language.Opinion | float64](p *pipeline, r *Row, kept *rowResults[T], others []int32) {
	versions := p.c.v.versionsOf(r)
	for _, row := range others {
		if !kept.recall(&p.c.v.Alike, r, row, versions[row]+1) {
			p.drop(row)
		}
	}
}

// predicate evaluates one predicate, and reports whether it rejects any node.
func (p *pipeline) predicate(k int, rows []int32) (rejects bool) {
	r := p.c.v.Plan.predicates[k]
	if p.alone {
		if p.c.Rows.opinion(p.f, k, rows[0]) != language.No {
			return false
		}
		p.c.Cells[rows[0]].Verdict = int16(r.Number)
		return true
	}
	return p.predicateOfMany(k, r, rows)
}

func (p *pipeline) predicateOfMany(k int, r *Row, rows []int32) (rejects bool) {
	cells, kept, ask := p.c.Cells, p.c.Rows.opinions[k], p.c.v.ask
	no := func(row int32) { cells[row].Verdict, rejects = int16(r.Number), true }
	unknown, others := rows, []int32(nil)
	if kept != nil {
		unknown, others = missing(p, r, kept, rows)
	}
	asked := p.guarded(question{row: r, rows: unknown, opinions: kept}, p.c.Rows.guards[k])
	p.bools = slab.Resized(p.bools, len(asked))
	p.drop(ask.HoldsEach(&r.Query, p.f, asked, p.bools)...)
	versions := p.c.v.versionsOf(r)
	for i, row := range asked {
		if p.isDropped(row) {
			continue
		}
		x := language.Yes
		if !p.bools[i] {
			x = language.No
			no(row)
		}
		if kept != nil {
			kept.learn(&p.c.v.Alike, r, row, x, versions[row]+1)
		}
	}
	if kept == nil {
		return rejects
	}
	adopt(p, r, kept, others)
	for _, row := range rows {
		if !p.isDropped(row) && kept.what[row] == language.No {
			no(row)
		}
	}
	return rejects
}

// guarded returns the nodes of a question for which its row's guard is true. All of them count as evaluated.
func (p *pipeline) guarded(q question, known guard) []int32 {
	r := q.row
	if len(q.rows) == 0 {
		return nil
	}
	p.questions = append(p.questions, q)
	if known == holds || r.When == nil {
		return q.rows
	}
	p.bools = slab.Resized(p.bools, len(q.rows))
	p.drop(p.c.v.ask.HoldsEach(&r.Guard, p.f, q.rows, p.bools)...)
	versions, from := p.c.v.versionsOf(r), len(p.arena)
	for i, row := range q.rows {
		switch {
		case p.isDropped(row):
		case p.bools[i]:
			p.arena = append(p.arena, row)
		case q.opinions != nil:
			q.opinions.learn(&p.c.v.Alike, r, row, language.Abstain, versions[row]+1)
		}
	}
	return p.arena[from:len(p.arena):len(p.arena)]
}

// scoreBy evaluates one row of scores.
func (p *pipeline) scoreBy(k int, rows []int32) {
	if len(rows) == 0 {
		return
	}
	if p.alone {
		p.c.Rows.value(p.f, k, rows[0])
		return
	}
	p.scoreManyBy(k, rows)
	if p.c.v.Plan.Scores[k].Normalises() {
		for _, row := range rows {
			if !p.isDropped(row) {
				p.c.Rows.note(k, row)
			}
		}
	}
}

// scoreManyBy evaluates one row of scores for the nodes without a result.
func (p *pipeline) scoreManyBy(k int, rows []int32) {
	r, kept, raw := p.c.v.Plan.Scores[k], p.c.Rows.values[k], p.c.Rows.Raw[k]
	others := []int32(nil)
	if kept != nil {
		rows, others = missing(p, r, kept, rows)
	}
	if len(rows) == 0 {
		return
	}
	for _, row := range rows {
		raw[row] = math.NaN()
	}
	asked := p.guarded(question{row: r, rows: rows, values: kept}, p.c.Rows.scoreGuard(k, r, p.f))
	p.numbers = slab.Resized(p.numbers, len(asked))
	p.drop(p.c.v.ask.NumberEach(&r.Query, p.f, asked, p.numbers)...)
	for i, row := range asked {
		x := p.numbers[i]
		if !policy.IsScore(x) {
			p.drop(row) // evaluated again separately, for the error
		}
		raw[row] = x
	}
	if kept == nil {
		return
	}
	versions := p.c.v.versionsOf(r)
	for _, row := range rows {
		if !p.isDropped(row) {
			kept.learn(&p.c.v.Alike, r, row, raw[row], versions[row]+1)
		}
	}
	adopt(p, r, kept, others)
}
