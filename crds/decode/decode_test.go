package decode_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/decode"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// TestJSON shows that the field at fault is named.
func TestJSON(t *testing.T) {
	const notJSON = "it is not JSON"
	for _, c := range []struct {
		into       any
		data, want string
	}{
		{&v1beta1.PodGroup{}, `{"spec":{"minResources":{"cpu":"1"}}}`, ""},
		{&v1beta1.PodGroup{}, `{"spec":{"minResources":null,"minMember":2,"unknown":{"a":1}}}`, ""},
		{&v1beta1.PodGroup{}, `{"metadata":{"uid":"3e12345"},"spec":{"minResources":{"cpu":1,"memory":" 1Gi ","x":"1e300"}}}`, ""},
		{
			&v1beta1.PodGroup{}, `{"spec":{"minResources":{"cpu":"1","memory":"1e1.5"}}}`,
			`spec.minResources[memory]: Invalid value: "1e1.5": must be a quantity such as 500m or 16Gi`,
		},
		{
			&v1beta1.PodGroup{}, `{"spec":{"minResources":{"cpu":"1e-99999999"}}}`,
			`spec.minResources[cpu]: Invalid value: "1e-99999999": must be a quantity such as 500m or 16Gi, with an exponent of at most 3 digits`,
		},
		{
			&v1beta1.PodGroup{}, `{"spec":{"minResources":{"cpu":"` + strings.Repeat("1", 200) + `"}}}`,
			`must be a quantity of at most 64 characters`,
		},
		{&v1beta1.PodGroup{}, `{"spec":{"minResources":{"cpu":1e-99999999}}}`, ""}, // which is 0 to all who read JSON's numbers
		{&v1beta1.PodGroup{}, `{"spec":{"minResources":{"cpu":1e99999999}}}`, notJSON},
		{&v1beta1.PodGroup{}, `{"spec":{"minMember":3000000000}}`, `spec.minMember: Invalid value: "3000000000"`},
		{&v1beta1.PodGroup{}, `{"spec":[]}`, `spec: Invalid value: "[]": must be an object`},
		{&v1beta1.PodGroup{}, `{"status":{"conditions":{}}}`, `status.conditions: Invalid value: "map[]": must be a list`},
		{
			&v1beta1.PodGroup{}, `{"status":{"conditions":[{},{"lastTransitionTime":"noon"}]}}`,
			`status.conditions[1].lastTransitionTime: Invalid value: "noon": must be a time such as 2006-01-02T15:04:05Z`,
		},
		{
			&batchv1alpha1.Job{}, `{"spec":{"policies":[{"timeout":"1m"},{"timeout":"banana"}]}}`,
			`spec.policies[1].timeout: Invalid value: "banana": must be a duration such as 90s or 1h30m`,
		},
		{&batchv1alpha1.Job{}, `{"spec":{"runningEstimate":"1d"}}`, `spec.runningEstimate: Invalid value: "1d": must be a duration`},
		{
			&batchv1alpha1.Job{}, `{"spec":{"tasks":[{"template":{"metadata":{"creationTimestamp":"noon"}}}]}}`,
			`spec.tasks[0].template.metadata.creationTimestamp: Invalid value: "noon"`,
		},
		{
			&batchv1alpha1.Job{}, `{"spec":{"tasks":[{"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}}}]}}`,
			`spec.tasks[0].template.spec.containers[0].resources.limits[cpu]`,
		},
		{&batchv1alpha1.Job{}, `{"spec":`, notJSON},
	} {
		err := decode.JSON([]byte(c.data), c.into)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.data, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v\nwant %s", c.data, err, c.want)
		}
		if wrong := new(field.Error); c.want != "" && c.want != notJSON && !errors.As(err, &wrong) {
			t.Errorf("%s: %T names no field", c.data, err)
		}
	}
}

// TestQuantity holds quantities to Kubernetes' own, but for those that take long.
func TestQuantity(t *testing.T) {
	for _, text := range []string{
		"1", "-1.5", ".5", "5.", "1Ki", "1e3", "1E-3", "1E", "1e300", "1e-999", "", "x", "1e", "1e1.5", "1KiKi",
		"0x1", "Inf", "1_000",
	} {
		got, err := decode.Quantity(text)
		want, wantErr := resource.ParseQuantity(text)
		if (err == nil) != (wantErr == nil) || err == nil && got.Cmp(want) != 0 {
			t.Errorf("%q: %v, %v; Kubernetes: %v, %v", text, &got, err, &want, wantErr)
		}
	}
	for _, text := range []string{"1e-99999999", "1e2147483648", "1E+0001", "1." + strings.Repeat("0", 1<<20) + "1"} {
		if _, err := decode.Quantity(text); err == nil {
			t.Errorf("%.20s was parsed", text)
		}
	}
}

func TestSuspicious(t *testing.T) {
	for text, want := range map[string]bool{
		`{"a":"1e-99999999"}`: true, `{"a":"1E+1000"}`: true, `{"a":".5e1000"}`: true, `{"a":"` + strings.Repeat("9", 40) + `"}`: true,
		`{"a":"1e999"}`: false, `{"uid":"a1e9999"}`: true, `{"uid":"fe99999"}`: false, `{"a":12345678901234}`: false,
		`{"a":"2026-01-02T15:04:05Z"}`: false,
		``:                             false, `"`: false, `"1"`: false, `1111"`: false, `-1111"`: false, `e1111"`: false,
	} {
		if got := decode.Suspicious([]byte(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// FuzzQuantity holds that no text takes long, and that what is not suspicious in JSON is not refused for its length.
func FuzzQuantity(f *testing.F) {
	for _, text := range []string{
		"1", "1e-99999", "1e1.5", "000000000000000000000000000000000000000000000000000000000000000000000000001",
		"+.5e+3",
	} {
		f.Add(text)
	}
	plain := regexp.MustCompile(`^[-+.0-9a-zA-Z]*$`)
	f.Fuzz(func(t *testing.T, text string) {
		began := time.Now()
		_, err := decode.Quantity(text)
		if took := time.Since(began); took > time.Second {
			t.Fatalf("%q took %s", text, took)
		}
		if err != nil || len(text) > 32 || !plain.MatchString(text) {
			return
		}
		group := &v1beta1.PodGroup{}
		if err := decode.JSON([]byte(`{"spec":{"minResources":{"cpu":"`+text+`"}}}`), group); err != nil {
			t.Errorf("%q is a quantity, but: %v", text, err)
		}
	})
}
