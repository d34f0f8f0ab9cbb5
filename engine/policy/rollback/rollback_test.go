package rollback

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// read reads the field rollback of a document.
func read(t *testing.T, text string) (*Conditions, source.Issues) {
	t.Helper()
	docs, issues := source.Parse("p.yaml", []byte(text))
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	var out source.Issues
	return Read(docs[0].Root.Get("rollback"), &out), out
}

func TestRead(t *testing.T) {
	five, half := 5.0, 0.5
	got, issues := read(t, `rollback:
  within: 30m
  rowErrors: 0
  metrics:
  - {name: celsius_pending_pods, above: 5, for: 1m}
  - {name: celsius_queue_share, labels: {queue: a}, below: 0.5, rise: true}
`)
	if issues != nil {
		t.Fatal(issues.Err())
	}
	want := &Conditions{Within: 30 * time.Minute, Metrics: []Metric{
		{Name: "celsius_pending_pods", Above: &five, For: time.Minute},
		{Name: "celsius_queue_share", Labels: map[string]string{"queue": "a"}, Below: &half, Rise: true},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, issues := read(t, "other: 1"); got != nil || issues != nil {
		t.Errorf("where nothing is said: %+v, %v", got, issues)
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"rollback: {}":                                  "p.yaml:1:11: rollback: rollback says nothing of when; write rowErrors, or metrics",
		"rollback: {rowErrors: -1}":                     "rollback.rowErrors: rowErrors is below 0; write 0 or more",
		"rollback: {rowErrors: 0, within: 0s}":          "rollback.within: within must be more than nothing; write a duration",
		"rollback: {rowError: 0}":                       `rollback.rowError: unknown field "rowError"; did you mean "rowErrors"?`,
		"rollback: {metrics: [{name: a b, above: 1}]}":  `rollback.metrics[0].name: "a b" is no name of a metric`,
		"rollback: {metrics: [{above: 1}]}":             `rollback.metrics[0]: "" is no name of a metric`,
		"rollback: {metrics: [{name: a}]}":              "rollback.metrics[0]: the metric has no bound; write above or below",
		"rollback: {metrics: [{name: a, above: many}]}": "rollback.metrics[0].above",
		"rollback: {metrics: [{name: a, abov: 1}]}":     `unknown field "abov"; did you mean "above"?`,
	} {
		_, issues := read(t, text)
		if issues.Err() == nil || !strings.Contains(issues.Err().Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, issues.Err(), want)
		}
	}
}

// TestLookWithoutSeries checks that a metric without series is within its bounds. When the series returns, the time out of bounds starts
// again.
func TestLookWithoutSeries(t *testing.T) {
	said, issues := read(t, "rollback: {within: 1h, metrics: [{name: nodes, below: 5, for: 1m}]}")
	if issues != nil {
		t.Fatal(issues.Err())
	}
	there := false
	values := func(string, map[string]string) (float64, bool) {
		if !there {
			return 0, false
		}
		return 3, true
	}
	began := time.Unix(0, 0)
	w := said.Begin(began, values)
	for _, c := range []struct {
		after time.Duration
		there bool
		want  string
	}{
		{0, false, ""},
		{10 * time.Minute, false, ""},
		{11 * time.Minute, true, ""},
		{12*time.Minute - time.Second, true, ""},
		{13 * time.Minute, false, ""},
		{14 * time.Minute, true, ""},
		{15 * time.Minute, true, "nodes is 3, which is below 5, for 1m0s"},
		{2 * time.Hour, true, ""},
	} {
		there = c.there
		if got := w.Look(began.Add(c.after), RowErrors{}, values); got != c.want {
			t.Errorf("after %s: %q, want %q", c.after, got, c.want)
		}
	}
	if w.Over(began.Add(time.Hour)) || !w.Over(began.Add(time.Hour+1)) {
		t.Error("it is over after an hour")
	}
}
