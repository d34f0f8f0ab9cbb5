package openb

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A column is the mean over the arrivals that round to it, half to even, after each is rounded to two digits.
func TestCurve(t *testing.T) {
	trace := &Trace{devices: 200_000}
	pod := func(milli int64) Pod { return Pod{GPUs: 1, GPUMilli: milli} }
	pods := []Pod{{}, pod(1000), pod(1000), pod(10), pod(990)} // arrived 0, 0.5, 1, 1.005, 1.5 percent
	got := trace.curve(pods, []bool{true, true, false, true, false})
	want := map[int]float64{0: (0 + 0.5) / 2, 1: (0.5 + 0.5) / 2, 2: 0.5}
	for b, w := range want {
		if math.Abs(got[b]-w) > 1e-9 {
			t.Errorf("column %d: %v, want %v", b, got[b], w)
		}
	}
	if !math.IsNaN(got[3]) {
		t.Errorf("column 3, where nothing arrived: %v, want NaN", got[3])
	}
}

func TestCompare(t *testing.T) {
	var a, b, hole Curve
	b[7], b[9], hole[3] = 0.5, -0.02, math.NaN()
	for _, test := range []struct {
		name  string
		other Curve
		want  Difference
		large bool
	}{
		{"same", Curve{}, Difference{}, false},
		{"the largest", b, Difference{Percent: 7, Points: -0.5}, true},
		{"a column missing is never close", hole, Difference{Percent: 3, Points: math.NaN()}, true},
	} {
		got := a.Compare(test.other)
		if got.Percent != test.want.Percent || got.Beyond(Tolerance) != test.large ||
			got.Points != test.want.Points && !math.IsNaN(test.want.Points) {
			t.Errorf("%s: %+v, large %v; want %+v, %v", test.name, got, got.Beyond(Tolerance), test.want, test.large)
		}
	}
}

// flat returns a result with a curve that is y in each column.
func flat(h *Heuristic, seed int64, y float64) *Result {
	r := &Result{Heuristic: h, Workload: "default", Seed: seed, Arrived: 10, Placed: 9}
	for b := range r.Curve {
		r.Curve[b] = y
	}
	return r
}

// dented returns a result whose curve is behind 50 in one column.
func dented(r *Result, column int, points float64) *Result {
	r.Curve[column] = 50 - points
	return r
}

// somePublished returns curves of 50 and 60 for seeds 42 and 43 of policy 05-BestFit.
func somePublished(t *testing.T) *Published {
	t.Helper()
	p := &Published{path: "expected.csv", curves: map[run]Curve{}, seeds: map[run][]int64{{workload: "default", name: "05-BestFit"}: {42, 43}}}
	p.curves[run{"default", "05-BestFit", 42}] = flat(nil, 42, 50).Curve
	p.curves[run{"default", "05-BestFit", 43}] = flat(nil, 43, 60).Curve
	return p
}

