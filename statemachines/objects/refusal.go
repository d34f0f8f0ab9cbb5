package objects

import (
	"cmp"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
)

// The reasons of the state of a Job whose objects the API server refuses.
const (
	// FailedCreate is the reason while the controllers retry.
	FailedCreate = "FailedCreate"
	// RefusedTooOften is the reason after the Job was terminated because of the refusals.
	RefusedTooOften = "RefusedTooOften"
)

// refusalRule recognizes a refusal of a pod by Kubernetes' own admission, and states its cause and its remedy for the owner of a job.
type refusalRule struct {
	pattern *regexp.Regexp // its groups are the arguments of text, in order
	text    string
}

// Refusals match the messages of Kubernetes' admission plugins (1.36). The first match is used.
type Refusals []refusalRule

// NewRefusals returns the rules for all known messages.
func NewRefusals() Refusals {
	rule := func(pattern, text string) refusalRule { return refusalRule{regexp.MustCompile(pattern), text} }
	return Refusals{
		rule(`serviceaccount "([^"]+)" not found`,
			"ServiceAccount %s does not exist in the job's namespace; create it, or change serviceAccountName in the pod template"),
		rule(`no PriorityClass with name (\S+) was found`, NoPriorityClass),
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

// Reported states why the API server refused to create a pod of a job. If no rule matches the message of the API server, Reported quotes
// the message unchanged.
func (r Refusals) Reported(pod *corev1.Pod, of Demand, err error) string {
	return cmp.Or(r.Text(pod, of, err.Error()), fmt.Sprintf("pod %s is not created: %v", pod.Name, err))
}

// Text states why the API server refused a pod of a job, with the remedy. It returns "" for an answer that is not known.
func (r Refusals) Text(pod *corev1.Pod, of Demand, answer string) string {
	which := " (pod " + pod.Name + ")"
	if text := of.quotaText(pod, answer); text != "" {
		return text + which
	}
	for _, rule := range r {
		if groups := rule.pattern.FindStringSubmatch(answer); groups != nil {
			args := make([]any, len(groups)-1)
			for i, group := range groups[1:] {
				args[i] = group
			}
			return fmt.Sprintf(rule.text, args...) + which
		}
	}
	return ""
}
