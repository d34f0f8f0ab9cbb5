package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/sim"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// document is an object of a world that Counterexample makes smaller.
type document struct {
	unit string // the unit with which it is removed: a job and its pods
	text []byte
}

// Counterexample returns the smallest world in which the two policies decide differently, as far as it finds one while within returns true.
// It starts from a moment. The result is a scenario with the decisions of the new policy. An error means that the written form of the
// moment does not show a difference.
func Counterexample(m *Moment, other *policy.Policy, within func() bool) ([]byte, error) {
	all, err := documents(m.Objects)
	if err != nil {
		return nil, err
	}
	cycles := 0
	for _, n := range []int{1, 2, 4} {
		if otherwise(m, other, n, all) {
			cycles = n
			break
		}
	}
	if cycles == 0 {
		return nil, fmt.Errorf("the %d objects of %s alone do not show it", len(all), m.Now.UTC().Format(time.RFC3339))
	}
	holds := func(docs []document) bool { return otherwise(m, other, cycles, docs) }
	all = least(all, func(d *document) string { return d.unit }, holds, within)
	all = least(all, func(d *document) string { return string(d.text) }, holds, within)
	return scenario(m, other, cycles, all)
}

// least removes units as long as holds stays true: first half of the units at a time, then fewer, and finally one at a time.
func least(docs []document, unit func(*document) string, holds func([]document) bool, within func() bool) []document {
	var units []string
	for i := range docs {
		units = append(units, unit(&docs[i]))
	}
	slices.Sort(units)
	units = slices.Compact(units)
	for size := (len(units) + 1) / 2; size > 0; size /= 2 {
		for at := 0; at < len(units); {
			if !within() {
				return docs
			}
			gone := units[at:min(at+size, len(units))]
			rest := slices.DeleteFunc(slices.Clone(docs), func(d document) bool { return slices.Contains(gone, unit(&d)) })
			if holds(rest) {
				docs, units = rest, slices.Delete(units, at, at+len(gone))
			} else {
				at += size
			}
		}
	}
	return docs
}

// otherwise reports whether both policies decide differently in a world. It is false for a world that cannot be read.
func otherwise(m *Moment, other *policy.Policy, cycles int, docs []document) bool {
	world := sim.Options{Now: m.Now.UTC().Truncate(time.Second), Volumes: volume.New}
	b, issues, err := Worlds(m.Old, other, world, sim.RunOptions{Cycles: cycles},
		manifest.Source{Name: "world", Data: join(docs)})
	return err == nil && issues.Err() == nil && b.Otherwise > 0
}

func join(docs []document) []byte {
	var out bytes.Buffer
	for i, d := range docs {
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(d.text)
	}
	return out.Bytes()
}

// scenario writes a world with the decisions of the new policy, and a text about the decisions of the old one.
func scenario(m *Moment, other *policy.Policy, cycles int, docs []document) ([]byte, error) {
	object, err := other.Object()
	if err != nil {
		return nil, fmt.Errorf("write policy %s: %w", other.Name, err)
	}
	text, err := yaml.JSONToYAML(object)
	if err != nil {
		return nil, fmt.Errorf("write policy %s: %w", other.Name, err)
	}
	archive := &txtar.Archive{
		Comment: fmt.Appendf(nil, "now %s\npolicy policy.yaml\nload world.yaml\ncycle %d\ncmp decided\n",
			m.Now.UTC().Truncate(time.Second).Format(time.RFC3339), cycles),
		Files: []txtar.File{{Name: "policy.yaml", Data: text}, {Name: "world.yaml", Data: join(docs)}, {Name: "decided"}},
	}
	done, err := sim.RunScenario("counterexample.txtar", txtar.Format(archive), sim.ScenarioOptions{
		Update: true, World: sim.Options{Volumes: volume.New},
	})
	if err != nil {
		return nil, fmt.Errorf("run the counterexample: %w", err)
	}
	was, err := sim.RunScenario("counterexample.txtar", txtar.Format(archive), sim.ScenarioOptions{
		Compile: func(*source.Document) (*policy.Policy, source.Issues) { return m.Old, nil }, World: sim.Options{Volumes: volume.New},
	})
	if err != nil {
		return nil, fmt.Errorf("run the counterexample by the old policy: %w", err)
	}
	var head strings.Builder
	fmt.Fprintf(&head, "# The smallest world that was found in which policy %s decides otherwise. The old one decides:\n", other.Name)
	for line := range strings.Lines(was.Output) {
		head.WriteString("#   " + line)
	}
	return append([]byte(head.String()+"\n"), done.Archive...), nil
}

// documents returns objects as in files, without what an API server adds. It leaves out Jobs, because it contains their PodGroups and pods.
func documents(objects []metav1.Object) ([]document, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, policyv1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme, metricsv1beta1.AddToScheme,
		nodeinfov1alpha1.AddToScheme, v1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("know the kinds: %w", err)
		}
	}
	var out []document
	for _, o := range objects {
		if _, job := o.(*batchv1alpha1.Job); job {
			continue
		}
		object, ok := o.(runtime.Object)
		if !ok {
			continue // an answer of an extender
		}
		kinds, _, err := scheme.ObjectKinds(object)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", o.GetName(), err)
		}
		d, err := documentOf(o, kinds[0].GroupVersion().String(), kinds[0].Kind)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b document) int { return bytes.Compare(a.text, b.text) })
	return out, nil
}

func documentOf(o metav1.Object, version, kind string) (d document, err error) {
	name := o.GetNamespace() + "/" + o.GetName()
	text, err := json.Marshal(o)
	if err != nil {
		return d, fmt.Errorf("write %s %s: %w", kind, name, err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &u.Object); err != nil {
		return d, fmt.Errorf("write %s %s: %w", kind, name, err)
	}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "ownerReferences", "generation", "selfLink", "finalizers"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "status", "daemonEndpoints")
	d.unit = kind + " " + name
	switch kind {
	case "PodGroup":
		d.unit = "job " + name
	case "Pod":
		if group := o.GetAnnotations()[v1beta1.KubeGroupNameAnnotationKey]; group != "" {
			d.unit = "job " + o.GetNamespace() + "/" + group
		}
	}
	if d.text, err = yaml.Marshal(pruned(u.Object)); err != nil {
		return d, fmt.Errorf("write %s %s: %w", kind, name, err)
	}
	return d, nil
}

// pruned returns a value without empty fields.
func pruned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, field := range v {
			if p := pruned(field); p != nil {
				out[key] = p
			}
		}
		if len(out) > 0 {
			return out
		}
		return nil
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = pruned(item)
		}
		return out
	case string:
		if v == "" {
			return nil
		}
	}
	return v
}
