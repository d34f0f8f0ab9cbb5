package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// stream returns a world in which a job is created each second and runs for a second, while other jobs wait for a larger node.
func stream(t *testing.T, coming, waiting int, decide engine.DecideFunc) *World {
	t.Helper()
	w := NewWorld(Options{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Decide: decide})
	text := "apiVersion: sim.celsius.dev/v1alpha1\nkind: World\nnodes: [{name: n, cpu: 1, memory: 8Gi}]\njobs:\n"
	for i := range coming {
		text += fmt.Sprintf("- {name: j%d, cpu: 1, run: 1s, comes: %ds}\n", i, i+1)
	}
	for i := range waiting {
		text += fmt.Sprintf("- {name: large-%d, cpu: 4}\n", i)
	}
	if _, issues := w.Load(manifest.Source{Name: "test.yaml", Data: []byte(text)}); issues.Err() != nil {
		t.Fatal(issues)
	}
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	w.Policy = p
	return w
}

// TestRecordersWriteTheSame checks that a Recorder writes what the report with all plans contains.
func TestRecordersWriteTheSame(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]RunOptions{"one cycle": {}, "three cycles": {Cycles: 3}, "by the clock": {Idle: true}} {
		whole, err := stream(t, 6, 3, nil).RunFor(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range Formats() {
			want, err := whole.Write(format)
			if err != nil {
				t.Fatal(err)
			}
			if o.Recorder, err = NewRecorder(format, nil); err != nil {
				t.Fatal(err)
			}
			r, err := stream(t, 6, 3, nil).RunFor(o)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := r.WriteRecorded(&got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) || len(want) == 0 || len(r.Plans) > 0 {
				t.Errorf("%s, %s: %d bytes, want %d", name, format, got.Len(), len(want))
			}
			before, err := whole.Explain("all")
			after, again := r.Explain("all")
			if err != nil || again != nil || before != after || r.Changes(whole) != "" {
				t.Errorf("%s, %s: %v, %v\n%s\n%s\n%s", name, format, err, again, before, after, r.Changes(whole))
			}
		}
	}
}

// elsewhere is a spool that is not in memory.
type elsewhere struct{}

func (elsewhere) Read([]byte) (int, error)       { return 0, nil }
func (elsewhere) Write(p []byte) (int, error)    { return len(p), nil }
func (elsewhere) Seek(int64, int) (int64, error) { return 0, nil }

// several records in several formats at once.
type several []Recorder

func (s several) record(r *Report, plan *model.Plan, c *cycle) error {
	var errs []error
	for _, one := range s {
		errs = append(errs, one.record(r, plan, c))
	}
	return errors.Join(errs...)
}

func (several) write(*Report, io.Writer) error { return nil }

// TestRunsDoNotGrow checks that a run by the clock does not keep the plans of its cycles in memory.
func TestRunsDoNotGrow(t *testing.T) { //nolint:paralleltest // it measures the heap
	cycles := 0
	heap := map[int]uint64{}
	decider := new(engine.Decider)
	w := stream(t, 410, 200, func(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
		if cycles++; cycles == 200 || cycles == 400 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			heap[cycles] = m.HeapAlloc
		}
		return decider.Decide(c, p, now)
	})
	all := several{Discard()}
	for _, format := range []string{"table", "json", "html"} {
		recorder, err := NewRecorder(format, elsewhere{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, recorder)
	}
	r, err := w.RunFor(RunOptions{Idle: true, Cycles: 401, Recorder: all})
	if err != nil || r.Timeline.Cycles != 401 || r.bound < 390 {
		t.Fatal(err, r.Timeline.Cycles, r.bound)
	}
	t.Logf("the heap has %d bytes after 200 cycles and %d after 400", heap[200], heap[400])
	if float64(heap[400]) > 1.5*float64(heap[200]) {
		t.Errorf("the heap has %d bytes after 200 cycles and %d after 400", heap[200], heap[400])
	}
	runtime.KeepAlive(r)
}
