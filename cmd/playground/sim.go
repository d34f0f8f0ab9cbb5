package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// simAnnotation on a pod defines how its life is simulated; docs/playground.md lists the keys.
const simAnnotation = manifest.LifeAnnotation

// invalidSim is the waiting reason of a pod with an invalid simAnnotation.
const invalidSim = "InvalidSimulation"

// simulation is the content of a pod's simAnnotation. The templates of the stages read it through its methods. The zero value is a pod that
// runs until its deletion.
type simulation struct {
	manifest.Life
	mistakes []string
}

// readSimulation reads the simAnnotation strictly. Its mistakes are part of the result:
// they become the status of the pod.
func readSimulation(text string, containers []string) *simulation {
	life, mistakes := manifest.ReadLife(text, containers)
	s := &simulation{Life: life}
	for _, m := range mistakes {
		s.mistakes = append(s.mistakes, m.Error())
	}
	return s
}

// Waits reports whether the pod stays Pending.
func (s *simulation) Waits() bool { return s.WaitingReason() != "" }

// WaitingReason returns why the containers wait, or "".
func (s *simulation) WaitingReason() string {
	if len(s.mistakes) > 0 {
		return invalidSim
	}
	return s.Waiting
}

// PodReason returns the reason in the pod's status, or nil.
func (s *simulation) PodReason() any {
	if len(s.mistakes) > 0 {
		return invalidSim
	}
	return nil
}

// PodMessage returns the mistakes in the annotation, or nil.
func (s *simulation) PodMessage() any {
	if len(s.mistakes) > 0 {
		return strings.Join(s.mistakes, "; ")
	}
	return nil
}

// StartsReady reports whether the pod is ready as soon as it runs.
func (s *simulation) StartsReady() bool { return !s.Waits() && s.ReadyAfter == 0 }

// Restarts returns the restart count of every container.
func (s *simulation) Restarts() int64 { return s.Life.Restarts }

// ReadyAt returns when the pod becomes ready if it starts now. It returns nil if the pod starts ready or ends before that.
func (s *simulation) ReadyAt() any {
	return s.after(s.ReadyAfter, s.ReadyAfter > 0 && (s.Run == nil || s.ReadyAfter < *s.Run))
}

// EndAt returns when the containers end if they start now, or nil if they do not end.
func (s *simulation) EndAt() any {
	if s.Run == nil {
		return nil
	}
	return s.after(*s.Run, true)
}

func (s *simulation) after(d time.Duration, wanted bool) any {
	if !wanted || s.Waits() {
		return nil
	}
	return time.Now().Add(d).Format(time.RFC3339Nano)
}

// TerminateIn returns how long the pod takes to terminate, or nil if it terminates immediately.
func (s *simulation) TerminateIn() any {
	if s.Terminate == 0 || len(s.mistakes) > 0 {
		return nil
	}
	return s.Terminate.String()
}

// ExitCode returns the exit code of a container.
func (s *simulation) ExitCode(container string) int64 { return s.ExitCodes[container] }

// EndReason returns why the pod is not ready after its containers have ended.
func (s *simulation) EndReason() string {
	if s.EndPhase() == corev1.PodFailed {
		return "PodFailed"
	}
	return "PodCompleted"
}

// stageFunctions returns the functions that the templates of the stages may call in addition to KWOK's own.
func stageFunctions() map[string]any {
	return map[string]any{
		"Sim": func(pod any) (*simulation, error) {
			p, err := typedPod(pod)
			if err != nil {
				return nil, err
			}
			var containers []string
			for _, c := range p.Spec.Containers {
				containers = append(containers, c.Name)
			}
			return readSimulation(p.Annotations[simAnnotation], containers), nil
		},
		"GoneAt": func(pod any) (string, error) {
			p, err := typedPod(pod)
			if err != nil {
				return "", err
			}
			d, err := time.ParseDuration(p.Annotations[simAnnotation+"-terminate"])
			if err != nil {
				d = 0 // another client overwrote the value of pod-start: the pod terminates immediately
			}
			gone := time.Now().Add(d)
			if at := p.DeletionTimestamp; at != nil && at.Time.Before(gone) {
				gone = at.Time
			}
			return gone.Format(time.RFC3339Nano), nil
		},
	}
}

// typedPod converts a tree of maps, which a template gets, into a pod.
func typedPod(tree any) (*corev1.Pod, error) {
	text, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("pod of a stage: %w", err)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(text, pod); err != nil {
		return nil, fmt.Errorf("pod of a stage: %w", err)
	}
	return pod, nil
}
