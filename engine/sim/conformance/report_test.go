package conformance

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const smallList = `
differences:
- {case: c, mark: "docs/compatibility.md, Different on purpose", why: we do better., differences: ["bind p: -, Volcano n"]}
`

func named(id string, differences ...string) *Result {
	c := &Case{ID: id, Observed: Observed{Evicts: []string{"x"}}}
	c.Origin.Package = "pkg/scheduler/actions/allocate"
	return &Result{Case: c, Differences: differences}
}

func readSmall(t *testing.T) *Deliberate {
	t.Helper()
	d, err := readDeliberate("list.yaml", []byte(smallList))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSettle(t *testing.T) {
	skipped := named("c")
	skipped.Skip = "no"
	for _, test := range []struct {
		name    string
		results []*Result
		failed  []string
		stale   []string
	}{
		{"as listed", []*Result{named("a"), named("c", "bind p: -, Volcano n")}, nil, nil},
		{"it passes after all", []*Result{named("c")}, []string{"c"}, nil},
		{"another difference", []*Result{named("c", "bind p: m, Volcano n")}, []string{"c"}, nil},
		{"not listed", []*Result{named("a", "x"), named("c", "bind p: -, Volcano n")}, []string{"a"}, nil},
		{"no such case", []*Result{named("a")}, nil, []string{"deliberate.yaml: no case c was replayed"}},
		{"cases of another corpus", []*Result{named("mine.TestX.a")}, nil, nil},
		{"skipped", []*Result{skipped}, nil, []string{"deliberate.yaml: no case c was replayed"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var results []*Result
			for _, r := range test.results {
				fresh := *r
				results = append(results, &fresh)
			}
			stale := readSmall(t).settle(results)
			var failed []string
			for _, r := range results {
				if r.Failed() {
					failed = append(failed, r.Case.ID)
				}
			}
			if diff := cmp.Diff(test.failed, failed); diff != "" {
				t.Errorf("failed (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(test.stale, stale); diff != "" {
				t.Errorf("stale (-want +got)\n%s", diff)
			}
		})
	}
}

func TestReadDeliberateRefuses(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"no mark", `differences: [{case: c, why: w, differences: [x]}]`, "the entry is not complete"},
		{
			"a mark that names nothing", `differences: [{case: c, mark: because, why: w, differences: [x]}]`,
			"does not say where the defect is named",
		},
		{"twice", `differences: [{case: c, mark: "docs/compatibility.md, The same", why: w, differences: [x]}, {case: c, mark: ` +
			`"docs/compatibility.md, The same", why: w, differences: [x]}]`, "case c stands twice"},
		{"an unknown field", `diferences: []`, "differences"},
	} {
		_, err := readDeliberate("list.yaml", []byte(test.text+"\n"))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

func TestShippedDeliberateIsRead(t *testing.T) {
	d, err := shippedDeliberate()
	if err != nil {
		t.Fatal(err)
	}
	for id, x := range d.Differences {
		if x.Case != id || x.Mark == "" || x.Why == "" || len(x.List) == 0 {
			t.Errorf("%s: the entry lacks something: %+v", id, x)
		}
	}
}

func TestWrite(t *testing.T) {
	skipped, differs := named("d"), named("c", "bind p: -, Volcano n")
	skipped.Skip = "HyperNodes are not there yet"
	quiet := named("e")
	quiet.Case.Observed.Evicts, quiet.Case.Origin.Package = nil, "derived/default"
	report := &Report{Results: []*Result{named("a", "phase j: Running, Volcano Inqueue"), named("b"), differs, skipped, quiet}}
	report.Stale = readSmall(t).settle(report.Results)
	var got bytes.Buffer
	if err := report.Write(&got, true); err != nil {
		t.Fatal(err)
	}
	want := `  PASSED  DELIBERATE  FAILED  SKIPPED  OF  EFFECTIVE  PACKAGE
       1           1       1        1   4          3  actions/allocate
       1           0       0        0   1          0  derived/default
       2           1       1        1   5          3  all

  PASSED  DELIBERATE  FAILED  SKIPPED  OF  EFFECTIVE  PLUGIN

skipped:
     1  HyperNodes are not there yet

a: FAILED
b: passed
c: deliberate: docs/compatibility.md, Different on purpose
d: skipped: HyperNodes are not there yet
e: passed, nothing to see

FAILED a
    phase j: Running, Volcano Inqueue
deliberate c (docs/compatibility.md, Different on purpose)
    we do better.
    bind p: -, Volcano n
1 of 3 effective cases differ deliberately (33.3 %, at most 3 %): TOO MANY
conformance: 3 passed, 1 failed, 1 skipped of 5
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestOK(t *testing.T) {
	many := make([]*Result, 0, 34)
	for range 33 {
		many = append(many, named("a"))
	}
	deliberate := named("c", "x")
	deliberate.Deliberate = &Difference{}
	derived, defect := named("d", "x"), named("e", "x")
	derived.Case.Profile, derived.Deliberate = "small", &Difference{}
	defect.Case.Profile, defect.Deliberate = "small", &Difference{Defect: "it evicts in vain"}
	skipped := named("s")
	skipped.Skip = "no"
	for _, test := range []struct {
		name   string
		report Report
		want   bool
	}{
		{"all pass", Report{Results: many}, true},
		{"one differs deliberately, of 34", Report{Results: append(many[:33:33], deliberate)}, true},
		{"one of 33: more than 3 percent", Report{Results: append(many[:32:32], deliberate)}, false},
		{"one of 34, and of one in its profile", Report{Results: append(many[:33:33], derived)}, false},
		{"a profile where each records a defect", Report{Results: append(many[:33:33], defect)}, true},
		{"one fails", Report{Results: append(many[:33:33], named("f", "x"))}, false},
		{"the list is stale", Report{Results: many, Stale: []string{"x"}}, false},
		{"nothing was replayed", Report{Results: []*Result{skipped}}, false},
	} {
		if got := test.report.OK(); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