func TestVerdict(t *testing.T) {
	known := &Heuristic{Name: "bestfit", Published: "05-BestFit", Compared: SameRuns}
	chance := &Heuristic{Name: "chance", Published: "05-BestFit", Compared: SameMean}
	better := &Heuristic{Name: "better", Published: "05-BestFit", Compared: Ahead}
	own := &Heuristic{Name: "own", Compared: SameRuns}
	for _, test := range []struct {
		name    string
		results []*Result
		want    string
		ok      bool
	}{
		{
			"same",
			[]*Result{flat(known, 42, 50), flat(known, 43, 60.01)},
			"2 runs, largest difference of one that must be the same 0.010 points, ok", true,
		},
		{
			"off",
			[]*Result{flat(known, 42, 50), flat(known, 43, 60.5)},
			"2 runs, largest difference of one that must be the same 0.500 points, FAILED: bestfit on default", false,
		},
		{
			"the mean is the same",
			[]*Result{flat(chance, 42, 40), flat(chance, 43, 70.7)},
			"2 runs, largest difference of one that must be the same 0.000 points, ok", true,
		},
		{
			"the mean is off",
			[]*Result{flat(chance, 42, 51), flat(chance, 43, 60)},
			"2 runs, largest difference of one that must be the same 0.000 points, FAILED: chance on default", false,
		},
		{
			"ahead",
			[]*Result{flat(better, 42, 40), flat(better, 43, 70.1)},
			"2 runs, largest difference of one that must be the same 0.000 points, ok", true,
		},
		{
			"not ahead",
			[]*Result{flat(known, 42, 50.01), flat(better, 42, 50)},
			"2 runs, largest difference of one that must be the same 0.010 points, FAILED: better on default", false,
		},
		{
			"ahead but for a column at the end",
			[]*Result{dented(flat(better, 42, 51), 110, 0.41)},
			"1 runs, largest difference of one that must be the same 0.000 points, FAILED: better on default", false,
		},
		{
			"ahead but for a little",
			[]*Result{dented(flat(better, 42, 51), 80, 0.39)},
			"1 runs, largest difference of one that must be the same 0.000 points, ok", true,
		},
		{
			"ahead but for where all is placed",
			[]*Result{dented(flat(better, 42, 51), 79, 1)},
			"1 runs, largest difference of one that must be the same 0.000 points, ok", true,
		},
		{
			"nothing to compare with",
			[]*Result{flat(own, 42, 50)},
			"1 runs, largest difference of one that must be the same 0.000 points, FAILED: own on default", false,
		},
		{"no run", nil, "0 runs, largest difference of one that must be the same 0.000 points, FAILED", false},
	} {
		s, err := Summarise(test.results, somePublished(t))
		if err != nil {
			t.Fatal(err)
		}
		if line, ok := Verdict(s); line != "openb: "+test.want || ok != test.ok {
			t.Errorf("%s: %q, %v; want %q, %v", test.name, line, ok, test.want, test.ok)
		}
	}
}

// On a workload without published runs, the runs of a policy that reproduces published runs replace them. They never replace a published
// run.
func TestStand(t *testing.T) {
	known, better := &Heuristic{Name: "bestfit", Published: "05-BestFit", Compared: SameRuns},
		&Heuristic{Name: "better", Published: "05-BestFit", Compared: Ahead}
	results := []*Result{flat(known, 42, 49), flat(better, 42, 51)}
	for _, workload := range []string{"default", "other"} {
		for _, r := range results {
			r.Workload = workload
		}
		p := somePublished(t)
		p.Stand(results)
		s, err := Summarise(results, p)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{"default": 1, "other": 2}[workload]
		if _, mean := s[1].Mean.Lead(*s[1].Published); math.Abs(mean-want) > 1e-9 {
			t.Errorf("%s: ahead by %v, want %v", workload, mean, want)
		}
	}
}

func TestSummariseNamesARunThatWasNotPublished(t *testing.T) {
	_, err := Summarise([]*Result{flat(&Heuristic{Name: "bestfit", Published: "05-BestFit"}, 99, 1)}, somePublished(t))
	want := "expected.csv: no run of workload default, policy 05-BestFit, seed 99; seeds of that policy there: [42 43]"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestWriteTable(t *testing.T) {
	known, own := &Heuristic{Name: "bestfit", Published: "05-BestFit", Compared: SameRuns}, &Heuristic{Name: "own"}
	better, chance := &Heuristic{Name: "better", Published: "05-BestFit", Compared: Ahead},
		&Heuristic{Name: "chance", Published: "05-BestFit", Compared: SameMean}
	elsewhere := flat(own, 42, 30)
	elsewhere.Workload = "other"
	s, err := Summarise([]*Result{
		flat(known, 42, 50), flat(known, 43, 61), flat(better, 42, 52.5), flat(chance, 43, 59.75), flat(own, 42, 40), elsewhere,
	}, somePublished(t))
	if err != nil {
		t.Fatal(err)
	}
	means := `WORKLOAD  POLICY   RUNS  AT 100 %  PUBLISHED  AT 130 %  PUBLISHED  OF          DIFFERENCE
default   bestfit  2     55.50     55.00      55.50     55.00      05-BestFit  any run: 1.000 points at 0 %
default   better   1     52.50     50.00      52.50     50.00      05-BestFit  from 80 %: +2.50 points, at 80 % +2.50
default   chance   1     59.75     60.00      59.75     60.00      05-BestFit  mean: 0.250 points at 0 %
default   own      1     40.00     -          40.00     -          -           -
other     own      1     30.00     -          30.00     -          -           -
`
	runs := `WORKLOAD  POLICY   SEED  PLACED  AT 100 %  AT 130 %  LARGEST DIFFERENCE
default   bestfit  42    9/10    50.00     50.00     0.000 points at 0 %
default   bestfit  43    9/10    61.00     61.00     1.000 points at 0 %
default   better   42    9/10    52.50     52.50     2.500 points at 0 %
default   chance   43    9/10    59.75     59.75     0.250 points at 0 %
default   own      42    9/10    40.00     40.00     -
other     own      42    9/10    30.00     30.00     -

`
	for each, want := range map[bool]string{false: means, true: runs + means} {
		var got bytes.Buffer
		if err := WriteTable(&got, s, somePublished(t), each); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.String()); diff != "" {
			t.Errorf("each run %v (-want +got)\n%s", each, diff)
		}
	}
}

