package events

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	names "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	eventsv1conversion "k8s.io/kubernetes/pkg/apis/events/v1"
)

// server accepts what the API server would accept, and stores it in the same way.
type server struct {
	t    *testing.T
	held map[string]*corev1.Event
}

func (s *server) take(event *corev1.Event) (*corev1.Event, error) {
	internal := &core.Event{}
	if err := corev1conversion.Convert_v1_Event_To_core_Event(event, internal, nil); err != nil {
		s.t.Fatal(err)
	}
	if wrong := validation.ValidateEventCreate(internal, corev1.SchemeGroupVersion); len(wrong) > 0 {
		s.t.Fatalf("the API server refuses %s: %v", event.Name, wrong)
	}
	s.held[event.Name] = event
	return event, nil
}

func (s *server) CreateWithEventNamespaceWithContext(_ context.Context, event *corev1.Event) (*corev1.Event, error) {
	return s.take(event.DeepCopy())
}

func (s *server) PatchWithEventNamespaceWithContext(_ context.Context, event *corev1.Event, data []byte) (*corev1.Event, error) {
	was := s.held[event.Name]
	if was == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("events"), event.Name)
	}
	before, err := json.Marshal(was)
	if err != nil {
		s.t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, data, &corev1.Event{})
	if err != nil {
		s.t.Fatal(err)
	}
	next := &corev1.Event{}
	if err := json.Unmarshal(after, next); err != nil {
		s.t.Fatal(err)
	}
	return s.take(next)
}

// only returns the only event of the server in both APIs.
func (s *server) only() (*corev1.Event, *eventsv1.Event) {
	s.t.Helper()
	if len(s.held) != 1 {
		s.t.Fatalf("%d events, want 1", len(s.held))
	}
	newer := &eventsv1.Event{}
	for _, e := range s.held {
		internal := &core.Event{}
		if err := corev1conversion.Convert_v1_Event_To_core_Event(e, internal, nil); err != nil {
			s.t.Fatal(err)
		}
		if err := eventsv1conversion.Convert_core_Event_To_v1_Event(internal, newer, nil); err != nil {
			s.t.Fatal(err)
		}
		return e, newer
	}
	return nil, nil
}

func jobEvent(name string, at time.Time) Event {
	return Event{
		On:   corev1.ObjectReference{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Namespace: "team", Name: name, UID: "1"},
		Type: corev1.EventTypeWarning, Reason: "FailedCreate", Action: "CreatePods", Message: "no", At: at,
	}
}

// TestBothAPIs checks that a repeated event has the fields that clients of the older and of the newer API need. The first event may still
// exist or not.
func TestBothAPIs(t *testing.T) {
	first := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, gone := range []bool{false, true} {
		s := &server{t: t, held: map[string]*corev1.Event{}}
		w := NewWriter(s, "celsius-controllers", func(string) {})
		for i := range 3 {
			if gone {
				clear(s.held)
			}
			if err := w.Write(t.Context(), jobEvent("train", first.Add(time.Duration(i)*time.Minute))); err != nil {
				t.Fatal(err)
			}
		}
		older, newer := s.only()
		got := []any{
			older.LastTimestamp.UTC(), older.Count, older.Source.Component, newer.Action, newer.ReportingController, newer.Note,
			newer.EventTime.UTC(), newer.DeprecatedLastTimestamp.UTC(), newer.DeprecatedCount, newer.DeprecatedSource.Component,
			newer.ReportingInstance != "",
		}
		last := first.Add(2 * time.Minute)
		want := []any{
			last, int32(3), "celsius-controllers", "CreatePods", "celsius-controllers", "no", first, last, int32(3),
			"celsius-controllers", true,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the first is gone: %v (-want +got):\n%s", gone, diff)
		}
	}
}

// TestAnyName checks events of an object with a name of the maximum length and without a namespace. Without an action, the reason is used.
func TestAnyName(t *testing.T) {
	s := &server{t: t, held: map[string]*corev1.Event{}}
	e := jobEvent(strings.Repeat("a", 253), time.Now())
	e.On.Namespace, e.Action = "", ""
	if err := NewWriter(s, "celsius-scheduler", func(string) {}).Write(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	older, newer := s.only()
	if len(older.Name) != 253 || older.Namespace != "default" || newer.Action != "FailedCreate" {
		t.Errorf("name of %d characters, namespace %q, action %q", len(older.Name), older.Namespace, newer.Action)
	}
}

// TestLongName checks that the name of an event is valid, regardless of where the name of its object is cut.
func TestLongName(t *testing.T) {
	for n := 1; n < 253; n++ {
		for _, sign := range []string{"-", ".a", "--"} {
			s := &server{t: t, held: map[string]*corev1.Event{}}
			name := strings.Repeat("a", n) + sign + strings.Repeat("a", 253)
			if err := NewWriter(s, "celsius-scheduler", func(string) {}).Write(t.Context(), jobEvent(name[:253], time.Now())); err != nil {
				t.Fatal(err)
			}
			older, _ := s.only()
			if wrong := names.IsDNS1123Subdomain(older.Name); len(wrong) > 0 {
				t.Errorf("an event of an object with %q at character %d: %v", sign, n, wrong)
			}
		}
	}
}

// TestMany checks that many events of one object in a row become few on the server. Similar ones become one.
func TestMany(t *testing.T) {
	s := &server{t: t, held: map[string]*corev1.Event{}}
	w := NewWriter(s, "celsius-controllers", func(string) {})
	for i := range 1000 {
		e := jobEvent("train", time.Now())
		e.Message = fmt.Sprint("pod ", i)
		if err := w.Write(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.held) > 25 {
		t.Errorf("%d events of one object", len(s.held))
	}
}

// A message that is longer than the API server allows is cut between characters.
func TestLongMessage(t *testing.T) {
	s := &server{t: t, held: map[string]*corev1.Event{}}
	e := jobEvent("train", time.Now())
	e.Message = "a" + strings.Repeat("\u00e4", 600)
	if err := NewWriter(s, "celsius-controllers", func(string) {}).Write(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	got, _ := s.only()
	if len(got.Message) > longestMessage || len(got.Message) < longestMessage-2 || !utf8.ValidString(got.Message) ||
		!strings.HasSuffix(got.Message, "\u00e4...") {
		t.Errorf("%d bytes: %q", len(got.Message), got.Message)
	}
}
