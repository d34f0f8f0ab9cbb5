package controller

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// refusalText returns why a pod could not be created: first the cause and the remedy if they are known, then the answer of the API server.
func refusalText(rules objects.Refusals, pod *corev1.Pod, of objects.Demand, err error) error {
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	answer := err.Error()
	if _, after, found := strings.Cut(answer, "is forbidden: "); found {
		answer = after
	}
	if text := rules.Text(pod, of, answer); text != "" {
		return &refusedPod{text, err}
	}
	return fmt.Errorf("create pod %s: %w", pod.Name, err)
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

// refusedPod is a refusal with the text of objects.Refusals. errors.As finds the API server's answer.
type refusedPod struct {
	text string
	err  error
}

func (e *refusedPod) Error() string { return e.text }

// Unwrap returns the API server's answer.
func (e *refusedPod) Unwrap() error { return e.err }
