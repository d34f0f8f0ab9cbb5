package webhook

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"golang.org/x/tools/txtar"
	admissionv1 "k8s.io/api/admission/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	_ "github.com/celsius-scheduler/celsius/engine/seeds"
)

// FuzzJobs sends any content to the handlers. Nothing may panic, and no rule may end with an error for an object that the schema accepts. A
// second call must not fill in anything again.
func FuzzJobs(f *testing.F) {
	archive, err := txtar.ParseFile("testdata/job.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range jobCases(f, archive) {
		object, err := json.Marshal(r.Object)
		if err != nil {
			f.Fatal(err)
		}
		old, err := json.Marshal(r.OldObject)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(object, old)
	}
	f.Add([]byte(`{"spec":{"tasks":[null,{"name":null}],"policies":[null],"volumes":[null],"plugins":{"a b":null}}}`), []byte(`{"spec":null}`))
	queue := schedulingv1beta1.Queue{}
	queue.Name = "default"
	h := handlerFor(f, queue)
	f.Fuzz(func(t *testing.T, object, old []byte) { holdsForJob(t, h, object, old) })
}

// holdsForJob sends any Job to the handlers and checks the answers.
func holdsForJob(t fatal, h *tableHandler, object, old []byte) {
	for _, response := range []admission.Response{
		h.validate(context.Background(), requestFor(admissionv1.Create, object, nil)),
		h.validate(context.Background(), requestFor(admissionv1.Update, object, old)),
	} {
		if !response.Allowed && response.Result.Code >= 500 {
			t.Fatalf("a rule failed: %s", response.Result.Message)
		}
	}
	got := h.fillIn(context.Background(), requestFor(admissionv1.Create, object, nil))
	if !got.Allowed {
		if got.Result.Code >= 500 {
			t.Fatalf("a rule failed: %s", got.Result.Message)
		}
		return
	}
	filled := object
	if len(got.Patches) > 0 {
		data, err := json.Marshal(got.Patches)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(data)
		if err != nil {
			t.Fatal(err)
		}
		if filled, err = patch.Apply(object); err != nil {
			t.Fatalf("the patch %s does not fit: %v", data, err)
		}
	}
	again := h.fillIn(context.Background(), requestFor(admissionv1.Create, filled, nil))
	if !again.Allowed || len(again.Patches) > 0 {
		t.Fatalf("filled in twice: %s: %v", filled, again.Patches)
	}
}

// fatal contains the methods that testing.T and rapid.T have in common.
type fatal interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// TestAnyJob replaces parts of Jobs by other values and checks the answers.
func TestAnyJob(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/job.txtar")
	if err != nil {
		t.Fatal(err)
	}
	queue := schedulingv1beta1.Queue{}
	queue.Name = "default"
	h, cases := handlerFor(t, queue), jobCases(t, archive)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(cases))).Draw(t, "case")
		object, err := json.Marshal(disturbed(t, cases[name].Object))
		if err != nil {
			t.Fatal(err)
		}
		old, err := json.Marshal(disturbed(t, cases[name].OldObject))
		if err != nil {
			t.Fatal(err)
		}
		holdsForJob(t, h, object, old)
	})
}

// disturbed returns a JSON value in which some parts are replaced by other values.
func disturbed(t *rapid.T, v any) any {
	const oneIn = 12
	if rapid.IntRange(1, oneIn).Draw(t, "disturb") == 1 {
		return rapid.SampledFrom([]any{
			nil, "", "default", "*", "{{", -1, 0, 1, 1 << 40, 1.5, true,
			[]any{},
			[]any{nil},
			map[string]any{},
			map[string]any{"": nil},
			"10m", "a/b",
		}).Draw(t, "by")
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, key := range sorted(v) {
			out[key] = disturbed(t, v[key])
		}
		return out
	case []any:
		var out []any
		for _, item := range v {
			for range rapid.IntRange(0, 2).Draw(t, "times") {
				out = append(out, disturbed(t, item))
			}
		}
		return out
	}
	return v
}
