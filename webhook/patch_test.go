package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// anyJSON draws a value that a field of an object can have.
func anyJSON(depth int) *rapid.Generator[any] {
	leaf := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64Range(-2, 2).AsAny(), rapid.SampledFrom([]string{"", "a", "/~"}).AsAny(),
	}
	if depth == 0 {
		return rapid.OneOf(leaf...)
	}
	return rapid.OneOf(append(leaf, rapid.SliceOfN(anyJSON(depth-1), 0, 3).AsAny(), anyFields(depth-1).AsAny())...)
}

func anyFields(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "a/b", "m~n"}), anyJSON(depth), 0, 4)
}

// withoutNulls returns a value without the fields that are null.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, below := range v {
			if below != nil {
				out[key] = withoutNulls(below)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, below := range v {
			out[i] = withoutNulls(below)
		}
		return out
	}
	return v
}

// TestPatch checks that the patch changes the first object into the second one. The patch of two equal objects is empty.
func TestPatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := anyFields(3).Draw(t, "before"), anyFields(3).Draw(t, "after")
		if got := patchOf(before, before); len(got) > 0 {
			t.Fatalf("between equals: %v", got)
		}
		got, err := applied(before, patchOf(before, after))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(withoutNulls(after), withoutNulls(got)); diff != "" {
			t.Fatalf("patched (-want +got):\n%s", diff)
		}
	})
}

// applied applies a patch to an object in the same way as the API server.
func applied(object map[string]any, operations any) (out map[string]any, err error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	if string(data) != "null" {
		patch, err := jsonpatch.DecodePatch(data)
		if err != nil {
			return nil, err
		}
		if text, err = patch.Apply(text); err != nil {
			return nil, fmt.Errorf("%s: %w", data, err)
		}
	}
	return out, kubejson.Unmarshal(text, &out)
}

// TestAnObjectIsDecodedOnce counts how often an object is decoded. Each decoding copies the texts of the object, so the memory of an answer
// shows this number.
func TestAnObjectIsDecodedOnce(t *testing.T) {
	const size = 4 << 20
	h := handlerFor(t, schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	job := func(minAvailable int) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"name":"a","namespace":"b"},
			"spec":{"schedulerName":"volcano","queue":"default","minAvailable":%d,"maxRetry":3,"tasks":[{"name":"t","replicas":2,"minAvailable":1,
			"template":{"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"TEXT","value":%q}]}],"restartPolicy":"Never"}}}]}}`,
			minAvailable, strings.Repeat("x", size))
	}
	create := requestFor(admissionv1.Create, job(1), nil)
	update := requestFor(admissionv1.Update, job(2), job(1))
	for name, c := range map[string]struct {
		answer  func(context.Context, admission.Request) admission.Response
		of      admission.Request
		objects int
	}{
		"defaults of a new job":      {h.fillIn, create, 1},
		"defaults of an update":      {h.fillIn, update, 2},
		"validation of a new job":    {h.validate, create, 1},
		"validation of an update":    {h.validate, update, 2},
		"as it is stored, and again": {h.validate, requestFor(admissionv1.Update, job(1), job(1)), 2},
	} {
		var before, after runtime.MemStats
		for range 2 { // the first answer may also create values that are kept
			runtime.ReadMemStats(&before)
			got := c.answer(t.Context(), c.of)
			runtime.ReadMemStats(&after)
			if !got.Allowed {
				t.Fatalf("%s: %s", name, got.Result.Message)
			}
		}
		made := after.TotalAlloc - before.TotalAlloc
		if copies := float64(made) / size; math.Round(copies) != float64(c.objects) {
			t.Errorf("%s: %.1f copies of its text, of %d objects", name, copies, c.objects)
		}
	}
}
