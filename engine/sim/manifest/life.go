package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// LifeAnnotation is an annotation of a pod. It describes how the life of the pod is simulated if no kubelet runs it: in a World and in the
// playground. Its value is one YAML map. See Life for the keys.
const LifeAnnotation = "celsius.dev/sim"

// Life is the content of a pod's LifeAnnotation. The zero value runs until the pod is deleted.
type Life struct {
	// Run is how long the containers run before all of them end; nil: they do not end.
	Run *time.Duration
	// ExitCodes contains exit codes by container, at the end of Run; a missing one is 0.
	ExitCodes map[string]int64
	// Restarts is the restart count that the status shows for each container.
	Restarts int64
	// Waiting is the reason why the pod stays Pending although it has a node; "": it starts.
	Waiting string
	// ReadyAfter is the time from the pod's start until it is ready.
	ReadyAfter time.Duration
	// Terminate is how long the pod takes to end after its deletion, unless its grace period is shorter; 0: not set.
	Terminate time.Duration
}

// lifeKeys returns the function that reads each key of the annotation.
func lifeKeys() map[string]func(l *Life, v any, containers []string) error {
	duration := func(at func(*Life) *time.Duration) func(*Life, any, []string) error {
		return func(l *Life, v any, _ []string) (err error) {
			*at(l), err = lifeDuration(v)
			return err
		}
	}
	return map[string]func(l *Life, v any, containers []string) error{
		"run": duration(func(l *Life) *time.Duration {
			l.Run = new(time.Duration)
			return l.Run
		}),
		"exitCodes": (*Life).readExitCodes,
		"restarts": func(l *Life, v any, _ []string) (err error) {
			l.Restarts, err = lifeNumber(v, 0, 1<<20)
			return err
		},
		"waiting": func(l *Life, v any, _ []string) error {
			text, ok := v.(string)
			if !ok || text == "" {
				return fmt.Errorf("%v is no reason; write one as a kubelet would, such as ImagePullBackOff", v)
			}
			l.Waiting = text
			return nil
		},
		"readyAfter": duration(func(l *Life) *time.Duration { return &l.ReadyAfter }),
		"terminate":  duration(func(l *Life) *time.Duration { return &l.Terminate }),
	}
}

// ReadLife reads a LifeAnnotation strictly, for a pod with these containers. It returns all mistakes. If there are any, the life is
// invalid.
func ReadLife(text string, containers []string) (l Life, mistakes []error) {
	if text == "" {
		return l, nil
	}
	mistake := func(format string, args ...any) {
		mistakes = append(mistakes, fmt.Errorf(LifeAnnotation+": "+format, args...))
	}
	var given map[string]any
	object, err := source.FirstToJSON([]byte(text))
	if err == nil {
		err = json.Unmarshal(object, &given)
	}
	if err != nil {
		return l, []error{fmt.Errorf("%s is no YAML map: %s; write it as {run: 30s}", LifeAnnotation, yamlMessage(err))}
	}
	keys := lifeKeys()
	names := slices.Sorted(maps.Keys(keys))
	for _, key := range slices.Sorted(maps.Keys(given)) {
		read, ok := keys[key]
		if !ok {
			mistake("there is no key %s%s; the keys are %s", key, didYouMean(key, names), strings.Join(names, ", "))
			continue
		}
		if err := read(&l, given[key], containers); err != nil {
			mistake("%s: %w", key, err)
		}
	}
	for _, key := range []string{"run", "exitCodes", "readyAfter"} {
		if _, ok := given[key]; ok && l.Waiting != "" {
			mistake("%s has no effect together with waiting: the pod never starts; leave one of them out", key)
		}
	}
	if l.ExitCodes != nil && l.Run == nil && l.Waiting == "" && len(mistakes) == 0 {
		mistake("exitCodes has no effect without run: the containers never end; add run: 30s, say")
	}
	return l, mistakes
}

// LifeOf returns the life of a pod. With a mistake, which was reported when the pod was read, the pod waits.
func LifeOf(p *corev1.Pod) Life {
	l, mistakes := ReadLife(p.Annotations[LifeAnnotation], containerNames(p.Spec.Containers))
	if len(mistakes) > 0 {
		return Life{Waiting: errors.Join(mistakes...).Error()}
	}
	return l
}

func containerNames(containers []corev1.Container) []string {
	var out []string
	for _, c := range containers {
		out = append(out, c.Name)
	}
	return out
}

func (l *Life) readExitCodes(v any, containers []string) error {
	codes, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%v is no map; write it as {main: 137}", v)
	}
	l.ExitCodes = make(map[string]int64, len(codes))
	for _, container := range slices.Sorted(maps.Keys(codes)) {
		if !slices.Contains(containers, container) {
			return fmt.Errorf("the pod has no container %s; it has %s", container, strings.Join(containers, ", "))
		}
		code, err := lifeNumber(codes[container], 0, 255)
		if err != nil {
			return fmt.Errorf("%s: %w", container, err)
		}
		l.ExitCodes[container] = code
	}
	return nil
}

// EndPhase returns the pod's phase after its containers have ended.
func (l *Life) EndPhase() corev1.PodPhase {
	for _, code := range l.ExitCodes {
		if code != 0 {
			return corev1.PodFailed
		}
	}
	return corev1.PodSucceeded
}

func lifeDuration(v any) (time.Duration, error) {
	text, ok := v.(string)
	d, err := time.ParseDuration(text)
	if !ok || err != nil || d < 0 {
		return 0, fmt.Errorf("%v is no duration; write it as 500ms, 30s or 1h30m", v)
	}
	return d, nil
}

func lifeNumber(v any, low, high int64) (int64, error) {
	number, ok := v.(float64)
	if n := int64(number); ok && float64(n) == number && n >= low && n <= high {
		return n, nil
	}
	return 0, fmt.Errorf("%v is no whole number from %d to %d", v, low, high)
}

func didYouMean(word string, among []string) string {
	if near := source.Nearest(word, among); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// yamlMessage removes the names of the functions that an error passed through.
func yamlMessage(err error) string {
	text := err.Error()
	if at := strings.LastIndex(text, "yaml: "); at >= 0 {
		return text[at+len("yaml: "):]
	}
	return strings.TrimPrefix(strings.TrimPrefix(text, "document 1: "), "json: ")
}
