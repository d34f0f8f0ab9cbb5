package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
)

// guardName is the name of the admission policy and of its binding in deploy/guard. With them the API server admits a Command on a Queue
// only if its creator may patch the queue.
const guardName = "commands.celsius.dev"

// guardSettles is the time after which all API servers use a stored policy. It includes the difference between their clocks.
const guardSettles = 5 * time.Second

// unguarded returns why it is unknown whether the creator of a Command on a Queue may change the queue. It returns "" if the API server has
// checked this.
func (c *commands) unguarded(ctx context.Context, command *busv1alpha1.Command) (string, error) {
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	for kind, part := range map[string]client.Object{"policy": policy, "binding": binding} {
		err := c.live.Get(ctx, types.NamespacedName{Name: guardName}, part)
		if apierrors.IsNotFound(err) {
			return fmt.Sprintf("the admission %s %s is not there", kind, guardName), nil
		}
		if err != nil {
			return "", fmt.Errorf("find the admission %s %s: %w", kind, guardName, err)
		}
		if since := lastChange(part); command.CreationTimestamp.Time.Before(since.Add(guardSettles)) {
			return fmt.Sprintf("the admission %s %s is as it is since %s only, and the command is of %s", kind, guardName,
				since.UTC().Format(time.RFC3339), command.CreationTimestamp.UTC().Format(time.RFC3339)), nil
		}
	}
	if !asksOfAllCommands(policy) {
		return fmt.Sprintf("the admission policy %s does not ask the authorizer about all commands, made and changed", guardName), nil
	}
	s := binding.Spec
	if s.PolicyName != guardName || !slices.Contains(s.ValidationActions, admissionv1.Deny) || s.ParamRef != nil ||
		!selectsAll(s.MatchResources) {
		return fmt.Sprintf("the admission binding %s does not deny what the policy finds, everywhere", guardName), nil
	}
	return "", nil
}

// lastChange returns when an object was last written. Writes of its status do not count.
func lastChange(o client.Object) time.Time {
	last := o.GetCreationTimestamp().Time
	for _, by := range o.GetManagedFields() {
		if by.Subresource == "" && by.Time != nil && by.Time.After(last) {
			last = by.Time.Time
		}
	}
	return last
}

// asksOfAllCommands reports whether the policy applies to every Command and asks the authorizer.
func asksOfAllCommands(p *admissionv1.ValidatingAdmissionPolicy) bool {
	s := p.Spec
	if s.FailurePolicy != nil && *s.FailurePolicy != admissionv1.Fail || len(s.MatchConditions) > 0 || s.ParamKind != nil ||
		s.MatchConstraints == nil {
		return false
	}
	rest := *s.MatchConstraints
	rest.ResourceRules = nil
	asks := func(v admissionv1.Validation) bool { return strings.Contains(v.Expression, "authorizer.") }
	return selectsAll(&rest) && slices.ContainsFunc(s.MatchConstraints.ResourceRules, isAboutCommands) &&
		slices.ContainsFunc(s.Validations, asks)
}

// isAboutCommands reports whether a rule applies to every Command that is created or changed.
func isAboutCommands(r admissionv1.NamedRuleWithOperations) bool {
	has := func(list []string, words ...string) bool {
		return slices.Contains(list, "*") || !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(list, w) })
	}
	operations := make([]string, len(r.Operations))
	for i, o := range r.Operations {
		operations[i] = string(o)
	}
	return len(r.ResourceNames) == 0 && (r.Scope == nil || *r.Scope != admissionv1.ClusterScope) &&
		has(r.APIGroups, busv1alpha1.GroupName) && has(r.APIVersions, busv1alpha1.GroupVersion.Version) &&
		has(operations, string(admissionv1.Create), string(admissionv1.Update)) && has(r.Resources, "commands")
}

// selectsAll reports whether a match selects every object.
func selectsAll(m *admissionv1.MatchResources) bool {
	all := func(s *metav1.LabelSelector) bool { return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 }
	return m == nil || all(m.NamespaceSelector) && all(m.ObjectSelector) && len(m.ResourceRules)+len(m.ExcludeResourceRules) == 0
}