// The output of WriteCSV has the layout of the published file, so LoadPublished can read it.
func TestCSVIsReadAsPublished(t *testing.T) {
	var out bytes.Buffer
	results := []*Result{flat(&Heuristic{Name: "a"}, 1, 12.5), flat(&Heuristic{Name: "a"}, 2, 99)}
	if err := WriteCSV(&out, results); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, publishedFile), out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := LoadPublished(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		got, err := p.Curve("default", "a", r.Seed)
		if err != nil {
			t.Fatal(err)
		}
		if d := got.Compare(r.Curve); d.Points != 0 {
			t.Errorf("seed %d: %v at %d", r.Seed, d.Points, d.Percent)
		}
	}
}

func TestSVG(t *testing.T) {
	s, err := Summarise([]*Result{flat(&Heuristic{Name: "best<fit>", Published: "05-BestFit"}, 42, 50)}, somePublished(t))
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	if err := errors.Join(WriteSVG(&first, s), WriteSVG(&second, s)); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Error("two pictures of the same curves differ")
	}
	for _, part := range []string{
		"best&lt;fit&gt;", "GPU allocation, openb trace, workload default, mean of 1 runs",
		"stroke-dasharray", "published",
	} {
		if !strings.Contains(first.String(), part) {
			t.Errorf("the picture lacks %q", part)
		}
	}
	x := xml.NewDecoder(&first)
	for {
		if _, err := x.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
	}
}

// The ledger refuses each way in which a plan could overcommit a node or a device.
func TestLedger(t *testing.T) {
	nodes := []Node{{"n", 1000, 100, 2, "T4"}}
	for _, test := range []struct {
		name    string
		pod     Pod
		devices []int
		want    string
	}{
		{"fits", Pod{CPUMilli: 1000, MemoryMiB: 100, GPUs: 2, GPUMilli: 400, Models: "P100|T4"}, []int{0, 1}, ""},
		{"cpu", Pod{CPUMilli: 1001}, nil, "1000 of 1001 thousandths of a core are free"},
		{"memory", Pod{MemoryMiB: 101}, nil, "100 of 101 MiB are free"},
		{"model", Pod{GPUs: 1, GPUMilli: 1, Models: "P100"}, []int{0}, "its GPUs are T4, not P100"},
		{"device full", Pod{GPUs: 1, GPUMilli: 500}, []int{0}, "0 of 1 devices have 500 thousandths free"},
		{"any device", Pod{GPUs: 1, GPUMilli: 500}, nil, ""},
		{"the same device twice", Pod{GPUs: 2, GPUMilli: 100}, []int{1, 1}, "1 of 2 devices have 100 thousandths free"},
		{"no such device", Pod{GPUs: 1, GPUMilli: 100}, []int{2}, "0 of 1 devices have 100 thousandths free"},
	} {
		l := newLedger(nodes)
		l.take(0, Pod{GPUs: 1, GPUMilli: 600}, []int{0})
		if got := l.misfit(0, test.pod, test.devices); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
