package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/decode"
	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// undecodable contains objects that a schema without bounds accepts.
const undecodable = `
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: broken}
spec:
  schedulerName: nobody
  policies: [{event: PodFailed, action: RestartJob, timeout: banana}]
  tasks: [{name: work, replicas: 1, template: {spec: {containers: [{name: main, image: a}]}}}]
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: broken}
spec: {minMember: 1, queue: ${queue.a}, minResources: {cpu: "1e1.5"}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: endless}
spec: {minMember: 1, queue: ${queue.a}, minResources: {cpu: "1e-99999999"}}
`

// TestE2EStored stores objects that cannot be decoded, with manifests without bounds as a cluster may have had. It also stores all random
// changes that today's manifests accept. Scheduler and controllers must continue, and must start again. It does not run in parallel with
// other tests, because it changes their schemas.
func TestE2EStored(t *testing.T) {
	w := newWorld(t)
	w.Nodes(1, "cpu=8,memory=32Gi")
	w.queue("a", 1)
	loosely(t, w, "jobs.batch.volcano.sh", "podgroups.scheduling.volcano.sh")

	t.Run("seen from the start", func(t *testing.T) {
		w := w.In(t)
		w.StartScheduler()
		w.StartControllers()
		w.Apply(jobLike("first"))
		w.phase("first", "Running")
		for object, want := range map[string]string{
			"Job/broken": "spec.policies[0].timeout", "PodGroup/broken": "spec.minResources[cpu]",
			"PodGroup/endless": "spec.minResources[cpu]",
		} {
			w.Wait("an event names the field of "+object, func() error { return w.warned(object, want) })
		}
		w.Apply(`{apiVersion: v1, kind: Pod, metadata: {name: alone, annotations: {scheduling.k8s.io/group-name: endless}},
			spec: {schedulerName: "${scheduler}", containers: [{name: main, image: a}]}}`)
		storeChanges(w)
		w.Apply(jobLike("second"))
		w.phase("second", "Running")
	})
	t.Run("begun anew", func(t *testing.T) {
		w := w.In(t)
		w.StartScheduler()
		w.StartControllers()
		w.Apply(jobLike("third"))
		w.phase("third", "Running")
		w.Kubectl("patch", "podgroup", "endless", "--type=merge", "-p", `{"spec":{"minResources":{"cpu":"1"}}}`)
		w.Kubectl("wait", "pod/alone", "--for=condition=PodScheduled")
	})
}

// warned returns nil if an object, KIND/NAME, has a Warning event with these words. Events of queues are not in the namespace of a world.
func (w *world) warned(object, words string) error {
	err := w.event(object, func(e corev1.Event) bool {
		return e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, words)
	})
	if err != nil {
		return fmt.Errorf("%w with %s", err, words)
	}
	return nil
}

// event returns an error if an object has no wanted event.
func (w *world) event(object string, wanted func(corev1.Event) bool) error {
	kind, name, _ := strings.Cut(object, "/")
	list, err := w.Kube.CoreV1().Events(metav1.NamespaceAll).List(w.Context, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind +
		",involvedObject.name=" + name})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list.Items, wanted) {
		return fmt.Errorf("%d events, none", len(list.Items))
	}
	return nil
}

