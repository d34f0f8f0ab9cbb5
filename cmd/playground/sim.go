package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/rules"
)

// simAnnotation on a pod says how its life is simulated; docs/playground.md lists the keys.
const simAnnotation = "celsius.dev/sim"

// invalidSim is what a pod whose simAnnotation is wrong waits with.
const invalidSim = "InvalidSimulation"

// simulation is what the simAnnotation of one pod asks for. The templates of the stages
// read it through its methods. The zero value runs until it is deleted.
type simulation struct {
	run        *time.Duration   // after which all containers end; nil: never
	exitCodes  map[string]int64 // by container; 0 where there is none
	restarts   int64
	waiting    string // the reason with which the pod stays Pending; "": it does not wait
	readyAfter time.Duration
	terminate  time.Duration
	mistakes   []string
	containers []string
}

// simKeys reads each key of the annotation.
var simKeys = map[string]func(*simulation, any) error{
	"run": func(s *simulation, v any) error {
		d, err := simDuration(v)
		s.run = &d
		return err
	},
	"exitCodes": func(s *simulation, v any) error { return s.readExitCodes(v) },
	"restarts": func(s *simulation, v any) (err error) {
		s.restarts, err = simNumber(v, 0, 1<<20)
		return err
	},
	"waiting": func(s *simulation, v any) error {
		text, ok := v.(string)
		if !ok || text == "" {
			return fmt.Errorf("%v is no reason; write one as a kubelet would, such as ImagePullBackOff", v)
		}
		s.waiting = text
		return nil
	},
	"readyAfter": func(s *simulation, v any) (err error) {
		s.readyAfter, err = simDuration(v)
		return err
	},
	"terminate": func(s *simulation, v any) (err error) {
		s.terminate, err = simDuration(v)
		return err
	},
}

// readSimulation reads the simAnnotation strictly. Its mistakes are part of the result:
// they become the status of the pod.
func readSimulation(text string, containers []string) *simulation {
	s := &simulation{containers: containers}
	if text == "" {
		return s
	}
	var given map[string]any
	if err := yaml.Unmarshal([]byte(text), &given); err != nil {
		s.mistake("%s is no YAML map: %s; write it as {run: 30s}", simAnnotation, yamlMessage(err))
		return s
	}
	known := slices.Sorted(maps.Keys(simKeys))
	for _, key := range slices.Sorted(maps.Keys(given)) {
		read, ok := simKeys[key]
		if !ok {
			s.mistake("%s: there is no key %s%s; the keys are %s", simAnnotation, key, didYouMean(key, known), strings.Join(known, ", "))
			continue
		}
		if err := read(s, given[key]); err != nil {
			s.mistake("%s: %s: %w", simAnnotation, key, err)
		}
	}
	for _, key := range []string{"run", "exitCodes", "readyAfter"} {
		if _, ok := given[key]; ok && s.waiting != "" {
			s.mistake("%s: %s has no effect beside waiting: the pod never starts; leave one of them out", simAnnotation, key)
		}
	}
	if s.exitCodes != nil && s.run == nil && s.waiting == "" && len(s.mistakes) == 0 {
		s.mistake("%s: exitCodes has no effect without run: the containers never end; add run: 30s, say", simAnnotation)
	}
	return s
}

func (s *simulation) mistake(format string, args ...any) {
	s.mistakes = append(s.mistakes, fmt.Errorf(format, args...).Error())
}

func (s *simulation) readExitCodes(v any) error {
	codes, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%v is no map; write it as {main: 137}", v)
	}
	s.exitCodes = make(map[string]int64, len(codes))
	for _, container := range slices.Sorted(maps.Keys(codes)) {
		if !slices.Contains(s.containers, container) {
			return fmt.Errorf("the pod has no container %s; it has %s", container, strings.Join(s.containers, ", "))
		}
		code, err := simNumber(codes[container], 0, 255)
		if err != nil {
			return fmt.Errorf("%s: %w", container, err)
		}
		s.exitCodes[container] = code
	}
	return nil
}

func simDuration(v any) (time.Duration, error) {
	text, ok := v.(string)
	d, err := time.ParseDuration(text)
	if !ok || err != nil || d < 0 {
		return 0, fmt.Errorf("%v is no duration; write it as 500ms, 30s or 1h30m", v)
	}
	return d, nil
}

func simNumber(v any, low, high int64) (int64, error) {
	number, ok := v.(float64)
	if n := int64(number); ok && float64(n) == number && n >= low && n <= high {
		return n, nil
	}
	return 0, fmt.Errorf("%v is no whole number from %d to %d", v, low, high)
}

func didYouMean(word string, among []string) string {
	if near := rules.Nearest(word, among); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// yamlMessage leaves out the names of the functions that the error went through.
func yamlMessage(err error) string {
	text := err.Error()
	if at := strings.LastIndex(text, "yaml: "); at >= 0 {
		return text[at+len("yaml: "):]
	}
	return strings.TrimPrefix(text, "error unmarshaling JSON: while decoding JSON: json: ")
}

// Waits says whether the pod stays Pending.
func (s *simulation) Waits() bool { return s.WaitingReason() != "" }

// WaitingReason is why the containers wait, or "".
func (s *simulation) WaitingReason() string {
	if len(s.mistakes) > 0 {
		return invalidSim
	}
	return s.waiting
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
func (s *simulation) StartsReady() bool { return !s.Waits() && s.readyAfter == 0 }

// Restarts is the restart count of every container.
func (s *simulation) Restarts() int64 { return s.restarts }

// ReadyAt is when the pod becomes ready if it starts now, or nil where it starts ready or
// ends before that.
func (s *simulation) ReadyAt() any {
	return s.after(s.readyAfter, s.readyAfter > 0 && (s.run == nil || s.readyAfter < *s.run))
}

// EndAt is when the containers end if they start now, or nil where they do not end.
func (s *simulation) EndAt() any {
	if s.run == nil {
		return nil
	}
	return s.after(*s.run, true)
}

func (s *simulation) after(d time.Duration, wanted bool) any {
	if !wanted || s.Waits() {
		return nil
	}
	return time.Now().Add(d).Format(time.RFC3339Nano)
}

// TerminateIn is how long the pod takes to go, or nil where it goes at once.
func (s *simulation) TerminateIn() any {
	if s.terminate == 0 || len(s.mistakes) > 0 {
		return nil
	}
	return s.terminate.String()
}

// ExitCode is what the container ends with.
func (s *simulation) ExitCode(container string) int64 { return s.exitCodes[container] }

// EndPhase is the pod's phase when its containers have ended.
func (s *simulation) EndPhase() corev1.PodPhase {
	for _, code := range s.exitCodes {
		if code != 0 {
			return corev1.PodFailed
		}
	}
	return corev1.PodSucceeded
}

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
