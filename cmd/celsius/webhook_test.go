package main

import (
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/statemachines/controller"
	"github.com/celsius-scheduler/celsius/webhook"
)

// TestLimitsOfJobs: the help of webhook names every limit, and admission and controllers agree on what ships.
func TestLimitsOfJobs(t *testing.T) {
	table, issues := webhook.JobTable()
	if table == nil {
		t.Fatal(issues)
	}
	usage := newWebhookCommand().Flags().Lookup("limit").Usage
	for name, value := range table.Limits() {
		if !strings.Contains(usage, name) {
			t.Errorf("the help does not name the limit %s: %s", name, usage)
		}
		if name == "pods" && value != controller.DefaultMaxPods {
			t.Errorf("admission lets %d pods in, the controllers make %d", value, controller.DefaultMaxPods)
		}
	}
}
