package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/deploy/pages"
)

// world is what a Prometheus would have, of which queries are asked at its end.
type world struct {
	t      *testing.T
	series []promql.Series
	end    time.Time
}

// step is between two samples.
const step = 30 * time.Second

// Select is all series that the matchers let pass.
func (w *world) Select(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &found{}
	for _, s := range w.series {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Metric.Get(m.Name)) }) {
			found.series = append(found.series, s)
		}
	}
	return found
}

// found is a list of series as the engine reads it.
type found struct {
	series []promql.Series
	next   int
}

func (f *found) Next() bool                      { f.next++; return f.next <= len(f.series) }
func (f *found) At() storage.Series              { return promql.NewStorageSeries(f.series[f.next-1]) }
func (*found) Err() error                        { return nil }
func (*found) Warnings() annotations.Annotations { return nil }

// ask evaluates a query some time before the end, by Prometheus' own engine.
func (w *world) ask(query string, before time.Duration) promql.Vector {
	w.t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute})
	defer func() { _ = engine.Close() }()
	from := &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: w.Select}}
	q, err := engine.NewInstantQuery(w.t.Context(), from, nil, query, w.end.Add(-before))
	if err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	defer q.Close()
	result := q.Exec(context.WithoutCancel(w.t.Context()))
	vector, err := result.Vector()
	if err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	return vector
}

// pagesAsScraped is what the parts serve after some work, as if it had been done evenly in the hour before: what counts up began at 0.
func pagesAsScraped(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, end: time.Unix(3600, 0)}
	for _, part := range []string{"scheduler", "controllers", "webhook"} {
		families, err := pages.Of(part)
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range families {
			for _, m := range f.GetMetric() {
				of := labels.NewBuilder(labels.FromStrings("job", "celsius-"+part+"-metrics", "instance", "10.0.0.1:8080", "pod", "celsius-"+part+"-0"))
				for _, l := range m.GetLabel() {
					of.Set(l.GetName(), l.GetValue())
				}
				add := func(suffix string, value float64, counts bool) {
					s := promql.Series{Metric: of.Set(model.MetricNameLabel, name+suffix).Labels()}
					for at := time.Unix(0, 0); !at.After(w.end); at = at.Add(step) {
						p := promql.FPoint{T: at.UnixMilli(), F: value}
						if counts {
							p.F = value * float64(at.Unix()) / float64(w.end.Unix())
						}
						s.Floats = append(s.Floats, p)
					}
					w.series = append(w.series, s)
				}
				samplesOf(f.GetType(), m, of, add)
			}
		}
	}
	return w
}

// samplesOf adds what a scrape has of one metric.
func samplesOf(kind dto.MetricType, m *dto.Metric, of *labels.Builder, add func(suffix string, value float64, counts bool)) {
	switch kind {
	case dto.MetricType_COUNTER:
		add("", m.GetCounter().GetValue(), true)
	case dto.MetricType_GAUGE:
		add("", m.GetGauge().GetValue(), false)
	default:
		h := m.GetHistogram()
		add("_sum", h.GetSampleSum(), true)
		add("_count", float64(h.GetSampleCount()), true)
		for _, b := range h.GetBucket() {
			of.Set(model.BucketLabel, fmt.Sprint(b.GetUpperBound()))
			add("_bucket", float64(b.GetCumulativeCount()), true)
		}
	}
}

// rules is a PrometheusRule.
type rules struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       groups            `json:"spec"`
}

// groups is a file of rules as Prometheus reads it.
type groups struct {
	Groups []struct {
		Name  string  `json:"name"`
		Rules []alert `json:"rules"`
	} `json:"groups"`
}

type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func alerts(t *testing.T) (all []alert, spec groups) {
	t.Helper()
	var r rules
	if err := yaml.UnmarshalStrict(readFile(t, "monitoring/rules.yaml"), &r); err != nil {
		t.Fatal(err)
	}
	for _, g := range r.Spec.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no alerts")
	}
	return all, r.Spec
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// panel is what of a panel of Grafana is looked at.
type panel struct {
	Title   string `json:"title"`
	Type    string `json:"type"`
	Targets []struct {
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

type dashboard struct {
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name  string          `json:"name"`
			Type  string          `json:"type"`
			Query json.RawMessage `json:"query"`
		} `json:"list"`
	} `json:"templating"`
}

func theDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal(readFile(t, "monitoring/dashboard.json"), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

var (
	legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)
	labelValues = regexp.MustCompile(`label_values\((\w+), (\w+)\)`)
	alertLabel  = regexp.MustCompile(`\$labels\.(\w+)`)
	// variables are those of Grafana, as it fills them in.
	variables = strings.NewReplacer("$__rate_interval", "5m", "$queue", ".*", "$resource", "cpu")
)

// Every query of the dashboard has a sample on the pages of the parts, with the labels that its legend shows, and nothing that it selects
// is not there.
func TestDashboardHasSamples(t *testing.T) {
	w, d := pagesAsScraped(t), theDashboard(t)
	asked := 0
	for _, p := range d.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %s asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			asked++
			query := variables.Replace(target.Expr)
			got := w.numbers(query)
			if len(got) == 0 {
				t.Errorf("panel %s has no sample of %s", p.Title, query)
				continue
			}
			for _, m := range legendLabel.FindAllStringSubmatch(target.LegendFormat, -1) {
				if got[0].Metric.Get(m[1]) == "" {
					t.Errorf("panel %s shows the label %s, and %s has %v", p.Title, m[1], query, got[0].Metric)
				}
			}
			w.selected(query)
		}
	}
	if asked == 0 {
		t.Error("the dashboard asks for nothing")
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		m := labelValues.FindStringSubmatch(string(v.Query))
		if m == nil || len(w.ask(fmt.Sprintf(`%s{%s!=""}`, m[1], m[2]), 0)) == 0 {
			t.Errorf("variable %s has no value: %s", v.Name, v.Query)
		}
	}
}

// Every alert asks for what is there: of what it compares, each side has a sample.
func TestAlertsHaveSamples(t *testing.T) {
	w := pagesAsScraped(t)
	all, _ := alerts(t)
	for _, a := range all {
		expr, err := parser.ParseExpr(a.Expr)
		if err != nil {
			t.Fatalf("%s: %v", a.Alert, err)
		}
		for _, part := range compared(expr) {
			if len(w.numbers(part.String())) == 0 {
				t.Errorf("%s has no sample of %s", a.Alert, part)
			}
		}
		w.selected(a.Expr)
	}
}

// compared is what an alert compares, or looks whether it is absent, each without that.
func compared(expr parser.Expr) []parser.Expr {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return compared(e.Expr)
	case *parser.BinaryExpr:
		if e.Op.IsComparisonOperator() {
			return compared(e.LHS)
		}
		if e.Op.IsSetOperator() {
			return append(compared(e.LHS), compared(e.RHS)...)
		}
	case *parser.Call:
		if e.Func.Name == "absent" {
			return []parser.Expr{e.Args[0]}
		}
	}
	return []parser.Expr{expr}
}

// numbers are the samples of a query that are numbers.
func (w *world) numbers(query string) promql.Vector {
	w.t.Helper()
	return slices.DeleteFunc(w.ask(query, 0), func(s promql.Sample) bool { return math.IsNaN(s.F) })
}

// selected holds each selector of a query to finding something, and each label by which it sums to being there.
func (w *world) selected(query string) {
	w.t.Helper()
	expr, err := parser.ParseExpr(query)
	if err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			for _, m := range n.LabelMatchers { // a negative one lets pass where there is no such label
				if m.Name != model.MetricNameLabel && len(w.ask(fmt.Sprintf("%s{%s!=\"\"}", n.Name, m.Name), 0)) == 0 {
					w.t.Errorf("%s: %s has no label %s", query, n.Name, m.Name)
				}
			}
			if len(w.ask(n.String(), 0)) == 0 {
				w.t.Errorf("%s: nothing is %s", query, n)
			}
		case *parser.AggregateExpr:
			of := w.ask(n.Expr.String(), 0)
			for _, label := range n.Grouping {
				if len(of) > 0 && !of[0].Metric.Has(label) {
					w.t.Errorf("%s: sums by %s, which %v has not", query, label, of[0].Metric)
				}
			}
		}
		return nil
	})
}

