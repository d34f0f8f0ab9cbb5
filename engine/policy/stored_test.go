package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoadStored(t *testing.T) {
	const head = `{"apiVersion":"scheduling.celsius.dev/v1alpha1","kind":"SchedulingPolicy","metadata":` +
		`{"name":"p","generation":4,"managedFields":[{"fieldsV1":{"f:spec":{}}}]},`
	for _, c := range []struct {
		name, data string
		want       []string
	}{
		{"right", head + `"spec":{"pipeline":["allocate"],"tiers":[]},"status":{"ruleCount":3}}`, nil},
		{
			"an expression of two lines",
			head + `"spec":{"pipeline":["allocate"],"tiers":[{"name":"t","tables":[{"name":"own","inline":{` +
				`"predicates":[{"name":"p","expression":"node.ready &&\n  node.taskCont < 3"}]}}]}]}}`,
			[]string{`line 2:8: spec.tiers[0].tables[0].inline.predicates[0].expression: Node has no field "taskCont"; did you mean "taskCount"?`},
		},
		{
			"a misspelt key", head + `"spec":{"pipline":["allocate"],"tiers":[]}}`,
			[]string{`spec: pipeline is missing; add pipeline`, `spec.pipline: unknown field "pipline"; did you mean "pipeline"?`},
		},
		{"nothing", ``, []string{`the object is not JSON: EOF`}},
	} {
		p, issues := LoadStored([]byte(c.data))
		var got []string
		for _, i := range issues {
			got = append(got, i.Error())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if (p == nil) != (len(c.want) > 0) {
			t.Errorf("%s: policy %v", c.name, p)
		}
		if p != nil && p.Generation != 4 {
			t.Errorf("%s: generation %d", c.name, p.Generation)
		}
	}
}

// FuzzLoadStored checks that no object makes the compiler panic, and that places of issues are inside their text.
func FuzzLoadStored(f *testing.F) {
	f.Add(`{"apiVersion":"scheduling.celsius.dev/v1alpha1","kind":"SchedulingPolicy","metadata":{"name":"p"},` +
		`"spec":{"pipeline":["allocate"],"tiers":[{"name":"t","tables":[` +
		`{"name":"own","inline":{"scores":[{"name":"p","expression":"é\n+ x","weight":"1/0"}]}}]}]}}`)
	f.Add(`{"spec":{"tiers":{"a":[null,1e999,"\u0085\u2028"]}}}`)
	f.Fuzz(func(t *testing.T, data string) {
		p, issues := LoadStored([]byte(data))
		if p == nil && issues.Err() == nil {
			t.Error("neither a policy nor a mistake")
		}
		for _, i := range issues {
			if i.Line > 0 && (i.Column > len([]rune(i.Source))+1 || strings.Contains(i.Source, "\n")) {
				t.Errorf("place outside of its line: %+v", i)
			}
			if strings.HasPrefix(i.Message, "the compiler failed") {
				t.Error(i)
			}
		}
	})
}
