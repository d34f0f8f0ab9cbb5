package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

const (
	// quietFor is how long neither the awaited state nor the world may change before a test gives up.
	quietFor = time.Minute
	// waitAtMost is how long a test waits if something changes all the time, or if it cannot see the progress.
	waitAtMost = 20 * time.Minute
	// pollEvery is the time between two checks. pollCounts is the maximum time that is counted for one interval. If a check is late, the
	// awaited program is probably late, too.
	pollEvery  = 25 * time.Millisecond
	pollCounts = 10 * pollEvery
)

// patience ends when nothing has changed for a long time. It does not depend on the speed of the machine.
type patience struct {
	began, looked time.Time
	quiet         time.Duration
	state         string
	changes       string
}

func newPatience(now time.Time) *patience { return &patience{began: now, looked: now} }

// over reports whether to give up, given the present awaited state. Before it does so, it calls changes for other progress.
func (p *patience) over(now time.Time, state string, changes func() string) bool {
	step := min(now.Sub(p.looked), pollCounts)
	p.looked = now
	if now.Sub(p.began) >= waitAtMost {
		return true
	}
	if state != p.state {
		p.state, p.quiet = state, 0
		return false
	}
	if p.quiet += step; p.quiet < quietFor {
		return false
	}
	was := p.changes
	p.changes, p.quiet = changes(), 0
	return was == p.changes
}

// Wait calls cond until it returns no error. The test fails with the last error when nothing has changed for quietFor: neither the error,
// nor anything in the world. cond must not fail the test itself.
func (w *world) Wait(what string, cond func() error) {
	w.t.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	p := newPatience(time.Now())
	for {
		err := cond()
		if err == nil {
			return
		}
		if p.over(time.Now(), err.Error(), w.changes) {
			w.t.Fatalf("waited %s, and for %s without any change, for: %s: %v", time.Since(p.began).Round(time.Second), quietFor, what, err)
		}
		select {
		case <-w.Context.Done():
			w.t.Fatalf("the test ended while it waited for: %s: %v", what, err)
		case <-tick.C:
		}
	}
}

// changes returns a text that changes with anything in the world.
func (w *world) changes() string {
	var out []string
	for _, kind := range []struct {
		of schema.GroupVersionKind
		in []client.ListOption
	}{
		{corev1.SchemeGroupVersion.WithKind("PodList"), []client.ListOption{client.InNamespace(w.Namespace)}},
		{batchv1alpha1.GroupVersion.WithKind("JobList"), []client.ListOption{client.InNamespace(w.Namespace)}},
		{schedulingv1beta1.GroupVersion.WithKind("PodGroupList"), []client.ListOption{client.InNamespace(w.Namespace)}},
		{corev1.SchemeGroupVersion.WithKind("NodeList"), []client.ListOption{client.MatchingLabels{worldLabel: w.Name}}},
		{schedulingv1beta1.GroupVersion.WithKind("QueueList"), nil},
		{policyv1alpha1.GroupVersion.WithKind("SchedulingPolicyList"), nil},
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.of)
		if err := w.Client.List(w.Context, list, kind.in...); err != nil {
			out = append(out, err.Error())
			continue
		}
		for i := range list.Items {
			if o := &list.Items[i]; kind.in != nil || strings.HasPrefix(o.Name, w.Name) {
				out = append(out, string(o.UID)+"@"+o.ResourceVersion)
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// kubectlWait runs a kubectl command that waits, with the time limit of Wait.
func (w *world) kubectlWait(args ...string) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.Context)
	defer cancel()
	full := []string{"kubectl", "--kubeconfig", w.Kubeconfig}
	for _, arg := range append(args, "--timeout="+waitAtMost.String()) {
		full = append(full, w.Expand(arg))
	}
	type ended struct {
		out []byte
		err error
	}
	done := make(chan ended, 1)
	go func() {
		out, err := playgroundCommand(ctx, full...).CombinedOutput()
		done <- ended{out, err}
	}()
	var how ended
	what := "kubectl " + strings.Join(args, " ")
	w.Wait(what, func() error {
		select {
		case how = <-done:
			return nil
		default:
			return errors.New("it waits")
		}
	})
	if how.err != nil {
		w.t.Fatalf("%s: %v\n%s", what, how.err, how.out)
	}
}

func TestPatience(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	for name, c := range map[string]struct {
		every   time.Duration          // between two checks
		state   func(look int) string  // the awaited state
		changes func(asked int) string // changes of the world
		want    time.Duration          // when it gives up
	}{
		"nothing changes": {pollEvery, func(int) string { return "" }, func(int) string { return "" }, quietFor},
		"only at first":   {pollEvery, func(int) string { return "" }, func(int) string { return "x" }, 2 * quietFor},
		"what is waited for does, once a half": {
			quietFor / 240, func(look int) string { return fmt.Sprint(min(look/120, 4)) }, func(int) string { return "" }, 3 * quietFor,
		},
		"the world does, ten times": {
			pollEvery, func(int) string { return "" }, func(asked int) string { return fmt.Sprint(min(asked, 10)) },
			11 * quietFor,
		},
		"all the time":      {pollEvery, func(look int) string { return fmt.Sprint(look) }, func(int) string { return "" }, waitAtMost},
		"on a slow machine": {40 * pollEvery, func(int) string { return "" }, func(int) string { return "" }, 4 * quietFor},
	} {
		t.Run(name, func(t *testing.T) {
			p, asked := newPatience(start), 0
			now := start
			for look := 0; ; look++ {
				if p.over(now, c.state(look), func() string { asked++; return c.changes(asked) }) {
					break
				}
				now = now.Add(c.every)
			}
			if took := now.Sub(start); took < c.want-time.Second || took > c.want+time.Second {
				t.Errorf("over after %s, want %s", took, c.want)
			}
		})
	}
}