// healthy is a cluster in which all is well, as promtool writes series: what was at first, then what it grows by with each minute.
const healthy = `
celsius_leading{part="scheduler", pod="a"} 1+0x300
celsius_leading{part="scheduler", pod="b"} 0+0x300
celsius_leading{part="controllers", pod="c"} 1+0x300
celsius_cycles_total 0+60x300
celsius_cycle_duration_seconds_bucket{le="0.5"} 0+60x300
celsius_cycle_duration_seconds_bucket{le="16"} 0+60x300
celsius_cycle_duration_seconds_bucket{le="+Inf"} 0+60x300
celsius_rule_errors_total{site="scores", table="house", rule="by-pool"} 7+0x300
celsius_binds_total{result="bound"} 0+600x300
celsius_binds_total{result="refused"} 0+6x300
celsius_writes_waiting{class="bind"} 20+0x300
celsius_extender_requests_total{extender="e:80", form="predicate", outcome="answered"} 0+60x300
celsius_extender_requests_total{extender="e:80", form="predicate", outcome="late"} 0+1x300
workqueue_depth{job="celsius-controllers-metrics", name="job"} 12+0x300
workqueue_depth{job="other", name="job"} 5000+0x300
celsius_waiting_job_oldest_timestamp_seconds{queue="a"} 9000+0x300
celsius_waiting_jobs{queue="a", table="builtin", rule="fit"} 4+0x300
celsius_queue_share{queue="a"} 0.9+0x300
celsius_queue_share{queue="b"} 1+0x300
celsius_admission_ready{pod="d"} 1+0x300
celsius_admission_ready{pod="e"} 0+0x300
celsius_admission_failures_total{kind="Job"} 2+0x300
celsius_admission_request_seconds_bucket{path="/jobs/validate", le="0.5"} 0+60x300
celsius_admission_request_seconds_bucket{path="/jobs/validate", le="4"} 0+60x300
celsius_admission_request_seconds_bucket{path="/jobs/validate", le="+Inf"} 0+60x300
celsius_admission_request_seconds_bucket{path="/queues/validate", le="0.5"} 0+0x300
celsius_admission_request_seconds_bucket{path="/queues/validate", le="4"} 0+60x300
celsius_admission_request_seconds_bucket{path="/queues/validate", le="+Inf"} 0+60x300
celsius_admission_certificate_expiry_timestamp_seconds 7776000+0x300
`

// worldOf is five hours of series.
func worldOf(t *testing.T, text string) *world {
	t.Helper()
	w := &world{t: t, end: time.Unix(300*60, 0)}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		of, values, err := parser.ParseSeriesDesc(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		s := promql.Series{Metric: of}
		for minute, v := range values {
			s.Floats = append(s.Floats, promql.FPoint{T: int64(minute) * time.Minute.Milliseconds(), F: v.Value})
		}
		w.series = append(w.series, s)
	}
	return w
}

// otherwise is the healthy world but for one series, which is as the line says; where that has no values, it is not there.
func otherwise(t *testing.T, line string) *world {
	t.Helper()
	w, other := worldOf(t, healthy), worldOf(t, line)
	w.series = slices.DeleteFunc(w.series, func(s promql.Series) bool { return labels.Equal(s.Metric, other.series[0].Metric) })
	if len(other.series[0].Floats) > 0 {
		w.series = append(w.series, other.series...)
	}
	return w
}

// fires says with which labels an alert fires at the end: those with which it was so all the time for which it must be so.
func (w *world) fires(a alert) map[string]labels.Labels {
	w.t.Helper()
	long, err := model.ParseDuration(a.For)
	if err != nil {
		w.t.Fatalf("%s: %v", a.Alert, err)
	}
	out := map[string]labels.Labels{}
	for _, x := range w.ask(a.Expr, 0) {
		out[x.Metric.String()] = x.Metric
	}
	for before := time.Minute; before <= time.Duration(long); before += time.Minute {
		then := map[string]bool{}
		for _, x := range w.ask(a.Expr, before) {
			then[x.Metric.String()] = true
		}
		maps.DeleteFunc(out, func(key string, _ labels.Labels) bool { return !then[key] })
	}
	return out
}

