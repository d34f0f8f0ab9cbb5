package manifest_test

import (
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// TestLongExponentsOfClusters shows that an object of a cluster is left out if a quantity would take hours to parse. A warning names the
// object, and the other objects are read.
func TestLongExponentsOfClusters(t *testing.T) {
	t.Parallel()
	for _, amount := range []string{"1e-999999999", "1E+2147483647", "0.5e-2147483648", strings.Repeat("9", 400_000)} {
		for kind, object := range map[string]string{
			"PodGroup": `{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "llama-70b", "namespace": "nlp",
				"uid": "0b6f"}, "spec": {"minResources": {"cpu": "AMOUNT"}}}`,
			"Job": `{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "llama-70b", "namespace": "nlp", "uid": "0b6f"},
				"spec": {"tasks": [{"name": "w", "replicas": 1, "template": {"spec": {"containers": [{"name": "c",
				"resources": {"requests": {"cpu": "AMOUNT"}}}]}}}]}}`,
			"Pod": `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "llama-70b", "namespace": "nlp", "uid": "0b6f"},
				"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "AMOUNT"}}}]}}`,
		} {
			text := `{"apiVersion": "v1", "kind": "List", "items": [` + strings.Replace(object, "AMOUNT", amount, 1) +
				`, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1", "uid": "0b70"}}]}`
			objects, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: "cluster.json", Data: []byte(text)})
			if err := issues.Err(); err != nil || len(objects.Items) != 1 {
				t.Errorf("%s: %v, and %d objects are read, want the Node", kind, err, len(objects.Items))
			}
			if got := issues.Error(); !strings.Contains(got, kind+" nlp/llama-70b is left out") {
				t.Errorf("the warning about %s is %q", kind, got)
			}
		}
	}
}
