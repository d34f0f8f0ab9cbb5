package conformance

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// MostDeliberate is the maximum percentage of effective cases, of all and of each profile, that may differ deliberately. Cases whose
// recorded outcome is a defect do not count.
const MostDeliberate = 3

//go:embed deliberate.yaml
var deliberateFile []byte

// Deliberate is the checked-in list of intended differences.
type Deliberate struct {
	// Differences by case.
	Differences map[string]*Difference
}

// Difference is a case whose outcome here is intentionally different.
type Difference struct {
	Case string
	Mark string // where the documentation calls the recorded outcome a defect
	Why  string // what is done here instead
	// Defect is what is objectively wrong with the recorded outcome: it evicts without effect or without end, uses outdated state, or binds
	// without free resources. "": nothing.
	Defect string
	List   []string // the differences, exactly as they are found
}

// shippedDeliberate reads the built-in list.
func shippedDeliberate() (*Deliberate, error) {
	return readDeliberate("deliberate.yaml", deliberateFile)
}

// readDeliberate reads a list. The error contains all of its mistakes, each with its place.
func readDeliberate(file string, data []byte) (*Deliberate, error) {
	docs, issues := source.Parse(file, data)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		return nil, fmt.Errorf("%s: must hold one document, found %d", file, len(docs))
	}
	d := &Deliberate{Differences: map[string]*Difference{}}
	for _, f := range docs[0].Root.Fields([]string{"apiVersion", "kind", "differences"}, &issues) {
		if f.Name != "differences" {
			continue
		}
		for _, item := range f.Value.Items(&issues) {
			x := readDifference(item, &issues)
			if d.Differences[x.Case] != nil {
				issues = append(issues, item.Issuef("keep one", "case %s stands twice", x.Case))
			}
			d.Differences[x.Case] = x
		}
	}
	return d, issues.Err()
}

func readDifference(v source.Value, issues *source.Issues) *Difference {
	x := &Difference{}
	for _, f := range v.Fields([]string{"case", "mark", "why", "defect", "differences"}, issues) {
		switch f.Name {
		case "case":
			x.Case = f.Value.String(issues)
		case "mark":
			x.Mark = mark(f.Value, issues)
		case "why":
			x.Why = f.Value.String(issues)
		case "defect":
			x.Defect = f.Value.String(issues)
		case "differences":
			x.List = f.Value.Strings(issues)
		}
	}
	if x.Case == "" || x.Mark == "" || x.Why == "" || len(x.List) == 0 {
		*issues = append(*issues, v.Issuef("write case, mark, why and differences", "the entry is not complete"))
	}
	return x
}

// mark reads a citation of our documentation: the page and the heading that explain why the recorded outcome is a defect.
func mark(v source.Value, issues *source.Issues) string {
	s := v.String(issues)
	if page, heading, _ := strings.Cut(s, ".md, "); !strings.HasPrefix(page, "docs/") || heading == "" {
		*issues = append(*issues, v.Issuef("cite a page and a heading: docs/compatibility.md, Different on purpose",
			"mark %q does not say where the defect is named", s))
	}
	return s
}

// settle applies the list to the results of all cases. A listed difference passes. A listed difference that is not found, or is not exact,
// fails. It returns mistakes of the list itself: entries without a case, or for a case that was skipped. It returns nothing if the cases
// are not from the corpus of the list, such as cases that a user recorded.
func (d *Deliberate) settle(results []*Result) (stale []string) {
	replayed := map[string]bool{}
	for _, r := range results {
		if r.Skip == "" {
			replayed[r.Case.ID] = true
			d.settleOne(r)
		}
	}
	if !d.appliesTo(results) {
		return nil
	}
	for id := range d.Differences {
		if !replayed[id] {
			stale = append(stale, fmt.Sprintf("deliberate.yaml: no case %s was replayed", id))
		}
	}
	slices.Sort(stale)
	return stale
}

// appliesTo reports whether at least one case is from the corpus of the list.
func (d *Deliberate) appliesTo(results []*Result) bool {
	sources := map[string]bool{}
	for id := range d.Differences {
		sources[sourceOf(id)] = true
	}
	return slices.ContainsFunc(results, func(r *Result) bool { return sources[sourceOf(r.Case.ID)] })
}

// sourceOf returns the profile and the package of a case: its ID without the name of the test and the number. It is "" for a short ID.
func sourceOf(id string) string {
	parts := strings.Split(id, ".")
	return strings.Join(parts[:max(len(parts)-2, 0)], ".")
}

func (d *Deliberate) settleOne(r *Result) {
	x := d.Differences[r.Case.ID]
	switch {
	case x == nil:
	case slices.Equal(x.List, r.Differences):
		r.Deliberate = x
	case len(r.Differences) == 0:
		r.Differences = []string{"deliberate.yaml lists it, but it passes: remove the entry"}
	default:
		r.Differences = append(r.Differences, "deliberate.yaml lists other differences: "+strings.Join(x.List, "; "))
	}
}
