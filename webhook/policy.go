package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// policyPath is the path that validates SchedulingPolicies.
const policyPath = "/policies/validate"

// mostCauses is the maximum number of mistakes in one answer, and also of warnings. A longer list is not readable in the output of kubectl.
const mostCauses = 100

// newPolicyHandler returns the handler that compiles SchedulingPolicies. It refuses a policy that does not compile, with all its mistakes,
// and returns the compiler's warnings. It reads nothing from the cluster, writes nothing, and answers a dry run in the same way.
func newPolicyHandler() admission.Handler { return admission.HandlerFunc(validatePolicy) }

// validatePolicy compiles the object as it was sent. A decoded Go type would drop unknown fields, and with them the misspelled ones.
func validatePolicy(_ context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update || req.SubResource != "" {
		return admission.Allowed("")
	}
	if wrong := combined(req); wrong != nil {
		return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
			Result: invalidPolicy(req.Name, source.Issues{{Path: wrong.Field, Message: wrong.Message}}),
		}}
	}
	_, issues := policy.LoadStored(req.Object.Raw)
	warnings := told(issues.Warnings())
	if issues.Err() == nil {
		return admission.Allowed("").WithWarnings(warnings...)
	}
	if req.Operation == admissionv1.Update && sameRules(req.OldObject.Raw, req.Object.Raw) {
		return admission.Allowed("").WithWarnings(append(brokenAlready(issues.Errors()), warnings...)...)
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Result: invalidPolicy(req.Name, issues.Errors()), Warnings: warnings,
	}}
}

// sameRules reports whether two policies differ only in metadata, status and mode. Such a change is always admitted. A stored policy can be
// broken because it was stored without this webhook, or because a newer version no longer compiles it. Users must still be able to pause,
// label and delete it.
func sameRules(old, now []byte) bool {
	rulesOf := func(raw []byte) (map[string]any, bool) {
		var object struct {
			Spec map[string]any `json:"spec"`
		}
		err := json.Unmarshal(raw, &object)
		delete(object.Spec, "mode")
		return object.Spec, err == nil
	}
	a, okOld := rulesOf(old)
	b, okNow := rulesOf(now)
	return okOld && okNow && equality.Semantic.DeepEqual(a, b)
}

// brokenAlready returns warnings about mistakes that the old object already has.
func brokenAlready(mistakes source.Issues) []string {
	return append([]string{"this policy does not compile, and did not before this change; it is not served until it does"}, told(mistakes)...)
}

// invalidPolicy returns the same status as the API server for an invalid object. kubectl prints each cause on a line.
func invalidPolicy(name string, mistakes source.Issues) *metav1.Status {
	status := &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Details: &metav1.StatusDetails{Group: v1alpha1.GroupName, Kind: "SchedulingPolicy", Name: name},
	}
	for _, i := range most(mistakes) {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Field: i.Path, Message: i.Placed(),
		})
	}
	first := fieldMessage(mistakes[0])
	switch n := len(mistakes); {
	case n > mostCauses:
		status.Message = fmt.Sprintf("the policy has %d mistakes, of which the first %d are told; %s", n, mostCauses, first)
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeTooMany, Message: beyond(n) + "; celsius policy check prints all",
		})
	case n > 1:
		status.Message = fmt.Sprintf("the policy has %d mistakes; the first: %s", n, first)
	default:
		status.Message = first
	}
	return status
}

func most[S ~[]E, E any](list S) S { return list[:min(len(list), mostCauses)] }

// beyond returns how many of n mistakes are not shown, as a text; "" means that all are shown.
func beyond(n int) string {
	if n <= mostCauses {
		return ""
	}
	return fmt.Sprintf("and %d more", n-mostCauses)
}

// mostOf returns the first texts, and the number of further texts.
func mostOf(texts []string) []string {
	out := slices.Clone(most(texts))
	if more := beyond(len(texts)); more != "" {
		out = append(out, more)
	}
	return out
}

// told returns issues as texts.
func told(issues source.Issues) []string {
	var texts []string
	for _, i := range issues {
		texts = append(texts, fieldMessage(i))
	}
	return mostOf(texts)
}

// fieldMessage returns an issue on one line, with its path.
func fieldMessage(i source.Issue) string {
	if i.Path == "" {
		return i.Placed()
	}
	return i.Path + ": " + i.Placed()
}
