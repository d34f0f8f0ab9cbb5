package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// shippedRow is a row of a built-in table.
type shippedRow struct{ table, site, row string }

func (r shippedRow) String() string { return r.site + " " + r.table + "/" + r.row }

// shippedRows returns every row of every built-in table.
func shippedRows(t *testing.T) []shippedRow {
	t.Helper()
	tables, issues := policy.Shipped()
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	var out []shippedRow
	for _, name := range policy.ShippedNames() {
		for _, site := range policy.Sites() {
			for _, row := range tables[name].Sections[site.Name] {
				out = append(out, shippedRow{name, site.Name, row.Name})
			}
		}
	}
	return out
}

// shippedActions returns the built-in actions by name.
func shippedActions(t *testing.T) map[string]source.Value {
	t.Helper()
	doc, issues := policy.Embedded("actions")
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	out := map[string]source.Value{}
	for _, a := range doc.Root.Get("actions").Items(&issues) {
		out[a.Get("name").String(&issues)] = a
	}
	return out
}

// TestScenarioCoverage checks that each row of each built-in table, and each built-in action, is the reason on a line that some scenario
// expects.
func TestScenarioCoverage(t *testing.T) {
	t.Parallel()
	rows, actions := map[shippedRow]bool{}, map[string]bool{}
	for _, name := range scenarioFiles(t) {
		path, data := scenarioFile(t, name)
		r, err := RunScenario(path, data, ScenarioOptions{World: withVolumes(), Compile: loadOnce})
		if err != nil {
			t.Fatal(err)
		}
		for row := range reasons(r) {
			rows[row] = true
		}
		for action := range shippedActions(t) {
			if strings.Contains(r.Output, " in "+action+": ") {
				actions[action] = true
			}
		}
	}
	for _, row := range shippedRows(t) {
		if !rows[row] {
			t.Errorf("no scenario expects a line of which %s is the reason", row)
		}
	}
	for _, action := range sortedKeys(shippedActions(t)) {
		if !actions[action] {
			t.Errorf("no scenario expects a line that gives %s as the action", action)
		}
	}
}

// reasons returns the rows that a scenario's lines name. The plans contain their sites, and a line that answers a question begins with its
// site.
func reasons(r ScenarioResult) map[shippedRow]bool {
	out := map[shippedRow]bool{}
	add := func(site, table, row string) {
		if strings.Contains(r.Output, model.RowName(table, row)) {
			out[shippedRow{table, site, row}] = true
		}
	}
	reason := func(why model.Reason) { add(why.Site, why.Table, why.Rule) }
	for _, p := range r.Plans {
		for _, a := range p.Admits {
			reason(a.Reason)
		}
		for _, b := range slices.Concat(p.Binds, p.Pipelines, p.Holds) {
			reason(b.Reason)
		}
		for i := range p.Evicts {
			e := &p.Evicts[i]
			for _, name := range e.Rows {
				table, row, _ := strings.Cut(name, "/")
				add(e.Reason.Site, table, row)
			}
			reason(e.Needed)
		}
		for _, w := range p.Waits {
			reason(w.Reason)
			for _, n := range w.Nodes {
				add(policy.Predicates, n.Table, n.Rule)
				add(policy.DevicePredicates, n.Table, n.Rule)
			}
		}
	}
	for _, line := range answers(r.Output) {
		cells := cellsOf(line)
		if cells[2] == "no opinion" {
			continue
		}
		table, row, _ := strings.Cut(cells[3], "/")
		row, _, _ = strings.Cut(row, ":")
		add(cells[0], table, row)
	}
	return out
}

// answers returns the lines that answer questions.
func answers(output string) []string {
	var out []string
	for line := range strings.Lines(output) {
		cells := cellsOf(line)
		if len(cells) == 4 && slices.ContainsFunc(policy.Sites(), func(s policy.Site) bool { return s.Name == cells[0] }) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// cellsOf splits a line of columns at its gaps.
func cellsOf(line string) []string {
	var out []string
	for cell := range strings.SplitSeq(strings.TrimSpace(line), "  ") {
		if cell = strings.TrimSpace(cell); cell != "" {
			out = append(out, cell)
		}
	}
	return out
}

// outcome returns the decisions of a scenario's plans without texts: admissions, evictions, placements, and resulting phases.
func outcome(r ScenarioResult) string {
	var out strings.Builder
	for i, p := range r.Plans {
		fmt.Fprintln(&out, "cycle", i)
		for _, a := range p.Admits {
			fmt.Fprintln(&out, "admit", a.Job)
		}
		for _, e := range p.Evicts {
			fmt.Fprintln(&out, "evict", e.Task, "for", e.For)
		}
		for j, binds := range [][]model.Bind{p.Binds, p.Pipelines, p.Holds} {
			for _, b := range binds {
				fmt.Fprintln(&out, []string{"bind", "pipeline", "hold"}[j], b.Task, explain.Place(&b))
			}
		}
		for _, s := range p.Jobs {
			fmt.Fprintln(&out, s.Job, s.Phase)
		}
	}
	return out.String()
}

// refusals returns the waits in a scenario's plans, each with the reason for its pods.
func refusals(r ScenarioResult) []string {
	var out []string
	for i, p := range r.Plans {
		for _, w := range p.Waits {
			out = append(out, fmt.Sprint(i, " ", w.Job, " ", w.Task, " ", w.Reason.Reason))
		}
	}
	return out
}
