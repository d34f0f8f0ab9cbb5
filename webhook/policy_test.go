package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// policyJSON returns a policy in the form that the API server sends.
func policyJSON(spec string) []byte {
	return fmt.Appendf(nil,
		`{"apiVersion":"scheduling.celsius.dev/v1alpha1","kind":"SchedulingPolicy",`+
			`"metadata":{"name":"p","generation":2,"managedFields":[{"manager":"kubectl"}]},"spec":%s}`, spec)
}

// inline returns a policy with one table of its own.
func inline(table string) string {
	return `{"pipeline":["allocate"],"tiers":[{"name":"t","tables":[{"name":"own","inline":` + table + `}]}]}`
}

const own = "spec.tiers[0].tables[0].inline."

func TestPolicyHandler(t *testing.T) {
	const right = `{"mode":"Active","pipeline":["allocate"],"tiers":[{"name":"t","tables":[{"name":"gang"}]}]}`
	const broken = `{"mode":"Active","pipeline":["allocat"],"tiers":[]}`
	const unknownAction = `unknown action "allocat"; did you mean "allocate"? (known: allocate, backfill, elasticpreempt, ` +
		`elasticreclaim, enqueue, gangpreempt, gangreclaim, preempt, reclaim, shuffle); or define it under spec.actions`
	for _, c := range []struct {
		name     string
		spec     string
		old      string // the policy before an update; "": the request creates the policy
		message  string // "" if the policy is accepted
		causes   []string
		warnings []string
	}{
		{name: "right", spec: right},
		{
			name: "an action that is not", spec: broken, message: "spec.pipeline[0]: " + unknownAction,
			causes: []string{"spec.pipeline[0] | " + unknownAction},
		},
		{
			name: "several mistakes at once",
			spec: inline(`{"scores":[{"name":"few","expression":"-node.taskCont +\n  ` +
				`nodd.x","weight":"1"}],"predicate":[],"jobOrder":[{"name":"o","by":"job.priority","onError":"alow"}]}`),
			message: "the policy has 4 mistakes; the first: " + own +
				`jobOrder[0].onError: unknown value "alow"; did you mean "allow"? (one of deny, allow, skip)`,
			causes: []string{
				own + `jobOrder[0].onError | unknown value "alow"; did you mean "allow"? (one of deny, allow, skip)`,
				own + `predicate | unknown field "predicate"; did you mean "predicates"?`,
				own + `scores[0].expression | line 1, column 7: Node has no field "taskCont"; did you mean "taskCount"?`,
				own + `scores[0].expression | line 2, column 3: "nodd" is not known here; did you mean "node"?`,
			},
		},
		{
			name: "a warning", spec: inline(`{"jobReady":[{"name":"r","expression":"true"}]}`),
			warnings: []string{"spec.tiers: there are rows of jobReady, but none of jobPipelined: a job that is not ready holds its places until " +
				"the cycle ends; add a row of jobPipelined that says when a job may keep places it cannot use yet"},
		},
		{
			name: "an update that breaks it", old: right, spec: broken, message: "spec.pipeline[0]: " + unknownAction,
			causes: []string{"spec.pipeline[0] | " + unknownAction},
		},
		{
			name: "a broken one is paused", old: broken, spec: strings.Replace(broken, "Active", "Paused", 1),
			warnings: []string{
				"this policy does not compile, and did not before this change; it is not served until it does",
				"spec.pipeline[0]: " + unknownAction,
			},
		},
		{name: "a broken one is mended", old: broken, spec: right},
		{
			name: "no spec at all", spec: "null", message: "spec is missing; add spec with pipeline and tiers",
			causes: []string{" | spec is missing; add spec with pipeline and tiers"},
		},
	} {
		for _, dry := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dry run %v", c.name, dry), func(t *testing.T) {
				req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
					Name: "p", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: policyJSON(c.spec)}, DryRun: &dry,
				}}
				if c.old != "" {
					req.Operation, req.OldObject = admissionv1.Update, runtime.RawExtension{Raw: policyJSON(c.old)}
				}
				got := newPolicyHandler().Handle(t.Context(), req)
				if got.Allowed != (c.message == "") {
					t.Errorf("allowed: %v", got.Allowed)
				}
				if diff := cmp.Diff(c.warnings, got.Warnings); diff != "" {
					t.Errorf("warnings (-want +got):\n%s", diff)
				}
				if !got.Allowed {
					checkInvalid(t, got.Result, c.message, c.causes)
				}
			})
		}
	}
}

func checkInvalid(t *testing.T, got *metav1.Status, message string, causes []string) {
	t.Helper()
	if got.Reason != metav1.StatusReasonInvalid || got.Code != http.StatusUnprocessableEntity || got.Details.Kind != "SchedulingPolicy" ||
		got.Details.Name != "p" {
		t.Errorf("status %+v", got)
	}
	if diff := cmp.Diff(message, got.Message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	var said []string
	for _, c := range got.Details.Causes {
		said = append(said, c.Field+" | "+c.Message)
	}
	if diff := cmp.Diff(causes, said); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

// TestPolicyHandlerMany checks that an answer with many mistakes stays readable and tells how many mistakes exist.
func TestPolicyHandlerMany(t *testing.T) {
	rows := make([]map[string]string, mostCauses+7)
	for i := range rows {
		rows[i] = map[string]string{"name": fmt.Sprintf("row-%d", i), "expression": fmt.Sprintf("nothing%d", i)}
	}
	predicates, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	got := newPolicyHandler().Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: policyJSON(`{"pipeline":["allocate"],"tiers":[{"name":"t","tables":[` +
			`{"name":"own","inline":{"predicates":` + string(predicates) + `}}]}]}`)},
	}})
	if n := len(got.Result.Details.Causes); n != mostCauses+1 || !strings.HasPrefix(got.Result.Message,
		"the policy has 107 mistakes, of which the first 100 are told; ") {
		t.Errorf("%d causes, message %s", n, got.Result.Message)
	}
}

// TestMostOf checks that a shortened list ends with the number of entries that it omits.
func TestMostOf(t *testing.T) {
	for n, last := range map[int]string{0: "", 1: "0", mostCauses: "99", mostCauses + 1: "and 1 more", mostCauses + 7: "and 7 more"} {
		var texts []string
		for i := range n {
			texts = append(texts, strconv.Itoa(i))
		}
		got := mostOf(texts)
		if len(got) != min(n, mostCauses+1) || n > 0 && got[len(got)-1] != last {
			t.Errorf("of %d there are told %d: %v", n, len(got), got)
		}
	}
}

// TestPolicyHandlerLetsGo checks that some requests do not compile the policy: its deletion, and a change that is not made to the policy
// itself.
func TestPolicyHandlerLetsGo(t *testing.T) {
	for _, req := range []admissionv1.AdmissionRequest{
		{Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: policyJSON(`{}`)}},
		{Operation: admissionv1.Update, SubResource: "status", Object: runtime.RawExtension{Raw: policyJSON(`{}`)}},
	} {
		if got := newPolicyHandler().Handle(t.Context(), admission.Request{AdmissionRequest: req}); !got.Allowed {
			t.Errorf("%s %s refused: %v", req.Operation, req.SubResource, got.Result)
		}
	}
}
