package bench

import "testing"

func TestRequestsEach(t *testing.T) {
	before := requests{"post pods": 10, "list pods": 3}
	now := requests{"post pods": 2010, "list pods": 3, "get nodes": 1}
	if got, want := now.since(before).each(2000), "post pods 1.000, others 1 in all"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRequestsThatWrite(t *testing.T) {
	r := requests{
		"post pods/binding": 1, "apply podgroups": 2, "post events": 4, "patch jobs/status": 8, // these count
		"get pods": 16, "list jobs": 32, "update leases": 64, "post namespaces": 128, "patch nodes/status": 256,
	}
	if got, want := r.writes(), 15.0; got != want {
		t.Errorf("got %g, want %g", got, want)
	}
	if got, want := r.sum(), 511.0; got != want {
		t.Errorf("in all: got %g, want %g", got, want)
	}
}

func TestWithoutLeases(t *testing.T) {
	others, leases := withoutLeases(requests{"get leases": 3, "update leases": 4, "post events": 1})
	if got, want := others.all(), "post events 1"; got != want || leases != 7 {
		t.Errorf("got %s, and %g about leases", got, leases)
	}
	if got, want := (requests{}).all(), "none"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
