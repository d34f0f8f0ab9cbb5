package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	policytext "github.com/celsius-scheduler/celsius/engine/policy/text"
	"github.com/celsius-scheduler/celsius/engine/proof"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Ways to change an attribute.
const (
	emptied      = "emptied"
	emptiedList  = "emptied as a list"
	emptiedTruth = "is never so"
	emptiedCount = "is 0"
	emptiedError = "errs"
	emptiedText  = "emptied as a text"
)

// change is one change of a built-in part: a row or an attribute of a table, or a step of an action.
type change struct {
	shippedRow // without table: a step of an action
	action     string
	step       int
	how        string // how the part is changed: removed, negated or emptied
}

func (c change) String() string {
	if c.table == "" {
		return fmt.Sprintf("action %s step %d %s", c.action, c.step, c.how)
	}
	return c.shippedRow.String() + " " + c.how
}

// changes returns, for each built-in part, its possible changes. At least one of them must make a difference.
func changes(t *testing.T) [][]change {
	t.Helper()
	var out [][]change
	for _, row := range shippedRows(t) {
		out = append(out, []change{{shippedRow: row, how: "removed"}, {shippedRow: row, how: "negated"}})
	}
	tables, issues := policy.Shipped()
	for _, name := range policy.ShippedNames() {
		for _, a := range tables[name].Attributes {
			out = append(out, []change{{shippedRow: shippedRow{name, "attributes", a.Name}, how: emptied}})
		}
	}
	for name, a := range shippedActions(t) {
		for i := range a.Get("steps").Items(&issues) {
			out = append(out, []change{{action: name, step: i, how: "removed"}})
		}
	}
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	slices.SortFunc(out, func(a, b []change) int { return strings.Compare(a[0].String(), b[0].String()) })
	return out
}

type object = map[string]any

// objectsIn returns the elements of a list in a decoded file.
func objectsIn(list any) []object {
	var out []object
	items, _ := list.([]any)
	for _, item := range items {
		if o, ok := item.(object); ok {
			out = append(out, o)
		}
	}
	return out
}

// elementNamed returns the element of a list with this name.
func elementNamed(list any, name string) object {
	for _, o := range objectsIn(list) {
		if o["name"] == name {
			return o
		}
	}
	return nil
}

// shippedEntries returns the names of a policy's entries that use the built-in table.
func shippedEntries(doc *source.Document, table string) []string {
	var issues source.Issues
	var out []string
	for _, tier := range itemsOf(doc.Root.Get("spec").Get("tiers"), &issues) {
		for _, e := range itemsOf(tier.Get("tables"), &issues) {
			name := e.Get("name").String(&issues)
			of := name
			if e.Get("table").Exists() {
				of = e.Get("table").String(&issues)
			}
			if of == table && !e.Get("inline").Exists() {
				out = append(out, name)
			}
		}
	}
	return out
}

func itemsOf(v source.Value, issues *source.Issues) []source.Value {
	if !v.Exists() {
		return nil
	}
	return v.Items(issues)
}

// rewrite includes the built-in parts in a policy and changes it. It returns the same text if the policy does not contain the changed part.
func (c change) rewrite(doc *source.Document) ([]byte, error) {
	text, issues := policytext.Resolve(doc, nil)
	if issues.Err() != nil {
		return nil, issues
	}
	whole := object{}
	if err := yaml.Unmarshal(text, &whole); err != nil {
		return nil, err
	}
	spec, _ := whole["spec"].(object)
	if c.table == "" {
		if a := elementNamed(spec["actions"], c.action); a != nil {
			steps, _ := a["steps"].([]any)
			a["steps"] = slices.Delete(slices.Clone(steps), c.step, c.step+1)
		}
		return yaml.Marshal(whole)
	}
	entries := shippedEntries(doc, c.table)
	for _, tier := range objectsIn(spec["tiers"]) {
		for _, e := range objectsIn(tier["tables"]) {
			name, _ := e["name"].(string)
			inline, _ := e["inline"].(object)
			if rows, ok := inline[c.site].([]any); ok && slices.Contains(entries, name) {
				inline[c.site] = c.change(rows)
			}
		}
	}
	return yaml.Marshal(whole)
}

