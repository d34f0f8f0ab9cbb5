package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// deepCases are objects with a field that is nested too deep. %s is metadata that only the API server writes, and then the field.
func deepCases() map[string]string {
	return map[string]string{
		"Pod": `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "evil"%s}, "spec": {"x": %s}}`,
		"Job": `{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "p", "namespace": "evil"%s},
			"spec": {"tasks": [{"template": {"spec": {"x": %s}}}]}}`,
		"SchedulingPolicy": `{"apiVersion": "scheduling.celsius.dev/v1alpha1", "kind": "SchedulingPolicy", "metadata": {"name": "p"%s},
			"spec": {"x": %s}}`,
		"JobPlugin": `{"apiVersion": "rules.celsius.dev/v1alpha1", "kind": "JobPlugin", "metadata": {"name": "p"%s}, "spec": {"x": %s}}`,
	}
}

// TestDeepObjects loads objects with a field that is nested too deep. If an object was read from a cluster, it is left out with a warning
// that names it, and the other objects are read. If a user wrote it, it is a mistake.
func TestDeepObjects(t *testing.T) {
	t.Parallel()
	const node = `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1", "uid": "0b70"}}`
	for kind, object := range deepCases() {
		for _, depth := range []int{900, 1_000_000} {
			for _, list := range []string{
				`{"apiVersion": "v1", "kind": "List", "items": [%s, ` + node + `]}`, "%s\n---\n" + node, "---\n%s\n---\n" + node + "\n",
			} {
				load := func(uid, deep string) (string, int, error) {
					text := fmt.Sprintf(list, fmt.Sprintf(object, uid, deep))
					objects, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: "cluster.json", Data: []byte(text)})
					return issues.Error(), len(objects.Items) + len(objects.Policies) + len(objects.JobPlugins), issues.Err()
				}
				deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
				text, read, err := load(`, "uid": "0b6f"`, deep)
				if err != nil || read != 1 {
					t.Errorf("%s, %d deep: %v, and %d objects are read, want the Node", kind, depth, err, read)
				}
				name := kind + " p"
				if strings.Contains(object, "namespace") {
					name = kind + " evil/p"
				}
				if want := name + " is left out: a field is nested deeper than 100 values"; !strings.Contains(text, want) {
					t.Errorf("%s, %d deep: the warning is %.500s, want %s", kind, depth, text, want)
				}
				if text, _, err = load("", deep); err == nil || !strings.Contains(text, "a field is nested deeper than 100 values") {
					t.Errorf("%s of a user, %d deep: %.500s", kind, depth, text)
				}
			}
		}
	}
}

// TestDeepWorldsAndLists loads files of a user that are nested too deep outside of objects of a cluster.
func TestDeepWorldsAndLists(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 900) + strings.Repeat("]", 900)
	for _, text := range []string{
		"apiVersion: sim.celsius.dev/v1alpha1\nkind: World\nnodes: " + deep,
		"apiVersion: v1\nkind: List\nmetadata: " + deep + "\nitems: []",
		"apiVersion: v1\nkind: List\nitems: {a: " + deep + "}",
		`{"apiVersion": "v1", "kind": "List", "items": [` + deep + `]}`,
	} {
		_, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: "f", Data: []byte(text)})
		if issues.Err() == nil {
			t.Errorf("%.80s: no mistake", text)
		}
	}
	passedOver := `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "x.io/v1", "kind": "Thing", "spec": ` + deep + `}]}`
	if _, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: "f", Data: []byte(passedOver)}); issues.Err() != nil {
		t.Errorf("an object that is not simulated: %v", issues)
	}
}

// TestEmojiOfKubectl loads an annotation as kubectl can write it in JSON.
func TestEmojiOfKubectl(t *testing.T) {
	t.Parallel()
	text := "\ufeff{\"apiVersion\": \"v1\",\r\n\t\"kind\": \"Node\",\r\n\t\"metadata\": {\"name\": \"n\", \"annotations\": {" +
		`"a": "\ud83d\ude80 \/ \u0000 \ud83d"` + "}}}\r\n"
	objects, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: "n.json", Data: []byte(text)})
	if len(issues) > 0 || len(objects.Items) != 1 || objects.Items[0].Object.GetAnnotations()["a"] != "🚀 / \x00 \ufffd" {
		t.Errorf("%v, %v", objects.Items, issues)
	}
}
