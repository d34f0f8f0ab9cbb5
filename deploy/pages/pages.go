// Package pages has what the parts serve at /metrics after some work, so that queries can be tried on it.
//
//	a part's test, at work --Hold--> PART.prom --Of--> the test of dashboard and alerts
//
// The test of a part fails where it serves other series than its page has; UPDATE=1 writes the page anew. Only tests use this package.
package pages

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

//go:embed *.prom
var all embed.FS

// Of reads the page of a part.
func Of(part string) (map[string]*dto.MetricFamily, error) {
	text, err := all.ReadFile(part + ".prom")
	if err != nil {
		return nil, fmt.Errorf("page of the %s: %w", part, err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("page of the %s: %w", part, err)
	}
	return families, nil
}

// Hold compares what a part serves with its page, which lies in the folder given: names, types and labels must be the same, values not.
// steady puts the same word each time where one is another each time, as a port. What other
// tests of the same process leave in metrics that they share is left out.
func Hold(folder, part string, from prometheus.Gatherer, steady *strings.Replacer) error {
	families, err := from.Gather()
	if err != nil {
		return fmt.Errorf("metrics of the %s: %w", part, err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if !slices.ContainsFunc(kept(), func(prefix string) bool { return strings.HasPrefix(f.GetName(), prefix) }) {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			return fmt.Errorf("metrics of the %s: %w", part, err)
		}
	}
	page, file := steady.Replace(text.String()), filepath.Join(folder, part+".prom")
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			return fmt.Errorf("page of the %s: %w", part, err)
		}
		return nil
	}
	was, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("page of the %s: %w", part, err)
	}
	if diff := cmp.Diff(series(string(was)), series(page)); diff != "" {
		return fmt.Errorf("the %s serves other series than its page has; UPDATE=1 writes it anew (-page +served):\n%s", part, diff)
	}
	return nil
}

// kept are the openings of the metrics that pages have.
func kept() []string { return []string{"celsius_", "controller_runtime_reconcile_", "workqueue_"} }

// series are the lines of a page without their values, in order.
func series(page string) []string {
	var out []string
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "#") {
			line = line[:strings.LastIndex(line, " ")]
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}
