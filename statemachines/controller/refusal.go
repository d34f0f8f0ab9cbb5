package controller

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// refusalRule recognizes a refusal of a pod by Kubernetes' own admission, and states its cause and its remedy for the owner of a job.
type refusalRule struct {
	pattern *regexp.Regexp // its groups are the arguments of text, in order
	text    string
}

// refusalRules match the messages of Kubernetes' admission plugins (1.36); the first that matches is used.
func refusalRules() []refusalRule {
	rule := func(pattern, text string) refusalRule { return refusalRule{regexp.MustCompile(pattern), text} }
	return []refusalRule{
		rule(`serviceaccount "([^"]+)" not found`,
			"ServiceAccount %s does not exist in the job's namespace; create it, or change serviceAccountName in the pod template"),
		rule(`no PriorityClass with name (\S+) was found`, objects.NoPriorityClass),
		rule(`exceeded quota: ([^,]+), (requested: .*)`,
			"ResourceQuota %s of the namespace is exhausted (%s); wait until other pods of the namespace end, request less, or raise the quota"),
		rule(`failed quota: ([^:]+): (must specify .*)`,
			"ResourceQuota %s of the namespace refuses the pod, because its containers %s; add these requests or limits to the pod template"),
		rule(`violates PodSecurity "([^"]+)": (.*)`,
			"Pod Security (%s) of the namespace refuses the pod: %s. Change the pod template, or the pod-security labels of the namespace"),
		rule(`((?:maximum|minimum) \S+ (?:usage|limit) per \S+ is .*|max limit to request ratio per .*|.* max limit to request ratio .*)`,
			"a LimitRange of the namespace refuses the pod: %s. Change the amounts in the pod template, or the LimitRange"),
	}
}

// refusalText states why a pod could not be created: the cause and the remedy first where they are known, then what the API server
// answered.
func refusalText(rules []refusalRule, pod string, err error) error {
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return fmt.Errorf("create pod %s: %w", pod, err)
	}
	answer := err.Error()
	if _, after, found := strings.Cut(answer, "is forbidden: "); found {
		answer = after
	}
	for _, r := range rules {
		if groups := r.pattern.FindStringSubmatch(answer); groups != nil {
			args := make([]any, len(groups)-1)
			for i, group := range groups[1:] {
				args[i] = group
			}
			return &refusedPod{fmt.Sprintf(r.text, args...) + fmt.Sprintf(" (pod %s)", pod), err}
		}
	}
	return fmt.Errorf("create pod %s: %w", pod, err)
}

// mayBeFinal reports whether a refusal, or one of several, can only end when a user changes something. A refusal by a ResourceQuota ends
// when other objects of the namespace do.
func mayBeFinal(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it walks the tree of errors, branch by branch
	case apierrors.APIStatus:
		return !strings.Contains(err.Error(), "exceeded quota: ") && !strings.Contains(err.Error(), "failed quota: ")
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), mayBeFinal)
	case interface{ Unwrap() error }:
		return mayBeFinal(e.Unwrap())
	default:
		return true
	}
}

// refusedPod is a refusal in the words of refusalRules; errors.As finds the API server's answer.
type refusedPod struct {
	text string
	err  error
}

func (e *refusedPod) Error() string { return e.text }

// Unwrap gives the API server's answer.
func (e *refusedPod) Unwrap() error { return e.err }
