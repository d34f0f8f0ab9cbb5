package statemachines

import (
	"math/rand/v2"
	"testing"
)

// TestConverges draws 10,000 objects for each built-in machine, with pods, PodGroups and Jobs in every phase and with counts that no
// controller can produce. While nothing changes, the plain action changes the phase at most as often as there are phases.
func TestConverges(t *testing.T) {
	const objects = 10_000
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := machine(t, name)
			r := rand.New(rand.NewPCG(1, 2))
			for range objects {
				f := randomFacts(r)
				phase := m.Phases()[r.IntN(len(m.Phases()))]
				first, changes := phase, 0
				for range 2 * len(m.Phases()) {
					s, err := m.Step(phase, m.Otherwise(), f)
					if err != nil {
						t.Fatal(err)
					}
					o, err := m.Next(s, f)
					if err != nil {
						t.Fatal(err)
					}
					if o.Changed {
						changes++
					}
					phase = o.Phase
					follow(f, o)
				}
				if changes > len(m.Phases()) {
					t.Fatalf("from %s the phase changed %d times:\njob %+v\nqueue %+v of %+v\nflow %+v\ncron job %+v", first, changes, *f.Job, *f.Queue,
						*f.Parent, *f.Flow, *f.CronJob)
				}
			}
		})
	}
}

// follow applies the counters and fields of an outcome.
func follow(f Facts, o Outcome) {
	f.Job.Status.RetryCount += int32(o.Counters["retryCount"])
	if parent, ok := o.Set[SetParent]; ok {
		f.Queue.Parent = parent
	}
	if closed, ok := o.Set[SetClosedByParent]; ok {
		f.Queue.ClosedByParent = closed == "true"
	}
}

func randomFacts(r *rand.Rand) Facts {
	few := func() int32 { return int32(r.IntN(5)) }
	maybe := func() *int32 {
		if r.IntN(2) == 0 {
			return nil
		}
		return new(few())
	}
	j := &Job{MinAvailable: few(), MinSuccess: maybe(), MaxRetry: few()}
	for range r.IntN(3) {
		k := Task{Replicas: few(), MinAvailable: maybe(), Pending: few(), Running: few(), Succeeded: few(), Failed: few(), Terminating: few()}
		j.Status.Pending += k.Pending
		j.Status.Running += k.Running
		j.Status.Succeeded += k.Succeeded
		j.Status.Failed += k.Failed
		j.Status.Terminating += k.Terminating
		j.Tasks = append(j.Tasks, k)
	}
	j.Status.Unknown, j.Status.MinAvailable, j.Status.RetryCount = few(), few(), few()
	state := func() string { return []string{"", "Open", "Closing", "Closed", "Unknown"}[r.IntN(5)] }
	return Facts{
		Job: j,
		Queue: &Queue{
			Name: []string{"root", "q"}[r.IntN(2)], Parent: []string{"", "root"}[r.IntN(2)], State: state(), ClosedByParent: r.IntN(2) == 0,
			Pending: few(), Running: few() / 2,
		},
		Parent:  &Queue{Name: "root", State: state()},
		Flow:    &Flow{Flows: few(), Pending: few(), Running: few(), Completed: few(), Failed: few() / 2, Terminated: few() / 2},
		CronJob: &CronJob{Active: few(), Suspend: r.IntN(2) == 0, ConcurrencyPolicy: "Allow"},
	}
}
