package statemachines

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/celsius-scheduler/celsius/engine/sim/corpus"
)

// deliberate is one intended difference from the records.
type deliberate struct {
	Table  string   `yaml:"table"`
	IDs    []string `yaml:"ids"`
	Reason string   `yaml:"reason"`
}

// recorded opens a table of the records, with the intended differences. Without the records the test is skipped.
func recorded(t *testing.T, table string) (rows [][]byte, meant map[string]string) {
	t.Helper()
	f, err := os.Open(filepath.Join(corpus.Dir(t, "conformance"), "tables", table+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		rows = append(rows, slices.Clone(lines.Bytes()))
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/deliberate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list []deliberate
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	meant = map[string]string{}
	for _, d := range list {
		if d.Table == table {
			for _, id := range d.IDs {
				meant[id] = d.Reason
			}
		}
	}
	return rows, meant
}

// tally calls differs for every row ("" means that it agrees), and prints one line for the whole table.
func tally(t *testing.T, table string, differs func(t *testing.T, row []byte) (id, diff string)) {
	t.Helper()
	rows, meant := recorded(t, table)
	passed, deliberates := 0, 0
	for _, row := range rows {
		id, diff := differs(t, row)
		_, listed := meant[id]
		delete(meant, id)
		switch {
		case diff == "" && listed:
			t.Errorf("%s is listed as a deliberate difference, and agrees", id)
		case diff == "":
			passed++
		case listed:
			deliberates++
		default:
			t.Errorf("%s differs from the record (- recorded, + ours):\n%s\n%s", id, diff, row)
		}
	}
	if len(rows) == 0 {
		t.Errorf("%s holds no rows", table)
	}
	if deliberates*100 > len(rows) {
		t.Errorf("%d deliberate differences of %d rows are more than one in a hundred", deliberates, len(rows))
	}
	fmt.Printf("%s: %d passed, %d deliberate of %d\n", table, passed, deliberates, len(rows))
}

type gridTask struct {
	Name         string           `json:"name"`
	Replicas     int32            `json:"replicas"`
	MinAvailable *int32           `json:"minAvailable"`
	Phase        map[string]int32 `json:"phase"`
}

type gridResult struct {
	Effect, Retain, Phase string
	PhaseChanged          bool
	RetryCount            int32
}

// TestRecordedJobStates replays phase x action x counts -> effect, phase.
func TestRecordedJobStates(t *testing.T) {
	m := machine(t, "job")
	tally(t, "job-state-grid", func(t *testing.T, line []byte) (string, string) {
		var row struct {
			ID, Action, Phase      string
			MaxRetry, MinAvailable int32
			MinSuccess             *int32
			Status                 JobStatus
			Tasks                  []gridTask
			Result                 gridResult
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		j := &Job{MinAvailable: row.MinAvailable, MinSuccess: row.MinSuccess, MaxRetry: row.MaxRetry, Status: row.Status}
		for _, k := range row.Tasks {
			j.Tasks = append(j.Tasks, Task{
				Name: k.Name, Replicas: k.Replicas, MinAvailable: k.MinAvailable,
				Pending: k.Phase["Pending"], Running: k.Phase["Running"], Succeeded: k.Phase["Succeeded"], Failed: k.Phase["Failed"],
			})
		}
		s, err := m.Step(row.Phase, row.Action, Facts{Job: j})
		if err != nil {
			return row.ID, err.Error()
		}
		o, err := m.Next(s, Facts{Job: j})
		if err != nil {
			return row.ID, err.Error()
		}
		got := gridResult{recordedEffect(s.Effect), recordedRetain(s), o.Phase, o.Changed, row.Status.RetryCount +
			int32(o.Counters["retryCount"])}
		return row.ID, cmp.Diff(row.Result, got)
	})
}

// recordedEffect and recordedRetain convert our words to those of the records.
func recordedEffect(effect string) string {
	if effect == "restartPods" {
		return "killTarget"
	}
	return effect
}

func recordedRetain(s Step) string {
	switch {
	case s.Effect != "kill":
		return ""
	case s.Asked == retainFinished:
		return "succeeded+failed"
	}
	return s.Asked
}

// TestRecordedPolicies replays which action follows an event.
func TestRecordedPolicies(t *testing.T) {
	m := machine(t, "job")
	type policy struct {
		Action, Event string
		Events        []string
		ExitCode      *int32
		Timeout       string
	}
	read := func(t *testing.T, in []policy) []Policy {
		var out []Policy
		for _, p := range in {
			q := Policy{Action: p.Action, Events: p.Events, ExitCode: p.ExitCode}
			if p.Event != "" {
				q.Events = append(q.Events, p.Event)
			}
			if p.Timeout != "" {
				d, err := time.ParseDuration(p.Timeout)
				if err != nil {
					t.Fatal(err)
				}
				q.Timeout = &d
			}
			out = append(out, q)
		}
		return out
	}
	tally(t, "job-apply-policies", func(t *testing.T, line []byte) (string, string) {
		var row struct {
			ID, Action   string
			DelaySeconds float64
			Request      struct {
				JobUID, TaskName, PodName, Event, Action string
				ExitCode, JobVersion                     int32
			}
			Job struct {
				Metadata struct{ UID string }
				Spec     struct {
					Tasks []struct {
						Name     string
						Policies []policy
					}
					Policies []policy
				}
				Status struct{ Version int32 }
			}
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		p := Policies{UID: row.Job.Metadata.UID, Version: row.Job.Status.Version, Job: read(t, row.Job.Spec.Policies)}
		for _, k := range row.Job.Spec.Tasks {
			p.Tasks = append(p.Tasks, TaskPolicies{k.Name, read(t, k.Policies)})
		}
		r := Request{
			Action: row.Request.Action, Event: row.Request.Event, Task: row.Request.TaskName, Pod: row.Request.PodName,
			JobUID: row.Request.JobUID, Version: row.Request.JobVersion, HasVersion: true,
		}
		if row.Request.ExitCode != 0 {
			r.ExitCodes = []int32{row.Request.ExitCode}
		}
		d := m.Action(r, p)
		type result struct {
			Action string
			After  time.Duration
		}
		want := result{row.Action, time.Duration(row.DelaySeconds * float64(time.Second))}
		return row.ID, cmp.Diff(want, result{d.Action, d.After})
	})
}

// machine returns the built-in machine.
func machine(t testing.TB, name string) *Machine {
	t.Helper()
	m, issues := Default(name)
	if m == nil {
		t.Fatal(strings.TrimSpace(issues.Error()))
	}
	return m
}
