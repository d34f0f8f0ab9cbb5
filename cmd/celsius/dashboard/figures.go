package dashboard

import (
	"bytes"
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// figures are what the scheduler that leads counts, of which no object tells.
type figures struct {
	at     time.Time                     // zero: there are none
	due    map[string]map[string]float64 // by queue and resource
	rows   map[row]*rowFigures
	serves string // the policy that is obeyed
}

// rowFigures are those of one row.
type rowFigures struct {
	evaluations, errors, overBudget, evictions float64
	// waits is how many jobs wait for the row now; waited for how long jobs have done so, in all, since the dashboard began.
	waits  int
	waited time.Duration
	// rate is how many evaluations a second there were of late.
	rate float64
}

// read takes in a page of metrics. before are the figures of the page before it.
func read(page []byte, before *figures, now time.Time) (*figures, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		return nil, fmt.Errorf("read what the scheduler counts: %w", err)
	}
	f := &figures{at: now, due: map[string]map[string]float64{}, rows: map[row]*rowFigures{}}
	each := func(name string, do func(label func(string) string, value float64)) {
		for _, m := range families[name].GetMetric() {
			do(func(of string) string { return labelled(m, of) }, valueOf(m))
		}
	}
	each("celsius_queue_deserved", func(label func(string) string, v float64) {
		q := label("queue")
		if f.due[q] == nil {
			f.due[q] = map[string]float64{}
		}
		f.due[q][label("resource")] = v
	})
	each("celsius_policy_generation", func(label func(string) string, _ float64) { f.serves = label("policy") })
	byRow := func(name string, into func(*rowFigures, float64)) {
		each(name, func(label func(string) string, v float64) {
			into(f.row(row{label("site"), label("table"), label("rule")}), v)
		})
	}
	byRow("celsius_evaluations_total", func(r *rowFigures, v float64) { r.evaluations += v })
	byRow("celsius_rule_errors_total", func(r *rowFigures, v float64) { r.errors += v })
	byRow("celsius_rule_over_budget_total", func(r *rowFigures, v float64) { r.overBudget += v })
	// These two name no section.
	byRow("celsius_waiting_jobs", func(r *rowFigures, v float64) { r.waits += int(v) })
	each("celsius_evictions_total", func(label func(string) string, v float64) {
		if label("result") == "evicted" {
			f.row(row{"", label("table"), label("row")}).evictions += v
		}
	})
	f.since(before)
	return f, nil
}

func (f *figures) row(r row) *rowFigures {
	if f.rows[r] == nil {
		f.rows[r] = &rowFigures{}
	}
	return f.rows[r]
}

// since works out what follows from two pages.
func (f *figures) since(before *figures) {
	if before.at.IsZero() {
		return
	}
	passed := f.at.Sub(before.at)
	for r, x := range before.rows {
		if x.waited > 0 || x.waits > 0 {
			f.row(r).waited = x.waited + time.Duration(x.waits)*passed
		}
		if more := f.row(r).evaluations - x.evaluations; more > 0 && passed > 0 {
			f.row(r).rate = more / passed.Seconds()
		}
	}
}

// of is what is counted of a row. Where only the table and the name are told, several rows of different sections may share it.
func (f *figures) of(r row) rowFigures {
	var out rowFigures
	if x := f.rows[r]; x != nil {
		out = *x
	}
	if x := f.rows[row{"", r.table, r.name}]; x != nil {
		out.waits, out.waited, out.evictions = x.waits, x.waited, x.evictions
	}
	return out
}

func labelled(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func valueOf(m *dto.Metric) float64 {
	if m.Counter != nil {
		return m.GetCounter().GetValue()
	}
	return m.GetGauge().GetValue()
}
