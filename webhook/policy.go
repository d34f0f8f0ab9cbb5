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

// policyPath is where SchedulingPolicies are validated.
const policyPath = "/policies/validate"

// mostCauses is how many mistakes one answer holds, and as many warnings: what kubectl prints is
// for people.
const mostCauses = 100

// newPolicyHandler gives the handler that compiles SchedulingPolicies. It refuses one that does not
// compile with all its mistakes, and warns of what the compiler warns of. It asks nobody, writes
// nothing and answers a dry run alike.
func newPolicyHandler() admission.Handler { return admission.HandlerFunc(validatePolicy) }

// validatePolicy compiles the object as it came, not as Go types hold it: those drop the fields that
// they do not know, and with them the misspelt ones.
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

// sameRules says whether two policies differ in nothing but metadata, status and mode. Such a change
// is let through whatever the rules are: a policy that is stored and broken, because it was forced in
// or because a newer version compiles it no more, must still be paused, labelled and let go.
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

// brokenAlready warns of mistakes that were there before.
func brokenAlready(mistakes source.Issues) []string {
	return append([]string{"this policy does not compile, and did not before this change; it is not served until it does"}, told(mistakes)...)
}

// invalidPolicy is the status that the API server gives for an object of its own that is invalid;
// kubectl prints each cause on a line.
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

// beyond says how many of n are not told, "" where all are.
func beyond(n int) string {
	if n <= mostCauses {
		return ""
	}
	return fmt.Sprintf("and %d more", n-mostCauses)
}

// mostOf are the first of some texts, and how many more there are.
func mostOf(texts []string) []string {
	out := slices.Clone(most(texts))
	if more := beyond(len(texts)); more != "" {
		out = append(out, more)
	}
	return out
}

// told are issues as texts.
func told(issues source.Issues) []string {
	var texts []string
	for _, i := range issues {
		texts = append(texts, fieldMessage(i))
	}
	return mostOf(texts)
}

// fieldMessage is an issue on one line, with its path.
func fieldMessage(i source.Issue) string {
	if i.Path == "" {
		return i.Placed()
	}
	return i.Path + ": " + i.Placed()
}
