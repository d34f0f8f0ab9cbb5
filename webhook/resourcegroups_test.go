package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

func podHandler(t testing.TB, own []*Table) *tableHandler {
	t.Helper()
	table, issues := PodTable()
	if table == nil {
		t.Fatal(issues.Error())
	}
	return &tableHandler{
		table: table.with(own), metrics: newMetrics(), related: groupOf,
		cluster: cluster{
			schedulerNames: []string{"celsius", "default-scheduler"},
			queues:         func(context.Context) ([]schedulingv1beta1.Queue, error) { return nil, nil },
		},
	}
}

func podRequest(pod []byte) admission.Request {
	r := requestFor(admissionv1.Create, pod, nil)
	r.Kind = metav1.GroupVersionKind{Version: "v1", Kind: podKind}
	r.Namespace = "default"
	return r
}

const someGroups = `
apiVersion: rules.celsius.dev/v1alpha1
kind: ResourceGroups
metadata: {name: pools}
resourceGroups:
- resourceGroup: management
  object: {key: namespace, value: [mng-1, mng-2]}
  schedulerName: celsius
  tolerations: [{key: mng, operator: Exists, effect: NoSchedule}]
  labels: {pool: management}
  affinity: |
    {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
      {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}]}}}
- resourceGroup: batch
  object: {key: annotation, value: ["team: a", 'team: "b"']}
  labels: {pool: batch}
- resourceGroup: labelled
  object: {key: label, value: ["tier: low"]}
  when: object.spec.priorityClassName == ''
  labels: {pool: low}
  podLabels: {tier: other, added: "yes"}
  podAnnotations: {volcano.sh/preemptable: "true"}
- resourceGroup: gpu
  labels: {pool: gpu}
- resourceGroup: large
  when: "object.spec.containers.size() > 1"
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname}}]
`

