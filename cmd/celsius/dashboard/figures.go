package dashboard

import (
	"bytes"
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// figures are numbers from the metrics of the leading scheduler that no object contains.
type figures struct {
	at     time.Time                     // zero: no figures
	due    map[string]map[string]float64 // deserved amount by queue and resource
	rows   map[row]*rowFigures
	serves string // the served policy
}

// rowFigures are the figures of one row.
type rowFigures struct {
	evaluations, errors, overBudget, evictions float64
	// waits is how many jobs now wait because of the row. waited is the total waiting time of jobs since the dashboard started.
	waits  int
	waited time.Duration
	// rate is the recent number of evaluations per second.
	rate float64
}

// read parses a page of metrics. before are the figures of the previous page.
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
	// These two metrics have no section label.
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

// since computes the figures that need two pages.
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

// of returns the figures of a row. Metrics without a section can be shared by rows with the same table and name in several sections.
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
