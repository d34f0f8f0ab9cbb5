package main

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celsius-scheduler/celsius/crds"
)

// fewestInvalid is the minimum number of manifests of each kind in samples/invalid.
var fewestInvalid = map[string]int{
	"Job": 40, "CronJob": 15, "Queue": 15, "PodGroup": 10, "Pod": 5, "Command": 7, "SchedulingPolicy": 5, "JobTemplate": 3,
	"JobFlow": 11,
}

// invalid is a manifest of samples/invalid, with the content of its header.
type invalid struct {
	name, text string
	says       []string // "# says: WORDS"
	schema     bool     // "# schema: yes": the API server refuses it by its schema, and calls no webhook
}

// theInvalid reads samples/invalid, and creates the objects that the manifests refer to.
func theInvalid(w *world) []invalid {
	w.t.Helper()
	w.Apply(sample(w.t, "invalid/given/queues.yaml"))
	w.Apply(sample(w.t, "invalid/given/jobtemplates.yaml"))
	w.Kubectl("patch", "queue", w.Queue("closed"), "--subresource=status", "--type=merge", "-p", `{"status":{"state":"Closed"}}`)
	files, err := filepath.Glob("../../samples/invalid/*.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	var out []invalid
	counts := map[string]int{}
	for _, file := range files {
		m := invalid{name: strings.TrimSuffix(filepath.Base(file), ".yaml"), text: w.Expand(sample(w.t, "invalid/"+filepath.Base(file)))}
		for line := range strings.Lines(m.text) {
			if words, ok := strings.CutPrefix(line, "# says: "); ok {
				m.says = append(m.says, strings.TrimSpace(words))
			}
			m.schema = m.schema || line == "# schema: yes\n"
		}
		if len(m.says) == 0 || !strings.HasPrefix(m.text, "# ") || strings.HasPrefix(m.text, "# says") {
			w.t.Errorf("%s does not open with what is wrong, and then # says: WORDS", file)
		}
		counts[m.object(w).GetKind()]++
		out = append(out, m)
	}
	for kind, fewest := range fewestInvalid {
		if counts[kind] < fewest {
			w.t.Errorf("%d invalid manifests of a %s, want %d", counts[kind], kind, fewest)
		}
	}
	return out
}

func (m invalid) object(w *world) *unstructured.Unstructured {
	w.t.Helper()
	object := &unstructured.Unstructured{}
	if err := utilyaml.Unmarshal([]byte(m.text), &object.Object); err != nil {
		w.t.Fatalf("%s: %v", m.name, err)
	}
	return object
}

// lacks returns an error with the words that a message lacks.
func (m invalid) lacks(said string) error {
	var failed error
	for _, want := range m.says {
		if !strings.Contains(said, want) {
			failed = errors.Join(failed, fmt.Errorf("lacks %q", want))
		}
	}
	if failed != nil {
		return fmt.Errorf("%w:\n%s", failed, said)
	}
	return nil
}

// TestE2EInvalid creates each manifest of samples/invalid with kubectl. Each is refused, with the words in its header.
func TestE2EInvalid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, m := range theInvalid(w) {
		t.Run(m.name, func(t *testing.T) {
			said := w.In(t).refused(m.text)
			t.Log(said)
			if err := m.lacks(said); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestE2EInvalidBySchema creates the manifests as kinds of other groups, with the same schemas but without a webhook. Those with "schema:
// yes" are refused with the same words, and the others are accepted.
func TestE2EInvalidBySchema(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	groups := w.copyKinds()
	strict := &client.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	refused, passed := 0, 0
	for _, m := range theInvalid(w) {
		object := m.object(w)
		gvk := object.GroupVersionKind()
		if gvk.Group == "" { // Pods have no schema of ours
			continue
		}
		if gvk.Group = groups[gvk.Group]; gvk.Group == "" {
			t.Fatalf("%s is of no group that was copied", m.name)
		}
		object.SetGroupVersionKind(gvk)
		object.SetNamespace(w.Namespace)
		err := w.Client.Create(w.Context, object, strict)
		switch {
		case !m.schema && err != nil:
			t.Errorf("%s: refused by the schema, and its head does not say so: %v", m.name, err)
		case m.schema && err == nil:
			t.Errorf("%s: the schema takes it, and its head says that it does not", m.name)
		case m.schema:
			refused++
			if err := m.lacks(err.Error()); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		default:
			passed++
		}
	}
	t.Logf("%d manifests are refused by the schema, %d need the webhook", refused, passed)
}

// copyKinds creates copies of our kinds in groups of this world, until the test ends. It maps the original groups to the new ones.
func (w *world) copyKinds() map[string]string {
	w.t.Helper()
	files, err := crds.Manifests.ReadDir("manifests")
	if err != nil {
		w.t.Fatal(err)
	}
	groups, names := map[string]string{}, []string{}
	for _, file := range files {
		text, err := crds.Manifests.ReadFile("manifests/" + file.Name())
		if err != nil {
			w.t.Fatal(err)
		}
		group, rest, _ := strings.Cut(file.Name(), "_")
		plural := strings.TrimSuffix(rest, ".yaml")
		groups[group] = w.Name + "." + group
		name := plural + "." + groups[group]
		w.Apply(strings.NewReplacer("name: "+plural+"."+group+"\n", "name: "+name+"\n", "group: "+group+"\n",
			"group: "+groups[group]+"\n").Replace(string(text)))
		names = append(names, "crd/"+name)
	}
	w.deleteLater(names...)
	w.Kubectl(append([]string{"wait", "--for=condition=Established"}, names...)...)
	for group := range maps.Values(groups) {
		w.Wait("the API server serves "+group, func() error { return w.served(group) })
	}
	return groups
}

// served returns nil if the API server has a group.
func (w *world) served(group string) error {
	list, err := w.Kube.Discovery().ServerGroups()
	if err == nil && !slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == group }) {
		err = errors.New("it does not")
	}
	return err
}
