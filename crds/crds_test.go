package crds_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/crds"
	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// maxManifest is the largest compact JSON of a manifest, in bytes: client-side apply
// keeps a copy in an annotation, and annotations hold 256 KiB in all.
const maxManifest = 200 << 10

// column is a column of kubectl get.
type column struct {
	Name, Type, JSONPath string
	Priority             int
}

// definition is what the tests look at in a manifest.
type definition struct {
	Metadata struct{ Name string }
	Spec     struct {
		Group string
		Scope string
		Names struct {
			Kind, ListKind, Plural, Singular string
			ShortNames                       []string
		}
		Versions []struct {
			Name            string
			Served, Storage bool
			Columns         []column                             `json:"additionalPrinterColumns"`
			Schema          struct{ OpenAPIV3Schema schemaNode } `json:"schema"`
			Subresources    map[string]map[string]any            `json:"subresources"`
		}
	}
}

func (d definition) schema() schemaNode { return d.Spec.Versions[0].Schema.OpenAPIV3Schema }

// definitions reads every embedded manifest, by kind.
func definitions(t *testing.T) map[string]definition {
	t.Helper()
	files, err := crds.Manifests.ReadDir("manifests")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]definition{}
	for _, f := range files {
		raw, err := crds.Manifests.ReadFile("manifests/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		var d definition
		if err := yaml.Unmarshal(raw, &d); err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		if len(d.Spec.Versions) != 1 || !d.Spec.Versions[0].Served || !d.Spec.Versions[0].Storage {
			t.Fatalf("%s: want one version, served and stored", f.Name())
		}
		if want := d.Spec.Group + "_" + d.Spec.Names.Plural + ".yaml"; f.Name() != want {
			t.Errorf("%s should be named %s", f.Name(), want)
		}
		out[d.Spec.Names.Kind] = d
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

func TestSize(t *testing.T) {
	files, err := crds.Manifests.ReadDir("manifests")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := crds.Manifests.ReadFile("manifests/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		compact, err := yaml.YAMLToJSON(raw)
		if err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		if len(compact) >= maxManifest {
			t.Errorf("%s is %d bytes as JSON, want less than %d", f.Name(), len(compact), maxManifest)
		}
	}
}

func TestNames(t *testing.T) {
	type names struct {
		Group, Version, Scope, Plural string
		Short                         []string
		Status                        bool
		Columns                       []column
	}
	age := column{Name: "AGE", Type: "date", JSONPath: ".metadata.creationTimestamp"}
	queue := column{Name: "QUEUE", Type: "string", JSONPath: ".spec.queue", Priority: 1}
	condition := func(name, of string) column {
		return column{Name: name, Type: "string", JSONPath: fmt.Sprintf(`.status.conditions[?(@.type==%q)].status`, of)}
	}
	want := map[string]names{
		"Job": {
			Group: "batch.volcano.sh", Version: "v1alpha1", Scope: "Namespaced", Plural: "jobs",
			Short: []string{"vcjob", "vj"}, Status: true,
			Columns: []column{
				{Name: "STATUS", Type: "string", JSONPath: ".status.state.phase"},
				{Name: "minAvailable", Type: "integer", JSONPath: ".status.minAvailable"},
				{Name: "RUNNINGS", Type: "integer", JSONPath: ".status.running"},
				age, queue,
			},
		},
		"CronJob": {
			Group: "batch.volcano.sh", Version: "v1alpha1", Scope: "Namespaced", Plural: "cronjobs", Short: []string{"cronvcjob", "cronvj"},
			Status: true,
		},
		"JobFlow": {
			Group: "flow.volcano.sh", Version: "v1alpha1", Scope: "Namespaced", Plural: "jobflows", Short: []string{"jf"}, Status: true,
			Columns: []column{
				{Name: "Status", Type: "string", JSONPath: ".status.state.phase"},
				{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
			},
		},
		"JobTemplate": {
			Group: "flow.volcano.sh", Version: "v1alpha1", Scope: "Namespaced", Plural: "jobtemplates", Short: []string{"jt"}, Status: true,
		},
		"Command": {Group: "bus.volcano.sh", Version: "v1alpha1", Scope: "Namespaced", Plural: "commands"},
		"Numatopology": {
			Group: "nodeinfo.volcano.sh", Version: "v1alpha1", Scope: "Cluster", Plural: "numatopologies", Short: []string{"numatopo"},
		},
		"PodGroup": {
			Group: "scheduling.volcano.sh", Version: "v1beta1", Scope: "Namespaced", Plural: "podgroups",
			Short: []string{"pg", "podgroup-v1beta1"},
			Columns: []column{
				{Name: "STATUS", Type: "string", JSONPath: ".status.phase"},
				{Name: "minMember", Type: "integer", JSONPath: ".spec.minMember"},
				{Name: "RUNNINGS", Type: "integer", JSONPath: ".status.running"},
				age, queue,
			},
		},
		"Queue": {
			Group: "scheduling.volcano.sh", Version: "v1beta1", Scope: "Cluster", Plural: "queues",
			Short: []string{"q", "queue-v1beta1"}, Status: true,
			Columns: []column{
				{Name: "PARENT", Type: "string", JSONPath: ".spec.parent"},
				{Name: "STATE", Type: "string", JSONPath: ".status.state"},
				{
					Name: "SHARES-OVER-PARENT", Type: "string", JSONPath: `.status.conditions[?(@.type=="SharesOverParent")].status`, Priority: 1,
				},
			}, // all but the first are ours
		},
		"SchedulingPolicy": {
			Group: "scheduling.celsius.dev", Version: "v1alpha1", Scope: "Cluster", Plural: "schedulingpolicies",
			Short: []string{"spol"}, Status: true,
			Columns: []column{
				{Name: "MODE", Type: "string", JSONPath: ".spec.mode"},
				condition("COMPILED", "Compiled"),
				condition("ACTIVE", "Active"),
				{Name: "RULES", Type: "integer", JSONPath: ".status.ruleCount"},
				{Name: "WARNINGS", Type: "integer", JSONPath: ".status.warningCount"},
				age,
			},
		},
	}
	got := map[string]names{}
	for kind, d := range definitions(t) {
		v := d.Spec.Versions[0]
		_, status := v.Subresources["status"]
		got[kind] = names{
			Group: d.Spec.Group, Version: v.Name, Scope: d.Spec.Scope, Plural: d.Spec.Names.Plural,
			Short: d.Spec.Names.ShortNames, Status: status, Columns: v.Columns,
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// foreign are the fields whose types belong to Kubernetes: their insides are not in the
// tables below.
var foreign = []string{
	"spec.tasks[].template", "spec.volumes[].volumeClaim", "spec.subGroupPolicy[].labelSelector", "target", "status.conditions[]",
	"metadata", "status.active[]",
}

// ofPatch is where what is patched of a Job begins in a JobFlow.
const ofPatch = "spec.flows[].patch.jobSpec"

// ofJob is a path in a Job of one in the Job of a CronJob, or in a patch of a JobFlow.
func ofJob(path string) string {
	if below, ok := strings.CutPrefix(path, ofPatch); ok {
		return "spec" + below
	}
	return strings.TrimPrefix(path, "spec.jobTemplate.")
}

// jobsWithin are the fields of what is wanted of a Job, as a kind has them that makes Jobs.
func jobsWithin(kind string) (out []string) {
	filledIn := regexp.MustCompile(` =\S+`)
	for line := range strings.SplitSeq(strings.TrimSpace(fields["Job"]), "\n") {
		below, ok := strings.CutPrefix(line, "spec")
		switch {
		case !ok:
		case kind == "CronJob":
			out = append(out, "spec.jobTemplate."+line)
		case kind == "JobTemplate":
			out = append(out, line)
		case kind == "JobFlow":
			out = append(out, filledIn.ReplaceAllString(ofPatch+below, ""))
		}
	}
	return out
}

func insideForeign(kind, path string) bool {
	path = ofJob(path)
	return slices.ContainsFunc(foreign, func(f string) bool {
		if f == "status.conditions[]" && kind != "SchedulingPolicy" {
			return false
		}
		return strings.HasPrefix(path, f+".")
	})
}

// TestFields holds the schema of each of Volcano's kinds against the list of its fields:
// one that is missing, changed or not in the list fails.
func TestFields(t *testing.T) {
	for kind, text := range fields {
		t.Run(kind, func(t *testing.T) {
			var got []string
			definitions(t)[kind].schema().each("", func(path string, s schemaNode) {
				if path == "" || path == "apiVersion" || path == "kind" || path == "metadata" || insideForeign(kind, path) {
					return
				}
				got = append(got, path+" "+s.summary())
			})
			want := strings.Split(strings.TrimSpace(text), "\n")
			want = append(want, jobsWithin(kind)...)
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSections asks that an inline table has each section of the language, with rows
// that are keyed by name, keep what the schema does not know, and are described.
func TestSections(t *testing.T) {
	const inline = "spec.tiers[].tables[].inline"
	d := definitions(t)["SchedulingPolicy"]
	sections := map[string]bool{}
	for _, s := range []string{
		"queueOrder", "jobOrder", "taskOrder", "jobValid", "jobReady", "jobPipelined", "jobStarving", "jobEnqueueable", "overused",
		"allocatable", "beyondShare", "bindable", "preemptive", "taskFeasible", "predicates", "scores", "devicePredicates", "deviceScores",
		"preemptable", "reclaimable", "evictable",
		"victims", "victimOrder", "victimCost", "beyondDue", "attributes", "variables",
	} {
		sections[inline+"."+s] = true
	}
	keyed := map[string]bool{
		"spec.actions": true, "spec.tiers": true, "spec.tiers[].tables": true, "status.schedulers": true, "status.shadows": true,
		"status.conditions": true,
	}
	maps.Copy(keyed, sections)
	d.schema().each("", func(path string, s schemaNode) {
		if s["type"] == "array" && s["x-kubernetes-list-type"] == "map" {
			if !keyed[path] {
				t.Errorf("%s is a list keyed by name that no test expects", path)
			}
			delete(keyed, path)
		}
		rows := sections[strings.TrimSuffix(path, "[]")] && strings.HasSuffix(path, "[]")
		if rows && s["x-kubernetes-preserve-unknown-fields"] != true {
			t.Errorf("%s does not keep unknown fields", path)
		}
	})
	for _, path := range sortedKeys(keyed) {
		t.Errorf("%s is not a list keyed by name", path)
	}
}

// TestDescriptions asks that every field of ours is described, and that nothing is below
// the two types that would make the manifest too large.
func TestDescriptions(t *testing.T) {
	for kind, d := range definitions(t) {
		d.schema().each("", func(path string, s schemaNode) {
			text, _ := s["description"].(string)
			large := strings.HasPrefix(ofJob(path), "spec.tasks[].template.") || strings.HasPrefix(ofJob(path), "spec.volumes[].volumeClaim.")
			leaf := strings.HasSuffix(path, "[]") || strings.HasSuffix(path, "{}")
			switch {
			case large && text != "":
				t.Errorf("%s: %s has a description: %q", kind, path, text)
			case !large && !leaf && path != "metadata" && text == "":
				t.Errorf("%s: %s has no description", kind, path)
			case strings.Contains(text, "More info:") || strings.Contains(text, "git.k8s.io"):
				t.Errorf("%s: %s has a description that is not ours: %q", kind, path, text)
			}
		})
	}
}

// samples maps each kind to an empty value of its Go type; testdata has an object of
// each that uses every field.
func samples() map[string]runtime.Object {
	return map[string]runtime.Object{
		"Job":              &batchv1alpha1.Job{},
		"Command":          &busv1alpha1.Command{},
		"CronJob":          &batchv1alpha1.CronJob{},
		"JobFlow":          &flowv1alpha1.JobFlow{},
		"JobTemplate":      &flowv1alpha1.JobTemplate{},
		"Numatopology":     &nodeinfov1alpha1.Numatopology{},
		"PodGroup":         &schedulingv1beta1.PodGroup{},
		"Queue":            &schedulingv1beta1.Queue{},
		"SchedulingPolicy": &policyv1alpha1.SchedulingPolicy{},
	}
}

func sample(t testing.TB, kind string) (raw []byte, value map[string]any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + strings.ToLower(kind) + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, &value); err != nil {
		t.Fatal(err)
	}
	return raw, value
}

// TestSamplesUseEveryField keeps the round trip and the structure test honest.
func TestSamplesUseEveryField(t *testing.T) {
	for kind, d := range definitions(t) {
		_, value := sample(t, kind)
		paths := map[string]bool{}
		usedFields(d.schema(), "", value, paths)
		used := map[string]bool{}
		for path := range paths {
			used[shared(path)] = true
		}
		d.schema().each("", func(path string, _ schemaNode) {
			if !insideForeign(kind, path) && !used[shared(path)] {
				t.Errorf("testdata has no %s with %s", kind, path)
			}
		})
	}
}

// shared cuts off where a path leads to a type that several fields have: of such a type
// it is enough that a sample uses each field once.
func shared(path string) string {
	if _, below, ok := strings.Cut(path, "networkTopology."); ok {
		return "networkTopology." + below
	}
	if _, below, ok := strings.Cut(path, "olicies[]"); ok {
		return "policies[]" + below
	}
	section, field, ok := strings.Cut(path, "[].")
	for ok && !strings.Contains(section, "inline.") {
		_, section, _ = strings.Cut(path, ".inline.")
		section, field, ok = strings.Cut("inline."+section, "[].")
	}
	if ok && section != "inline.attributes" && section != "inline.variables" && section != "inline." {
		return "row." + field
	}
	return path
}

func usedFields(s schemaNode, path string, value any, used map[string]bool) {
	used[path] = true
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			if p := s.property(name); p != nil {
				usedFields(p, strings.TrimPrefix(path+"."+name, "."), below, used)
			} else if values := s.child("additionalProperties"); values != nil {
				usedFields(values, path+"{}", below, used)
			}
		}
	case []any:
		for _, below := range v {
			if items := s.child("items"); items != nil {
				usedFields(items, path+"[]", below, used)
			}
		}
	}
}

// TestRoundTrip reads objects strictly into the Go types and writes them: nothing that a
// user wrote may be lost or changed.
func TestRoundTrip(t *testing.T) {
	for kind, object := range samples() {
		t.Run(kind, func(t *testing.T) {
			raw, want := sample(t, kind)
			if err := yaml.UnmarshalStrict(raw, object); err != nil {
				t.Fatalf("strict read: %v", err)
			}
			if diff := cmp.Diff(want, withoutNulls(t, object)); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, withoutNulls(t, object.DeepCopyObject())); diff != "" {
				t.Errorf("deep copy (-want +got):\n%s", diff)
			}
		})
	}
}

// withoutNulls writes an object as JSON and reads it again, less what Go's types write
// for fields that were not set, as the API server prunes it.
func withoutNulls(t *testing.T, object any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var value map[string]any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	dropEmpty(value)
	return value
}

func dropEmpty(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			dropEmpty(below)
			m, isMap := below.(map[string]any)
			if below == nil || isMap && len(m) == 0 && emptyByGo(name) {
				delete(v, name)
			}
		}
	case []any:
		for _, below := range v {
			dropEmpty(below)
		}
	}
}

// emptyByGo says which objects Go writes although nothing is in them.
func emptyByGo(name string) bool {
	return slices.Contains([]string{"metadata", "status", "state", "resources", "guarantee", "reservation"}, name)
}

// TestSamplesFitSchema asks of the schema what TestRoundTrip asks of the Go types.
func TestSamplesFitSchema(t *testing.T) {
	for kind, d := range definitions(t) {
		_, value := sample(t, kind)
		for _, problem := range d.schema().check("", value) {
			t.Errorf("%s: %s", kind, problem)
		}
	}
}

// TestSchemaRefuses shows that the schema, and the walk over it, refuse what is wrong.
func TestSchemaRefuses(t *testing.T) {
	for _, c := range []struct {
		kind, object, want string
	}{
		{"Job", `{spec: {tasks: []}}`, "spec.tasks: 0 items, want 1"},
		{"Job", `{spec: {tasks: [{name: Worker}]}}`, "spec.tasks[0].name: Worker, want ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
		{"Job", `{spec: {minAvailable: -1}}`, "spec.minAvailable: -1, want at least 0"},
		{"Job", `{spec: {minAvailable: two}}`, "spec.minAvailable: two, want integer"},
		{"Job", `{spec: {minSucces: 2}}`, "spec.minSucces: would be pruned"},
		{"Job", `{spec: {volumes: [{mountPath: "a:b"}]}}`, "spec.volumes[0].mountPath: a:b, want ^[^:]+$"},
		{
			"Job", `{spec: {tasks: [{policies: [{event: PodFail}]}]}}`,
			"spec.tasks[0].policies[0].event: PodFail, want one of [* PodPending PodRunning PodFailed PodEvicted Unknown TaskCompleted TaskFailed " +
				"OutOfSync CommandIssued JobUpdated]",
		},
		{"Job", `{spec: {tasks: [{template: {spec: {containers: [{image: a}]}}}]}}`, "spec.tasks[0].template.spec.containers[0].name: missing"},
		{"Queue", `{spec: {weight: 0}}`, "spec.weight: 0, want at least 1"},
		{"Queue", `{spec: {weight: 65536}}`, "spec.weight: 65536, want at most 65535"},
		{
			"Queue", `{spec: {capability: {cpu: many}}}`,
			`spec.capability.cpu: many, want ^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?$`,
		},
		{"SchedulingPolicy", `{spec: {mode: Shade}}`, "spec.mode: Shade, want one of [Active Paused Shadow]"},
		{"SchedulingPolicy", `{spec: {tiers: [{tables: []}]}}`, "spec.tiers[0].name: missing"},
	} {
		var value map[string]any
		if err := yaml.Unmarshal([]byte(c.object), &value); err != nil {
			t.Fatal(err)
		}
		got := definitions(t)[c.kind].schema().check("", value)
		if diff := cmp.Diff([]string{c.want}, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.kind, c.object, diff)
		}
	}
}

// TestSchemaKeeps shows what the schema does not list and must not lose.
func TestSchemaKeeps(t *testing.T) {
	for _, c := range []struct{ kind, object string }{
		{"Job", `{spec: {tasks: [{template: {metadata: {creationTimestamp: "2026-01-02T15:04:05Z", ownerReferences: [], more: {a: 1}}}}]}}`},
		{"SchedulingPolicy", `{spec: {tiers: [{name: a, tables: [{name: b, inline: {predicate: [], predicates: [{name: c, expresion: ` +
			`"true"}]}}]}]}}`},
		{"SchedulingPolicy", `{spec: {tiers: [{name: a, tables: [{name: b, params: {c: 1.5, d: {e: [f]}}}]}]}}`},
	} {
		var value map[string]any
		if err := yaml.Unmarshal([]byte(c.object), &value); err != nil {
			t.Fatal(err)
		}
		for _, problem := range definitions(t)[c.kind].schema().check("", value) {
			t.Errorf("%s %s: %s", c.kind, c.object, problem)
		}
	}
}

func TestScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		batchv1alpha1.AddToScheme, busv1alpha1.AddToScheme, flowv1alpha1.AddToScheme, nodeinfov1alpha1.AddToScheme,
		schedulingv1beta1.AddToScheme,
		policyv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for kind, d := range definitions(t) {
		version := schema.GroupVersion{Group: d.Spec.Group, Version: d.Spec.Versions[0].Name}
		for _, k := range []string{kind, kind + "List"} {
			if _, err := scheme.New(version.WithKind(k)); err != nil {
				t.Errorf("%s: %v", k, err)
			}
		}
	}
}