// TestResourceGroups checks that a pod gets the settings of the first group that matches it. The pod keeps the values that it already has.
func TestResourceGroups(t *testing.T) {
	tables, issues := LoadFile("groups.yaml", []byte(someGroups))
	if issues.Err() != nil {
		t.Fatal(issues.Error())
	}
	if len(tables) != 1 || tables[0].Kind != podKind || tables[0].Rows() != 5 {
		t.Fatalf("%d tables, %+v", len(tables), tables)
	}
	shipped, issues := PodTable()
	if shipped == nil {
		t.Fatal(issues.Error())
	}
	for _, c := range []struct{ name, change, want string }{
		{"no group", "spec: {}", "take\n"},
		{
			"by its namespace", "metadata: {namespace: mng-2}",
			"set spec.affinity: " + `{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":` +
				`[{"key":"kubernetes.io/os","operator":"In","values":["linux"]}]}]}}}` + "\n" +
				`set spec.nodeSelector: {"pool":"management"}` + "\n" +
				`set spec.tolerations: [{"effect":"NoSchedule","key":"mng","operator":"Exists"}]` + "\n",
		},
		{
			"what it has stays, but for its pool",
			"metadata: {namespace: mng-1}\nspec:\n  affinity: {podAffinity: {}}\n  nodeSelector: {pool: mine, arch: arm64}\n" +
				"  tolerations: [{key: mng, operator: Exists, effect: NoSchedule}]\n  schedulerName: volcano",
			`set spec.nodeSelector.pool: "management"` + "\n" + `set spec.schedulerName: "celsius"` + "\n",
		},
		{"by an annotation", "metadata: {annotations: {team: a}}", `set spec.nodeSelector: {"pool":"batch"}` + "\n"},
		{"by an annotation in quotes", "metadata: {annotations: {team: b}}", `set spec.nodeSelector: {"pool":"batch"}` + "\n"},
		{"by another annotation", "metadata: {annotations: {team: c}}", "take\n"},
		{
			"the first that it fits",
			"metadata: {namespace: mng-1, annotations: {team: a}}\n" +
				"spec: {affinity: {podAffinity: {}}, tolerations: [{operator: Exists}]}",
			`set spec.nodeSelector: {"pool":"management"}` + "\n" +
				`set spec.tolerations: [{"operator":"Exists"},{"effect":"NoSchedule","key":"mng","operator":"Exists"}]` + "\n",
		},
		{
			"by a label and an expression", "metadata: {labels: {tier: low}}",
			`set metadata.annotations: {"volcano.sh/preemptable":"true"}` + "\n" + `set metadata.labels.added: "yes"` + "\n" +
				`set spec.nodeSelector: {"pool":"low"}` + "\n",
		},
		{"by a label alone", "metadata: {labels: {tier: low}}\nspec: {priorityClassName: high}", "take\n"},
		{
			"by its name", `metadata: {annotations: {volcano.sh/resource-group: gpu}}`, `set spec.nodeSelector: {"pool":"gpu"}` + "\n",
		},
		{
			"by an expression", "spec: {containers: [{name: a, image: a}, {name: b, image: b}]}",
			`set spec.affinity: {"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"podAffinityTerm":` +
				`{"topologyKey":"kubernetes.io/hostname"},"weight":1}]}}` + "\n",
		},
	} {
		r := Request{Operation: opCreate, Object: mergedOver(t, plainPod, c.change), SchedulerNames: []string{"celsius", "volcano"}}
		table := shipped.with(tables)
		if diff := cmp.Diff(c.want, outcome(t, table, r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		filled, _, err := table.Default(r) // the API server can call the webhook again
		if err != nil {
			t.Fatal(err)
		}
		r.Object = filled
		if again := outcome(t, table, r); again != "take\n" {
			t.Errorf("%s, asked again: %s", c.name, again)
		}
	}
}

// TestMistakesInResourceGroups checks that a mistake in a file is reported at its place.
func TestMistakesInResourceGroups(t *testing.T) {
	const head = "apiVersion: rules.celsius.dev/v1alpha1\nkind: ResourceGroups\n"
	for _, c := range []struct{ text, want string }{
		{"resourceGroup: []", `g.yaml:3:1: resourceGroup: unknown field "resourceGroup"; did you mean "resourceGroups"?`},
		{"resourceGroups:\n- {labels: {a: b}}", "g.yaml:4:3: resourceGroups[0]: resourceGroup is missing; add resourceGroup"},
		{
			"resourceGroups:\n- {resourceGroup: a, object: {key: namespcae, value: [a]}}",
			`g.yaml:4:36: resourceGroups[0].object.key: pods are told by no "namespcae"; write namespace, annotation or label, or leave it ` +
				"out for the annotation volcano.sh/resource-group",
		},
		{
			"resourceGroups:\n- {resourceGroup: a, object: {key: annotation, value: [team]}}",
			`g.yaml:4:55: resourceGroups[0].object.value: value 1, "team", is no annotation; write it as "key: value", in quotes`,
		},
		{
			"resourceGroups:\n- resourceGroup: a\n  tolerations:\n  - {key: a, operater: Exists}",
			"g.yaml:6:24: resourceGroups[0].tolerations[0].operater: a pod has no field spec.tolerations[0].operater; write it as a pod has it",
		},
		{
			"resourceGroups:\n- resourceGroup: a\n  labels: {a: 1}",
			"g.yaml:5:15: resourceGroups[0].labels.a: is the number 1, must be a string",
		},
		{
			"resourceGroups:\n- resourceGroup: a\n  affinity: '{\"nodeAffinity\": {\"required\": 1}}'",
			"g.yaml:5:13: resourceGroups[0].affinity: a pod has no field spec.affinity.nodeAffinity.required; write it as a pod has it",
		},
		{
			"resourceGroups:\n- resourceGroup: a\n  tolerations: [{operator: Sometimes}]",
			"g.yaml:4:3: resourceGroups[0]: no pod may have what the group a writes: spec.tolerations[0].operator: ",
		},
		{
			"resourceGroups:\n- resourceGroup: a\n  when: object.spec.prio == 1",
			`g.yaml:5:21: resourceGroups[0].when: Pod.spec has no field "prio"`,
		},
		{
			"resourceGroups:\n- {resourceGroup: a}\n- {resourceGroup: a}",
			`g.yaml:5:19: resourceGroups[1].resourceGroup: duplicate name "a" (first on line 4); give it a name of its own`,
		},
	} {
		tables, issues := LoadFile("g.yaml", []byte(head+c.text+"\n"))
		if len(issues) == 0 || len(tables) > 0 || !strings.HasPrefix(issues[0].Error(), c.want) {
			t.Errorf("%s:\n got %s\nwant %s", c.text, issues.Error(), c.want)
		}
	}
}

// TestPodsOfOthers checks which pods the API server asks the webhook about:
//
//   - With the shipped tables only, it asks about few pods. It accepts them if the webhook does not answer.
//   - With the rules of a cluster, it asks about every pod of our schedulers. It accepts none of them without an answer.
//   - It never asks about pods of other schedulers.
func TestPodsOfOthers(t *testing.T) {
	of := func(own []*Table) (out []*endpoint) {
		all, err := newEndpoints(Options{AdmissionRules: own}.withDefaults(), cluster{}, newMetrics())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			if e.resource == "pods" {
				out = append(out, e)
			}
		}
		return out
	}
	const ours = "object.?spec.schedulerName.orValue('') in ['celsius', 'volcano']"
	shipped := of(nil)
	if len(shipped) != 1 || !shipped[0].optional || len(shipped[0].conditions) != 2 || shipped[0].conditions[0].expression != ours {
		t.Errorf("what ships: %+v", shipped)
	}
	groups, issues := LoadFile("groups.yaml", []byte(someGroups))
	if groups == nil {
		t.Fatal(issues.Error())
	}
	own := of(groups)
	if len(own) != 2 || !own[0].mutating {
		t.Fatalf("with resource groups: %+v", own)
	}
	for _, e := range own {
		if e.optional || e.conditions[0].expression != ours || len(e.operations) != len(e.conditions) {
			t.Errorf("with resource groups: %+v", e)
		}
	}
}

// TestRelated checks the warning about a PodGroup that a pod names. There is no warning if the webhook cannot find out whether the PodGroup
// exists.
func TestRelated(t *testing.T) {
	for _, c := range []struct {
		name  string
		found *Related
		err   error
		want  string
	}{
		{"it is there", &Related{Name: "pair"}, nil, ""},
		{"it is not there", nil, nil, "there is no PodGroup pair"},
		{"nobody can tell", nil, errors.New("no answer"), ""},
	} {
		h := podHandler(t, nil)
		asked := ""
		h.find = func(_ context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*Related, error) {
			asked = kind.Kind + " " + key.String()
			return c.found, c.err
		}
		pod, err := json.Marshal(mergedOver(t, plainPod, "metadata: {annotations: {scheduling.k8s.io/group-name: pair}}"))
		if err != nil {
			t.Fatal(err)
		}
		got := h.validate(t.Context(), podRequest(pod))
		if told := strings.Join(got.Warnings, "\n"); !got.Allowed || !strings.Contains(told, c.want) || c.want == "" && told != "" {
			t.Errorf("%s: allowed %t, %q", c.name, got.Allowed, told)
		}
		if asked != "PodGroup default/pair" {
			t.Errorf("asked for %s", asked)
		}
	}
}

// TestRelatedStaysInItsNamespace checks that a look-up only uses the namespace of the request, even if the object names another namespace.
func TestRelatedStaysInItsNamespace(t *testing.T) {
	commands, issues := CommandTable()
	if commands == nil {
		t.Fatal(issues.Error())
	}
	pods := podHandler(t, nil)
	byCommand := &tableHandler{
		table: commands, metrics: newMetrics(), related: targetOf, commandActions: map[string][]string{jobKind: {"AbortJob"}},
	}
	c := fakeClient(t, interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object,
		_ ...client.GetOption,
	) error {
		if key.Namespace != "default" {
			t.Errorf("looked for %s", key)
		}
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}})
	s := testServer(t, Options{}, c)
	for _, asked := range []struct {
		h      *tableHandler
		kind   string
		object map[string]any
		want   string
	}{
		{
			pods, podKind, mergedOver(t, plainPod, "metadata: {namespace: other, annotations: {scheduling.k8s.io/group-name: pair}}"),
			"there is no PodGroup pair",
		},
		{byCommand, "Command", mergedOver(t, plainCommand, "metadata: {namespace: other}"), "there is no Job train"},
	} {
		asked.h.find = s.find
		object, err := json.Marshal(asked.object)
		if err != nil {
			t.Fatal(err)
		}
		request := podRequest(object)
		request.Kind.Kind = asked.kind
		if got := asked.h.validate(t.Context(), request); !got.Allowed || !strings.Contains(strings.Join(got.Warnings, " "), asked.want) {
			t.Errorf("%s: %v %v", asked.kind, got.Result, got.Warnings)
		}
	}
}

