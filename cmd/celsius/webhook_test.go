package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/statemachines/controller"
	"github.com/celsius-scheduler/celsius/webhook"
)

// TestLimitsOfJobs checks that the help of webhook names every limit. The shipped limits of admission and of the controllers must be the
// same.
func TestLimitsOfJobs(t *testing.T) {
	table, issues := webhook.JobTable()
	if table == nil {
		t.Fatal(issues)
	}
	flows, issues := webhook.JobFlowTable()
	if flows == nil {
		t.Fatal(issues)
	}
	limits := table.Limits()
	maps.Copy(limits, flows.Limits())
	usage := newWebhookCommand().Flags().Lookup("limit").Usage
	for name, value := range limits {
		if !strings.Contains(usage, name) {
			t.Errorf("the help does not name the limit %s: %s", name, usage)
		}
		if name == "pods" && value != controller.DefaultMaxPods {
			t.Errorf("admission lets %d pods in, the controllers make %d", value, controller.DefaultMaxPods)
		}
		if name == "flows" && value != controller.DefaultMaxJobs {
			t.Errorf("admission lets %d flows in, the controllers make %d Jobs", value, controller.DefaultMaxJobs)
		}
	}
}
