package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// managed returns an entry of managedFields in the form that the API server writes.
func managed(manager, operation, fields string) string {
	return `{"manager":"` + manager + `","operation":"` + operation + `","apiVersion":"scheduling.celsius.dev/v1alpha1",` +
		`"fieldsType":"FieldsV1",` +
		`"time":"2026-11-26T12:00:00Z","fieldsV1":{"f:spec":` + fields + `}}`
}

// TestCombined sends server-side applies to policies that another field manager wrote. The API server merges them before it calls
// admission.
func TestCombined(t *testing.T) {
	const (
		house = `"f:tiers":{"k:{\"name\":\"house\"}":{".":{},"f:name":{},"f:tables":{"k:{\"name\":\"gang\"}":{".":{},"f:name":{}},` +
			`"k:{\"name\":\"overcommit\"}":{".":{},"f:name":{},"f:params":{"f:factor":{}}}}}}`
		overcommitOnly = `"f:tiers":{"k:{\"name\":\"house\"}":{".":{},"f:name":{},` +
			`"f:tables":{"k:{\"name\":\"overcommit\"}":{".":{},"f:name":{}}}}}`
		gangOnly  = `"f:tiers":{"k:{\"name\":\"house\"}":{".":{},"f:name":{},"f:tables":{"k:{\"name\":\"gang\"}":{".":{},"f:name":{}}}}}`
		otherTier = `"f:tiers":{"k:{\"name\":\"research\"}":{".":{},"f:name":{},"f:tables":{"k:{\"name\":\"drf\"}":{".":{},"f:name":{}}}}}`
		pipeline  = `"f:pipeline":{},`

		spec = `{"mode":"Active","pipeline":["enqueue","allocate"],"tiers":[{"name":"house","tables":[{"name":"gang"},` +
			`{"name":"overcommit","params":{"factor":1.5}}]}]}`
		withTier = `{"mode":"Active","pipeline":["enqueue","allocate"],"tiers":[{"name":"house","tables":[{"name":"gang"},` +
			`{"name":"overcommit","params":{"factor":1.5}}]},{"name":"research","tables":[{"name":"drf"}]}]}`
	)
	first := managed("kubectl-client-side-apply", "Update", `{`+pipeline+house+`}`)
	for _, c := range []struct {
		name, options, spec string
		before, after       string // entries in addition to that of the first author
		want                string // the field and its author; "": the change is allowed
	}{
		{"a tier is added to those of another", "argocd", withTier, "", managed("argocd", "Apply", `{`+pipeline+otherTier+`}`), "spec.tiers[0]"},
		{"a table of another stays", "argocd", spec, "", managed("argocd", "Apply", `{`+pipeline+gangOnly+`}`), "spec.tiers[0].tables[1]"},
		{
			"a setting of another stays", "argocd", spec, "",
			managed("argocd", "Apply", `{`+pipeline+strings.Replace(house, `,"f:params":{"f:factor":{}}`, "", 1)+`}`),
			"spec.tiers[0].tables[1].params",
		},
		{"two tables, of two authors", "argocd", spec, "", managed("argocd", "Apply", `{`+overcommitOnly+`}`), "spec.tiers[0].tables[0]"},
		{"all of it is applied", "argocd", spec, "", managed("argocd", "Apply", `{"f:mode":{},`+pipeline+house+`}`), ""},
		{"the mode alone is applied", "celsius-pause", spec, "", managed("celsius-pause", "Apply", `{"f:mode":{}}`), ""},
		{"another kind of patch", "kubectl-edit", withTier, "", managed("kubectl-edit", "Update", `{`+otherTier+`}`), ""},
		{
			"it has what it had", "argocd", withTier, managed("argocd", "Apply", `{`+pipeline+otherTier+`}`),
			managed("argocd", "Apply", `{`+pipeline+otherTier+`}`), "",
		},
		{
			"an update takes over what was applied", "house-operator", withTier, managed("house-operator", "Apply", `{`+house+`}`),
			managed("house-operator", "Apply", `{`+gangOnly+`}`) + "," + managed("house-operator", "Update", `{`+otherTier+`}`), "",
		},
		{"an update", "", withTier, "", managed("kubectl-replace", "Update", `{`+otherTier+`}`), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			object := func(spec string, entries ...string) runtime.RawExtension {
				var all []string
				for _, e := range entries {
					if e != "" {
						all = append(all, e)
					}
				}
				text := `{"apiVersion":"scheduling.celsius.dev/v1alpha1","kind":"SchedulingPolicy","metadata":{"name":"default","managedFields":[` +
					strings.Join(all, ",") + `]},"spec":` + spec + `}`
				if !json.Valid([]byte(text)) {
					t.Fatalf("not JSON: %s", text)
				}
				return runtime.RawExtension{Raw: []byte(text)}
			}
			options := `{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}`
			if c.options != "" {
				options = `{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"` + c.options + `","fieldValidation":"Strict"}`
			}
			got := newPolicyHandler().Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, Name: "default", Options: runtime.RawExtension{Raw: []byte(options)},
				OldObject: object(spec, first, c.before), Object: object(c.spec, first, c.after),
			}})
			if c.want == "" {
				if !got.Allowed {
					t.Errorf("it is refused: %+v", got.Result)
				}
				return
			}
			if got.Allowed || len(got.Result.Details.Causes) != 1 || got.Result.Details.Causes[0].Field != c.want {
				t.Fatalf("want %s: %+v", c.want, got)
			}
			for _, text := range []string{
				"only field manager kubectl-client-side-apply", "server-side apply of " + c.options, "kubectl replace -f FILE",
			} {
				if !strings.Contains(got.Result.Message, text) {
					t.Errorf("%q lacks %q", got.Result.Message, text)
				}
			}
		})
	}
}
