package cluster

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestSameSpec compares a spec from the API server, with int64, with a spec from a revision, with float64. It also compares different
// specs.
func TestSameSpec(t *testing.T) {
	const spec = `{"mode":"Active","pipeline":["enqueue","allocate"],"rollback":{"rowErrors":3},"tiers":[{"name":"house","tables":[
		{"name":"overcommit","params":{"factor":1}},{"name":"binpack","params":{"weights":{"cpu":"1","memory":"2Gi"},"names":["a","b"]}},
		{"name":"own","inline":{"scores":[{"name":"near","expression":"1.0","weight":10}]}}]}]}`
	for _, c := range []struct {
		from, to string
		same     bool
	}{
		{"", "", true},
		{`"rowErrors":3`, `"rowErrors":3.0`, true},
		{`"weight":10`, `"weight":1e1`, true},
		{`"weight":10`, `"weight":10.5`, false},
		{`"weight":10`, `"weight":"10"`, false},
		{`"factor":1`, `"factor":1.0`, true},
		{`"cpu":"1"`, `"cpu":"1000m"`, true},
		{`"cpu":"1"`, `"cpu":1`, true},
		{`"memory":"2Gi"`, `"memory":"2048Mi"`, true},
		{`"memory":"2Gi"`, `"memory":"2G"`, false},
		{`["a","b"]`, `["b","a"]`, false},
		{`"mode":"Active",`, `"mode":"Active","actions":[],`, true},
		{`"mode":"Active",`, `"mode":"Paused",`, false},
		{`"mode":"Active",`, ``, false},
		{`"pipeline":["enqueue","allocate"],`, ``, false},
	} {
		var stored unstructured.Unstructured
		if err := stored.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"X","spec":` + spec + `}`)); err != nil {
			t.Fatal(err)
		}
		var other map[string]any
		if err := json.Unmarshal([]byte(strings.Replace(spec, c.from, c.to, 1)), &other); err != nil {
			t.Fatal(err)
		}
		if got := sameSpec(stored.Object["spec"], any(other)); got != c.same {
			t.Errorf("with %s in place of %s: the same %t, want %t", c.to, c.from, got, c.same)
		}
		if got := sameSpec(any(other), stored.Object["spec"]); got != c.same {
			t.Errorf("with %s in place of %s, turned round: the same %t, want %t", c.to, c.from, got, c.same)
		}
	}
}
