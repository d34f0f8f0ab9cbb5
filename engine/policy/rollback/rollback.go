// Package rollback reads a policy's own conditions for its rollback after it began to serve. They state how many errors of rows it
// tolerates, and the bounds of the scheduler's metrics.
package rollback

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// Conditions are the conditions under which a policy is rolled back.
type Conditions struct {
	// Within is how long the conditions are checked after a scheduler began to serve the policy; 0: as long as it serves.
	Within time.Duration
	// RowErrors is the tolerated number of errors of rows; below 0: any number.
	RowErrors int64
	Metrics   []Metric
}

// Metric is a bound of one of the scheduler's metrics.
type Metric struct {
	Name string
	// Labels select series: the values of all series with these labels are added up.
	Labels map[string]string
	// Above and Below are the bounds that the value must not cross; nil: no bound.
	Above, Below *float64
	// Rise means that the increase counts, since the scheduler began to serve the policy.
	Rise bool
	// For is how long the value must be out of bounds.
	For time.Duration
}

// Values returns the value of a metric; false: no such series exists.
type Values func(name string, labels map[string]string) (value float64, there bool)

// Read reads a policy's conditions; nil: it has none. Mistakes are reported with their places.
func Read(v source.Value, issues *source.Issues) *Conditions {
	if !v.Exists() {
		return nil
	}
	v.Fields([]string{"within", "rowErrors", "metrics"}, issues)
	c := &Conditions{RowErrors: -1}
	if at := v.Get("within"); at.Exists() {
		if c.Within = at.Duration(issues); c.Within <= 0 {
			*issues = append(*issues, at.Issuef("write a duration, as 30m, or leave it out", "within must be more than nothing"))
		}
	}
	if at := v.Get("rowErrors"); at.Exists() {
		if c.RowErrors = at.Int(issues); c.RowErrors < 0 {
			*issues = append(*issues, at.Issuef("write 0 or more; leave it out to bear any number", "rowErrors is below 0"))
		}
	}
	if at := v.Get("metrics"); at.Exists() {
		for _, item := range at.Items(issues) {
			c.Metrics = append(c.Metrics, readMetric(item, issues))
		}
	}
	if c.RowErrors < 0 && len(c.Metrics) == 0 {
		*issues = append(*issues, v.Issuef("write rowErrors, or metrics", "rollback says nothing of when"))
	}
	return c
}

func readMetric(v source.Value, issues *source.Issues) (m Metric) {
	wrong := func(at source.Value, hint, format string, args ...any) {
		*issues = append(*issues, at.Issuef(hint, format, args...))
	}
	v.Fields([]string{"name", "labels", "above", "below", "rise", "for"}, issues)
	name := v.Get("name")
	m.Name = name.String(issues)
	if !name.Exists() || !regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`).MatchString(m.Name) {
		at := name
		if !name.Exists() {
			at = v
		}
		wrong(at, "write the name of one of the scheduler's metrics, as celsius_pending_pods", "%q is no name of a metric", m.Name)
	}
	if at := v.Get("labels"); at.Exists() {
		m.Labels = map[string]string{}
		for _, f := range at.Fields(nil, issues) {
			m.Labels[f.Name] = f.Value.String(issues)
		}
	}
	bound := func(key string) *float64 {
		at := v.Get(key)
		if !at.Exists() {
			return nil
		}
		x := at.Float(issues)
		return &x
	}
	m.Above, m.Below = bound("above"), bound("below")
	if m.Above == nil && m.Below == nil {
		wrong(v, "write above or below", "the metric has no bound")
	}
	if at := v.Get("rise"); at.Exists() {
		m.Rise = at.Bool(issues)
	}
	if at := v.Get("for"); at.Exists() {
		m.For = at.Duration(issues)
	}
	return m
}

// String returns the metric in query syntax: name{label="value"}.
func (m *Metric) String() string {
	parts := make([]string, 0, len(m.Labels))
	for _, label := range slices.Sorted(maps.Keys(m.Labels)) {
		parts = append(parts, fmt.Sprintf("%s=%q", label, m.Labels[label]))
	}
	if len(parts) == 0 {
		return m.Name
	}
	return m.Name + "{" + strings.Join(parts, ",") + "}"
}

// Watch checks whether a serving policy must be rolled back.
type Watch struct {
	of    *Conditions
	began time.Time
	base  []float64   // values of the metrics when it began; 0 if no series existed
	since []time.Time // when each metric went out of bounds; zero: it is within, or has no series
}

// Begin starts the check; nil: there is nothing to check.
func (c *Conditions) Begin(now time.Time, values Values) *Watch {
	if c == nil {
		return nil
	}
	w := &Watch{of: c, began: now, base: make([]float64, len(c.Metrics)), since: make([]time.Time, len(c.Metrics))}
	for i, m := range c.Metrics {
		if m.Rise {
			w.base[i], _ = values(m.Name, m.Labels)
		}
	}
	return w
}

// RowErrors contains the errors since a policy began to serve.
type RowErrors struct {
	Count int64
	First string // the first failed row, its object and its error
}

// Over reports whether the time of the check has passed.
func (w *Watch) Over(now time.Time) bool {
	return w != nil && w.of.Within > 0 && now.After(w.began.Add(w.of.Within))
}

// Look returns why the policy must be rolled back; "": it need not be. A metric without series is within its bounds.
func (w *Watch) Look(now time.Time, erred RowErrors, values Values) string {
	if w == nil || w.Over(now) {
		return ""
	}
	if most := w.of.RowErrors; most >= 0 && erred.Count > most {
		return fmt.Sprintf("its rows erred %d times, and spec.rollback.rowErrors is %d (%s)", erred.Count, most, erred.First)
	}
	for i := range w.of.Metrics {
		m := &w.of.Metrics[i]
		value, there := values(m.Name, m.Labels)
		value -= w.base[i]
		bound := m.beyond(value)
		if !there || bound == "" {
			w.since[i] = time.Time{}
			continue
		}
		if w.since[i].IsZero() {
			w.since[i] = now
		}
		if lasted := now.Sub(w.since[i]); lasted >= m.For {
			return m.says(value, bound, lasted)
		}
	}
	return ""
}

// beyond returns the bound that a value crosses, as text; "": none.
func (m *Metric) beyond(value float64) string {
	switch {
	case m.Above != nil && value > *m.Above:
		return "above " + number(*m.Above)
	case m.Below != nil && value < *m.Below:
		return "below " + number(*m.Below)
	}
	return ""
}

func (m *Metric) says(value float64, bound string, lasted time.Duration) string {
	text := m.String() + " is " + number(value)
	if m.Rise {
		text = m.String() + " has risen by " + number(value)
	}
	text += ", which is " + bound
	if m.For > 0 {
		text += ", for " + lasted.Round(time.Second).String()
	}
	return text
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