// loosely creates the undecodable objects while these kinds have no schema, and admission does not check this world's groups. Then it
// restores schemas and admission.
func loosely(t *testing.T, w *world, crds ...string) {
	t.Helper()
	definitions, err := apiextensions.NewForConfig(w.Config)
	if err != nil {
		t.Fatal(err)
	}
	crd := definitions.ApiextensionsV1().CustomResourceDefinitions()
	for _, name := range crds {
		_, err := crd.Patch(w.Context, name, types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema","value":{"type":"object",`+
				`"x-kubernetes-preserve-unknown-fields":true}}]`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.refusedWith("admission refuses what cannot be decoded, without the schema's help",
		"denied the request: spec.minResources[cpu]: Invalid value")
	t.Run("stored without admission", func(t *testing.T) {
		w := w.In(t)
		w.exempt("podgroups", fmt.Sprintf("request.namespace != %q", w.Namespace))
		w.Wait("what cannot be decoded is stored", func() error { return w.TryApply(undecodable) })
	})
	if err := applyManifests(w.Context, w.Config); err != nil {
		t.Fatal(err)
	}
	w.refusedWith("the schema refuses what cannot be decoded", "is invalid: spec.minResources.cpu")
}

// refusedWith waits until an object that cannot be decoded is refused with these words, because the API server applies changes with a
// delay.
func (w *world) refusedWith(what, words string) {
	w.t.Helper()
	w.Wait(what, func() error {
		err := w.TryApply(`{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: refused}, spec: {minMember: 1, queue: ` +
			`"${queue.a}", minResources: {cpu: "1e-99999999"}}}`)
		switch {
		case err == nil:
			return errors.New("it is stored")
		case !strings.Contains(err.Error(), words):
			return fmt.Errorf("want words of %q: %w", words, err)
		}
		return nil
	})
}

// storeChanges creates objects of our kinds with an unusual value somewhere, and checks that stored objects can be decoded.
func storeChanges(w *world) {
	w.t.Helper()
	const tries = 400
	random := rand.New(rand.NewPCG(20, 1))
	odd := []any{
		nil, true, int64(3000000000), 1.5,
		[]any{},
		map[string]any{},
		[]any{"a"},
		"", "a", "1e1.5", "1e-99999999", "1d",
		"2024-01-01t00:00:00z", "99999999999h",
	}
	stored := map[string]int{}
	for n := range tries {
		into := []client.Object{
			&batchv1alpha1.Job{}, &schedulingv1beta1.PodGroup{}, &schedulingv1beta1.Queue{}, &busv1alpha1.Command{},
			&policyv1alpha1.SchedulingPolicy{},
		}[n%5]
		object := &unstructured.Unstructured{}
		kind := strings.ToLower(fmt.Sprintf("%T", into)[strings.LastIndex(fmt.Sprintf("%T", into), ".")+1:])
		text, err := os.ReadFile("../../crds/testdata/" + kind + ".yaml")
		if err != nil {
			w.t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			w.t.Fatal(err)
		}
		delete(object.Object, "status")
		unstructured.RemoveNestedField(object.Object, "spec", "guarantee") // a queue's guarantee reserves resources, and a node has few
		changed := oddly(random, runtime.DeepCopyJSON(object.Object), odd)
		object.SetUnstructuredContent(changed)
		object.SetName(fmt.Sprintf("%s-odd-%d", w.Name, n))
		object.SetNamespace(w.Namespace)
		if kind == "job" {
			_ = unstructured.SetNestedField(object.Object, "nobody", "spec", "schedulerName") // no controller creates its pods
		}
		if w.Client.Create(w.Context, object) != nil {
			continue
		}
		stored[kind]++
		data, err := json.Marshal(object)
		if err != nil {
			w.t.Fatal(err)
		}
		if err := decode.JSON(data, into); err != nil {
			w.t.Errorf("it is stored, and cannot be decoded: %v\n%s", err, data)
		}
		if kind == "queue" || kind == "schedulingpolicy" {
			w.t.Cleanup(func() { _ = w.Client.Delete(context.WithoutCancel(w.Context), object) })
		}
	}
	w.t.Logf("stored of %d: %v", tries, stored)
	if len(stored) < 4 {
		w.t.Errorf("too little was stored to show anything: %v", stored)
	}
}

// oddly inserts an unusual value somewhere into the specification of an object.
func oddly(random *rand.Rand, object map[string]any, odd []any) map[string]any {
	var at any = object
	for {
		var keys []string
		var below func(string) any
		var put func(string, any)
		switch v := at.(type) {
		case map[string]any:
			keys = slices.Sorted(maps.Keys(v))
			below, put = func(k string) any { return v[k] }, func(k string, x any) { v[k] = x }
		case []any:
			for i := range v {
				keys = append(keys, fmt.Sprint(i))
			}
			index := func(k string) (i int) { _, _ = fmt.Sscan(k, &i); return i }
			below, put = func(k string) any { return v[index(k)] }, func(k string, x any) { v[index(k)] = x }
		}
		keys = slices.DeleteFunc(keys, func(k string) bool {
			return k == "apiVersion" || k == "kind" || k == "metadata" && at.(map[string]any)["kind"] != nil
		})
		if len(keys) == 0 {
			return object
		}
		key := keys[random.IntN(len(keys))]
		next := below(key)
		switch next.(type) {
		case map[string]any, []any:
			if random.IntN(5) > 0 {
				at = next
				continue
			}
		}
		put(key, odd[random.IntN(len(odd))])
		return object
	}
}
