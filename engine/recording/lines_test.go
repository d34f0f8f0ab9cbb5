package recording

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// TestObjectsAreReadAsTheyWere writes an object of each kind and reads it back. One object has a moment with nanoseconds, which plain JSON
// would cut off.
func TestObjectsAreReadAsTheyWere(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 31, 12, 0, 0, 123456789, time.UTC))
	deltas := []model.Delta{
		{Object: &extender.Answer{ObjectMeta: metav1.ObjectMeta{Name: "a"}, URL: "http://e", At: at, Says: "yes"}},
		{Op: model.Forget, Object: &metricsv1beta1.NodeMetrics{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Timestamp: at}},
	}
	for _, kind := range kinds() {
		o := reflect.New(kind).Interface().(metav1.Object)
		o.SetName("x")
		deltas = append(deltas, model.Delta{Object: o}, model.Delta{Op: model.Delete, Object: o})
	}
	for _, want := range deltas {
		c, err := written(want)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back change
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		got, err := back.read(kinds())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T (-written +read):\n%s", want.Object, diff)
		}
	}
}