// TestVolcanosResourceGroups reads a file in the form of Volcano's chart, which has no kind.
func TestVolcanosResourceGroups(t *testing.T) {
	const list = `
- resourceGroup: management
  object: {key: namespace, value: [mng-ns-1]}
  schedulerName: default-scheduler
  labels: {volcano.sh/nodetype: management}
- resourceGroup: cpu
  object: {key: annotation, value: ["volcano.sh/resource-group: cpu"]}
  tolerations: [{effect: NoSchedule, key: taint, operator: Exists}]
`
	tables, issues := LoadFile("volcano-admission.conf", []byte("resourceGroups:"+list))
	if issues.Err() != nil {
		t.Fatal(issues.Error())
	}
	if len(tables) != 1 || tables[0].Kind != podKind || tables[0].Rows() != 2 || tables[0].Name != volcanosGroups {
		t.Errorf("tables: %+v", tables)
	}
	for text, want := range map[string]string{
		"apiVersion: v1\nresourceGroups:" + list:          "rules.celsius.dev/v1alpha1",
		"resourceGroups:" + list + "  labelss: {pool: a}": `did you mean "labels"`,
	} {
		if _, issues := LoadFile("volcano-admission.conf", []byte(text)); !strings.Contains(issues.Error(), want) {
			t.Errorf("%s: %q, want %q", text, issues.Error(), want)
		}
	}
}