// TestAlertsFire: no alert fires while all is well, and each does, alone, when what it is for happens.
func TestAlertsFire(t *testing.T) {
	all, _ := alerts(t)
	bad := map[string]string{
		"CelsiusNoLeader":           `celsius_leading{part="scheduler", pod="a"} 1+0x290 0+0x10`,
		"CelsiusNotThere":           `celsius_leading{part="controllers", pod="c"}`,
		"CelsiusCyclesSlow":         `celsius_cycle_duration_seconds_bucket{le="0.5"} 0+50x300`,
		"CelsiusCyclesStopped":      `celsius_cycles_total 0+60x280 16800+0x20`,
		"CelsiusPanics":             `celsius_panics_total{place="cycle"} 0+0x295 1+0x5`,
		"CelsiusRowsErr":            `celsius_rule_errors_total{site="scores", table="house", rule="by-pool"} 7+9x300`,
		"CelsiusPolicyNotServed":    `celsius_policy_served_instead{reason="NotCompiled"} 1+0x300`,
		"CelsiusPolicyFaulty":       `celsius_policy_served_instead{reason="RowFaulty"} 1+0x300`,
		"CelsiusBindingsFail":       `celsius_binds_total{result="refused"} 0+200x300`,
		"CelsiusWritesWait":         `celsius_writes_waiting{class="bind"} 0+10x300`,
		"CelsiusExtenderFails":      `celsius_extender_requests_total{extender="e:80", form="predicate", outcome="late"} 0+30x300`,
		"CelsiusControllersBehind":  `workqueue_depth{job="celsius-controllers-metrics", name="job"} 0+10x300`,
		"CelsiusJobWaitsLong":       `celsius_waiting_job_oldest_timestamp_seconds{queue="a"} -80000+0x300`,
		"CelsiusQueueOverDeserved":  `celsius_queue_share{queue="b"} 1.5+0x300`,
		"CelsiusWebhookNotReady":    `celsius_admission_ready{pod="d"} 1+0x290 0+0x10`,
		"CelsiusWebhookFails":       `celsius_admission_failures_total{kind="Job"} 2+1x300`,
		"CelsiusWebhookSlow":        `celsius_admission_request_seconds_bucket{path="/jobs/validate", le="0.5"} 0+30x300`,
		"CelsiusCertificateExpires": `celsius_admission_certificate_expiry_timestamp_seconds 900000+0x300`,
	}
	well := worldOf(t, healthy)
	for _, a := range all {
		if got := well.fires(a); len(got) > 0 {
			t.Errorf("%s fires though all is well: %v", a.Alert, got)
		}
		if bad[a.Alert] == "" {
			t.Errorf("nothing is said for %s to fire", a.Alert)
		}
	}
	served := pagesAsScraped(t)
	for name, what := range bad {
		w := otherwise(t, what)
		for _, made := range w.series { // is of what there is
			names := []string{}
			made.Metric.Range(func(l labels.Label) {
				if l.Name != model.MetricNameLabel {
					names = append(names, l.Name+`!=""`)
				}
			})
			query := made.Metric.Get(model.MetricNameLabel) + "{" + strings.Join(names, ",") + "}"
			if len(served.ask(query, 0)) == 0 {
				t.Fatalf("the world for %s has a series that no part serves: %s", name, made.Metric)
			}
		}
		var fired []string
		for _, a := range all {
			got := w.fires(a)
			if len(got) == 0 {
				continue
			}
			fired = append(fired, a.Alert)
			for _, m := range alertLabel.FindAllStringSubmatch(a.Annotations["summary"]+a.Annotations["description"], -1) {
				for _, l := range got {
					if !l.Has(m[1]) {
						t.Errorf("%s tells of the label %s, and has %s", a.Alert, m[1], l)
					}
				}
			}
		}
		if diff := cmp.Diff([]string{name}, fired); diff != "" {
			t.Errorf("with %s (-want to fire +do):\n%s", what, diff)
		}
	}
}

// Nothing fires of what has only just begun.
func TestAlertsArePatient(t *testing.T) {
	all, _ := alerts(t)
	w := otherwise(t, `celsius_leading{part="scheduler", pod="a"} 1+0x299 0`)
	for _, a := range all {
		if got := w.fires(a); len(got) > 0 {
			t.Errorf("%s fires at once: %v", a.Alert, got)
		}
	}
}

