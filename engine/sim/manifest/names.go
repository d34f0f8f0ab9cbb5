package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ExpandName returns the names for a name with one range in brackets: n[1-3] is n1, n2, n3. A name without brackets is returned unchanged.
func ExpandName(name string) ([]string, error) {
	before, rest, ok := strings.Cut(name, "[")
	if !ok {
		return []string{name}, nil
	}
	inside, after, ok := strings.Cut(rest, "]")
	first, last, dash := strings.Cut(inside, "-")
	from, err1 := strconv.ParseUint(first, 10, 31)
	to, err2 := strconv.ParseUint(last, 10, 31)
	if !ok || !dash || err1 != nil || err2 != nil || from > to || strings.ContainsAny(after, "[]") {
		return nil, fmt.Errorf("%q is no range of names", name)
	}
	if to-from >= maxObjects {
		return nil, fmt.Errorf("%q stands for more than %d names", name, maxObjects)
	}
	width := 0
	if strings.HasPrefix(first, "0") {
		width = len(first)
	}
	out := make([]string, 0, to-from+1)
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprintf("%s%0*d%s", before, width, i, after))
	}
	return out, nil
}

// parseTaint parses key=value:Effect and key:Effect.
func parseTaint(text string) (corev1.Taint, error) {
	key, effect, ok := cutLast(text, ":")
	if !ok {
		return corev1.Taint{}, fmt.Errorf("%q has no effect", text)
	}
	if err := checkEffect(effect); err != nil {
		return corev1.Taint{}, err
	}
	key, value, _ := strings.Cut(key, "=")
	if key == "" {
		return corev1.Taint{}, fmt.Errorf("%q has no key", text)
	}
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}, nil
}

// parseToleration parses key=value:Effect, key:Effect, key=value, key, and * for all taints.
func parseToleration(text string) (corev1.Toleration, error) {
	if text == "*" {
		return corev1.Toleration{Operator: corev1.TolerationOpExists}, nil
	}
	out := corev1.Toleration{Operator: corev1.TolerationOpExists}
	key, effect, ok := cutLast(text, ":")
	if ok {
		if err := checkEffect(effect); err != nil {
			return out, err
		}
		out.Effect = corev1.TaintEffect(effect)
	}
	key, value, equal := strings.Cut(key, "=")
	if equal {
		out.Operator, out.Value = corev1.TolerationOpEqual, value
	}
	if key == "" {
		return out, fmt.Errorf("%q has no key", text)
	}
	out.Key = key
	return out, nil
}

func checkEffect(effect string) error {
	if slices.Contains(taintEffects(), effect) {
		return nil
	}
	return fmt.Errorf("%q is no effect: it is one of %s", effect, strings.Join(taintEffects(), ", "))
}

// cutLast cuts at the last separator. Without one, before is the whole text.
func cutLast(text, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}

// parseWhen parses a time, or a duration before now. "" is now.
func parseWhen(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return now, fmt.Errorf("%q is neither a duration before now, as 5m, nor a time, as 2026-01-31T12:00:00Z", text)
	}
	return t, nil
}
