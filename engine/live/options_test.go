package live

import (
	"strings"
	"testing"
)

// TestRemediesOfOptions corrects options as the messages state.
func TestRemediesOfOptions(t *testing.T) {
	for _, c := range []struct {
		o      Options
		remedy string
		fixed  []Options
	}{
		{
			Options{SchedulerNames: []string{""}},
			"give the spec.schedulerName of the pods to place",
			[]Options{{SchedulerNames: []string{"volcano"}}},
		},
		{
			Options{BindingEvents: "some"},
			"give one of " + strings.Join([]string{BindingsOfGangs, BindingsOfPods, BindingsOfNone}, ", "),
			[]Options{{BindingEvents: BindingsOfGangs}, {BindingEvents: BindingsOfPods}, {BindingEvents: BindingsOfNone}},
		},
	} {
		if _, err := c.o.complete(); err == nil || !strings.HasSuffix(err.Error(), ": "+c.remedy) {
			t.Errorf("%v, want the remedy %q", err, c.remedy)
		}
		for _, fixed := range c.fixed {
			if _, err := fixed.complete(); err != nil {
				t.Errorf("after the remedy %q: %v", c.remedy, err)
			}
		}
	}
}