// TestRunbooks holds each alert to words for people, and to a section that says what to do.
func TestRunbooks(t *testing.T) {
	const page = "https://github.com/celsius-scheduler/celsius/blob/main/docs/monitoring.md#"
	doc := string(readFile(t, "../docs/monitoring.md"))
	all, _ := alerts(t)
	for _, a := range all {
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" || len(a.Annotations) != 3 || a.Labels["severity"] == "" {
			t.Errorf("%s has the annotations %v and the labels %v", a.Alert, a.Annotations, a.Labels)
		}
		if want := page + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s leads to %s, want %s", a.Alert, a.Annotations["runbook_url"], want)
		}
		_, after, ok := strings.Cut(doc, "\n### "+a.Alert+"\n")
		if section, _, _ := strings.Cut(after, "\n#"); !ok || len(strings.Fields(section)) < 20 {
			t.Errorf("docs/monitoring.md does not say what to do about %s", a.Alert)
		}
	}
}

// The file of rules that docs/monitoring.md makes for a Prometheus without the operator has the same alerts.
func TestPlainRules(t *testing.T) {
	const command = `sed '1,/^spec:/d; s/^  //' deploy/monitoring/rules.yaml`
	if !strings.Contains(string(readFile(t, "../docs/monitoring.md")), command) {
		t.Errorf("docs/monitoring.md does not have the command %s", command)
	}
	c := exec.CommandContext(t.Context(), "sh", "-c", command)
	c.Dir = ".."
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got groups
	if err := yaml.UnmarshalStrict(out, &got); err != nil {
		t.Fatal(err)
	}
	_, want := alerts(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// built is what kustomize makes of a folder, by kind.
func built(t *testing.T, folder string) map[string][][]byte {
	t.Helper()
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][][]byte{}
	for _, r := range all.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		out[r.GetKind()] = append(out[r.GetKind()], text)
	}
	return out
}

// What Grafana's sidecar and the operator look for is made by a kustomization of its own; deploy itself needs neither of them.
func TestMonitoringIsBuilt(t *testing.T) {
	all := built(t, "monitoring")
	if len(all) != 3 || len(all["PrometheusRule"]) != 1 || len(all["ServiceMonitor"]) != 1 || len(all["ConfigMap"]) != 1 {
		t.Fatalf("built is %v", all)
	}
	var config corev1.ConfigMap
	if err := yaml.UnmarshalStrict(all["ConfigMap"][0], &config); err != nil {
		t.Fatal(err)
	}
	if config.Labels["grafana_dashboard"] != "1" || !json.Valid([]byte(config.Data["celsius.json"])) || config.Namespace != "celsius-system" {
		t.Errorf("the dashboard is %s/%s %v", config.Namespace, config.Name, config.Labels)
	}
	for kind := range built(t, ".") {
		if kind == "PrometheusRule" || kind == "ServiceMonitor" {
			t.Errorf("deploy has a %s", kind)
		}
	}
}

// TestScraped: the ServiceMonitor selects the Services of the metrics of every part, and nothing else of deploy by its port.
func TestScraped(t *testing.T) {
	var monitor struct {
		Spec struct {
			Selector struct {
				MatchExpressions []struct {
					Key      string   `json:"key"`
					Operator string   `json:"operator"`
					Values   []string `json:"values"`
				} `json:"matchExpressions"`
			} `json:"selector"`
			Endpoints []struct {
				Port string `json:"port"`
			} `json:"endpoints"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(readFile(t, "monitoring/scrape.yaml"), &monitor); err != nil {
		t.Fatal(err)
	}
	selects, port := monitor.Spec.Selector.MatchExpressions[0], monitor.Spec.Endpoints[0].Port
	var scraped []string
	for _, text := range built(t, ".")["Service"] {
		var s corev1.Service
		if err := yaml.UnmarshalStrict(text, &s); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(selects.Values, s.Labels[selects.Key]) && slices.ContainsFunc(s.Spec.Ports,
			func(p corev1.ServicePort) bool { return p.Name == port }) {
			scraped = append(scraped, path.Join(s.Namespace, s.Name))
		}
	}
	slices.Sort(scraped)
	want := []string{
		"celsius-system/celsius-controllers-metrics", "celsius-system/celsius-scheduler-metrics", "celsius-system/celsius-webhook-metrics",
	}
	if diff := cmp.Diff(want, scraped); diff != "" {
		t.Errorf("-want +scraped:\n%s", diff)
	}
}
