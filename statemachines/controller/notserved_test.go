package controller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// TestNotServed checks that a Job with a misspelled scheduler gets one event, after other controllers had time to write its status. No Job
// of another scheduler gets an event or a write.
func TestNotServed(t *testing.T) {
	const misspelt = `its spec.schedulerName is "volcanoo": did you mean volcano?; Celsius serves celsius and volcano`
	for name, c := range map[string]struct {
		scheduler string
		phase     batchv1alpha1.JobPhase
		options   Options
		want      string
	}{
		"misspelt":                   {scheduler: "volcanoo", want: misspelt},
		"taken by other controllers": {scheduler: "volcanoo", phase: batchv1alpha1.Pending},
		"another scheduler":          {scheduler: "kueue-runner"},
		"Volcano's, next to Volcano": {scheduler: "volcano", options: Options{SchedulerNames: []string{"volcanos"}}},
	} {
		t.Run(name, func(t *testing.T) {
			job := trainJob(t, "")
			job.Spec.SchedulerName, job.Status.State.Phase = c.scheduler, c.phase
			s := newStage(t, c.options, openQueue())
			job.CreationTimestamp = metav1.NewTime(s.now)
			s.add(job)
			s.settle()
			if s.told(notServed) {
				t.Errorf("told at once: %q", s.lines)
			}
			calls := s.calls
			for range 3 {
				s.now = s.now.Add(20 * time.Second)
				s.settle()
			}
			if s.calls != calls {
				t.Errorf("%d writes", s.calls-calls)
			}
			told := strings.Count(strings.Join(s.lines, "\n"), notServed)
			if (c.want != "") != (told == 1) || c.want != "" && !s.told(c.want) {
				t.Errorf("told %d times, want %q: %q", told, c.want, s.lines)
			}
			s.lines = nil
			s.now = s.now.Add(time.Hour)
			s.settle()
			if s.told(notServed) {
				t.Errorf("told again: %q", s.lines)
			}
			if got := s.job().Status.State.Phase; got != c.phase {
				t.Errorf("the phase became %q", got)
			}
		})
	}
}
