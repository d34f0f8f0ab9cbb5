package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// simAnnotation on a pod says how its life is simulated; docs/playground.md lists the keys.
const simAnnotation = manifest.LifeAnnotation

// invalidSim is what a pod whose simAnnotation is wrong waits with.
const invalidSim = "InvalidSimulation"

// simulation is what the simAnnotation of one pod asks for. The templates of the stages
// read it through its methods. The zero value runs until it is deleted.
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

// Waits says whether the pod stays Pending.
func (s *simulation) Waits() bool { return s.WaitingReason() != "" }

// WaitingReason is why the containers wait, or "".
func (s *simulation) WaitingReason() string {
	if len(s.mistakes) > 0 {
		return invalidSim
	}
	return s.Waiting
}

// PodReason is the reason in the pod's status, or nil where it needs none.
func (s *simulation) PodReason() any {
	if len(s.mistakes) > 0 {
		return invalidSim
	}
	return nil
}

// PodMessage tells what is wrong with the annotation, or is nil.
func (s *simulation) PodMessage() any {
	if len(s.mistakes) > 0 {
		return strings.Join(s.mistakes, "; ")
	}
	return nil
}

// StartsReady says whether the pod is ready as soon as it runs.
func (s *simulation) StartsReady() bool { return !s.Waits() && s.ReadyAfter == 0 }

// Restarts is the restart count of every container.
func (s *simulation) Restarts() int64 { return s.Life.Restarts }

// ReadyAt is when the pod becomes ready if it starts now, or nil where it starts ready or
// ends before that.
func (s *simulation) ReadyAt() any {
	return s.after(s.ReadyAfter, s.ReadyAfter > 0 && (s.Run == nil || s.ReadyAfter < *s.Run))
}

// EndAt is when the containers end if they start now, or nil where they do not end.
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

// TerminateIn is how long the pod takes to go, or nil where it goes at once.
func (s *simulation) TerminateIn() any {
	if s.Terminate == 0 || len(s.mistakes) > 0 {
		return nil
	}
	return s.Terminate.String()
}

// ExitCode is what the container ends with.
func (s *simulation) ExitCode(container string) int64 { return s.ExitCodes[container] }

// EndReason is why the pod is not ready any more when its containers have ended.
func (s *simulation) EndReason() string {
	if s.EndPhase() == corev1.PodFailed {
		return "PodFailed"
	}
	return "PodCompleted"
}

// stageFunctions are what the templates of the stages may call beside KWOK's own.
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
				d = 0 // somebody wrote over what pod-start noted: the pod goes at once
			}
			gone := time.Now().Add(d)
			if at := p.DeletionTimestamp; at != nil && at.Time.Before(gone) {
				gone = at.Time
			}
			return gone.Format(time.RFC3339Nano), nil
		},
	}
}

// typedPod makes of what a template sees, a tree of maps, the pod that it was.
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