// change returns a section without the row, or with the changed row.
func (c change) change(rows []any) []any {
	var out []any
	for _, row := range objectsIn(rows) {
		if row["name"] != c.row {
			out = append(out, row)
			continue
		}
		row = maps.Clone(row)
		switch {
		case c.how == "removed":
			continue
		case c.how == emptied:
			empty(row, "(%s).scale(0)")
		case c.how == emptiedList:
			empty(row, "(%s).filter(none, false)")
		case c.how == emptiedTruth:
			empty(row, "(%s) && false")
		case c.how == emptiedCount:
			empty(row, "(%s) * 0")
		case c.how == emptiedError:
			empty(row, "[%s][1]")
		case c.how == emptiedText:
			empty(row, "(%s).substring(0, 0)")
		case row["by"] != nil:
			descending, _ := row["descending"].(bool)
			row["descending"] = !descending
		case c.site == policy.Scores:
			row["expression"] = fmt.Sprintf("-1.0 * (%s)", row["expression"])
		case c.site == policy.VictimCost, c.site == policy.BeyondDue:
			row["expression"] = fmt.Sprintf("-(%s)", row["expression"])
		default:
			row["expression"] = fmt.Sprintf("!(%s)", row["expression"])
		}
		out = append(out, row)
	}
	return out
}

// empty changes an attribute so that it has no value: no member of a sum counts, and other attributes become nothing.
func empty(attribute object, nothing string) {
	switch {
	case attribute["sum"] != nil:
		sum := maps.Clone(attribute["sum"].(object))
		sum["when"] = "false"
		attribute["sum"] = sum
	case attribute["waterFill"] != nil, attribute["quotaTree"] != nil, attribute["hdrf"] != nil:
		for _, function := range []string{"waterFill", "quotaTree", "hdrf"} {
			if args, ok := attribute[function].(object); ok {
				args = maps.Clone(args)
				args["total"] = fmt.Sprintf("(%s).scale(0)", args["total"])
				attribute[function] = args
			}
		}
	case attribute["answer"] != nil:
		args := maps.Clone(attribute["answer"].(object))
		args["url"] = "'http://nobody'"
		attribute["answer"] = args
	case attribute["name"] == "share":
		attribute["expression"] = "0.0"
	default:
		attribute["expression"] = fmt.Sprintf(nothing, attribute["expression"])
	}
}

// compile compiles a changed policy. An attribute that cannot be emptied as an amount is a list, a bool, a number or a text. Any other
// attribute becomes an error.
func (c change) compile(doc *source.Document) (*policy.Policy, source.Issues) {
	p, issues := c.compileAsIs(doc)
	if c.how == emptied {
		for _, how := range []string{emptiedList, emptiedTruth, emptiedCount, emptiedText, emptiedError} {
			if issues.Err() != nil {
				c.how = how
				p, issues = c.compileAsIs(doc)
			}
		}
	}
	return p, issues
}

func (c change) compileAsIs(doc *source.Document) (*policy.Policy, source.Issues) {
	text, err := c.rewrite(doc)
	if err != nil {
		return nil, source.Issues{{Message: err.Error()}}
	}
	docs, issues := source.Parse("changed.yaml", text)
	if issues.Err() != nil {
		return nil, issues
	}
	return policy.Load(docs[0])
}

// run is a scenario with its decisions.
type run struct {
	name, path string
	data       []byte
	plain      ScenarioResult
	tables     map[string]bool // built-in tables that its policies name
	actions    map[string]bool
}

func runs(t *testing.T) []*run {
	t.Helper()
	var out []*run
	for _, name := range scenarioFiles(t) {
		path, data := scenarioFile(t, name)
		r := &run{name: name, path: path, data: data, tables: map[string]bool{}, actions: map[string]bool{}}
		compile := func(doc *source.Document) (*policy.Policy, source.Issues) {
			for _, table := range policy.ShippedNames() {
				if len(shippedEntries(doc, table)) > 0 {
					r.tables[table] = true
				}
			}
			p, issues := loadOnce(doc)
			if p != nil {
				for _, a := range p.Pipeline {
					r.actions[a] = true
				}
			}
			return p, issues
		}
		var err error
		if r.plain, err = RunScenario(path, data, ScenarioOptions{World: withVolumes(), Compile: compile}); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// differs reports whether the scenario has other decisions with a change. Changed answers to questions alone do not count. For the site
// beyondDue, violations of evictions count.
func (r *run) differs(c change, known map[string]compiled) (bool, error) {
	if c.table != "" && !r.tables[c.table] || c.table == "" && !r.actions[c.action] {
		return false, nil
	}
	options, wrong := ScenarioOptions{World: withVolumes()}, false
	if c.site == policy.BeyondDue {
		options.World.Decide = new(proof.Run).Checked(new(engine.Decider).Decide, func(*model.Plan, []proof.Violation) { wrong = true })
	}
	options.Compile = func(doc *source.Document) (*policy.Policy, source.Issues) {
		at := policyPlace(doc)
		if _, ok := known[at]; !ok {
			p, issues := c.compile(doc)
			known[at] = compiled{p, issues}
		}
		return known[at].policy, known[at].issues
	}
	changed, err := RunScenario(r.path, r.data, options)
	if err != nil {
		return false, fmt.Errorf("%s: %s: %w", r.name, c, err)
	}
	// an attribute may only decide whether new nodes would help, which autoscalers read
	blame := c.site == "attributes" && !slices.Equal(refusals(r.plain), refusals(changed))
	return wrong || blame || outcome(r.plain) != outcome(changed), nil
}

// TestEveryRowMatters removes or negates each row of each built-in table and each step of each built-in action, and empties each attribute.
// Some scenario must then decide differently.
func TestEveryRowMatters(t *testing.T) {
	t.Parallel()
	scenarios, known, found := runs(t), readMatters(t), map[string]string{}
	for _, variants := range changes(t) {
		what := variants[0].String()
		t.Run(what, func(t *testing.T) {
			by := known[what]
			if !by.differs(t, scenarios, variants) {
				t.Logf("%s does not decide otherwise any more; %s is read", by, mattersFile)
				if by = firstThatDiffers(t, scenarios, variants, true); by == "" {
					by = firstThatDiffers(t, scenarios, variants, false)
				}
			}
			if by == "" {
				t.Error("no scenario decides otherwise without this, nor with its negation")
			}
			found[what] = string(by)
			t.Log(by)
		})
	}
	if updating() {
		writeMatters(t, found)
	}
}

// mattersFile contains, for each change, a scenario that decides differently. These scenarios are tried first. If one no longer decides
// differently, all are tried, which takes minutes for all changes.
const mattersFile = "testdata/matters.txt"

// evidence is a variant of a change and a scenario that decides differently with it, as text; "": none.
type evidence string

func evidenceOf(c change, r *run) evidence { return evidence(c.String() + ": scenario " + r.name) }

// differs tries the variant and the scenario of the evidence.
func (e evidence) differs(t *testing.T, scenarios []*run, variants []change) bool {
	t.Helper()
	for _, c := range variants {
		for _, r := range scenarios {
			if evidenceOf(c, r) != e {
				continue
			}
			differs, err := r.differs(c, map[string]compiled{})
			if err != nil {
				t.Fatal(err)
			}
			return differs
		}
	}
	return false
}

func readMatters(t *testing.T) map[string]evidence {
	t.Helper()
	data, err := os.ReadFile(mattersFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	known := map[string]evidence{}
	for line := range strings.Lines(string(data)) {
		if what, by, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			known[what] = evidence(by)
		}
	}
	return known
}

func writeMatters(t *testing.T, found map[string]string) {
	t.Helper()
	var out strings.Builder
	for _, what := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&out, "%s\t%s\n", what, found[what])
	}
	if err := os.WriteFile(mattersFile, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// firstThatDiffers tries either the scenarios whose output names the row, or the others.
func firstThatDiffers(t *testing.T, scenarios []*run, variants []change, naming bool) evidence {
	t.Helper()
	for _, c := range variants {
		defaults := map[string]compiled{} // most scenarios have the default policy
		for _, r := range scenarios {
			if naming != (c.row != "" && strings.Contains(r.plain.Output, model.RowName(c.table, c.row))) {
				continue
			}
			differs, err := r.differs(c, defaults)
			if err != nil {
				t.Fatal(err)
			}
			if differs {
				return evidenceOf(c, r)
			}
		}
	}
	return ""
}
