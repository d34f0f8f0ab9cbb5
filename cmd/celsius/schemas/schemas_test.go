package schemas

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/celsius-scheduler/celsius/rules/source"
)

const top = "../../../"

// validators compiles the schemas of all kinds, and the schema that accepts any kind. It uses a validator of another project.
func validators(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	add := func(name string, s *Schema) {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("file:///"+name, doc); err != nil {
			t.Fatal(err)
		}
	}
	for kind, s := range all {
		add(kind, s)
	}
	add("any", Any(all, func(kind string) string { return "file:///" + kind }))
	byKind := map[string]*jsonschema.Schema{}
	for _, name := range append(slices.Collect(keys(all)), "any") {
		s, err := c.Compile("file:///" + name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		byKind[name] = s
	}
	return byKind
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// documents returns the documents of all YAML files in these folders, as JSON values.
func documents(t *testing.T, folders ...string) map[string][]map[string]any {
	t.Helper()
	out := map[string][]map[string]any{}
	for _, folder := range folders {
		err := filepath.WalkDir(top+folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name := strings.TrimPrefix(path, top)
			out[name] = parsed(t, name, data)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// parsed reads documents in the same way as editors: the word on is a string.
func parsed(t *testing.T, name string, data []byte) (out []map[string]any) {
	t.Helper()
	docs, issues := source.Parse(name, data)
	if issues.Err() != nil {
		t.Fatal(issues.Error())
	}
	for _, d := range docs {
		text, err := json.Marshal(d.Root.Any())
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if fields, ok := v.(map[string]any); ok {
			out = append(out, fields)
		}
	}
	return out
}

// TestFiles checks that all shipped files and samples match the schemas of their kinds. Every kind must occur, except the kinds that only
// programs write.
func TestFiles(t *testing.T) {
	valid := validators(t)
	seen := map[string]int{}
	for name, docs := range documents(t, "rules", "statemachines", "samples") {
		for _, doc := range docs {
			kind, _ := doc["kind"].(string)
			if valid[kind] == nil || strings.HasPrefix(name, "samples/invalid/policy") || kind == "Job" && doc["apiVersion"] == "batch/v1" {
				continue
			}
			if strings.HasPrefix(name, "samples/invalid/") && !strings.Contains(name, "/given/") {
				continue
			}
			seen[kind]++
			if err := valid[kind].Validate(doc); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := valid["any"].Validate(doc); err != nil {
				t.Errorf("%s, as any kind: %v", name, err)
			}
		}
	}
	for kind := range valid {
		if seen[kind] == 0 && kind != "any" && kind != "Numatopology" {
			t.Errorf("no file is a %s", kind)
		}
	}
}

const policyHead = "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: p}\nspec:\n"

const rulesHead = "apiVersion: rules.celsius.dev/v1alpha1\nmetadata: {name: x}\n"

// TestBroken checks that the validator finds mistakes. Its message must name the place.
func TestBroken(t *testing.T) {
	valid := validators(t)
	tier := func(entry string) string { return policyHead + "  tiers: [{name: t, tables: [" + entry + "]}]\n" }
	for name, c := range map[string]struct{ text, place string }{
		"a field of a policy":        {policyHead + "  pipline: [enqueue]\n", "/spec"},
		"no kind of table":           {tier("{name: gangs}"), "/spec/tiers/0/tables/0/name"},
		"no table under table":       {tier("{name: x, table: gangs}"), "/spec/tiers/0/tables/0/table"},
		"a table twice":              {tier("{name: x, table: gang, inline: {}}"), "/spec/tiers/0/tables/0"},
		"a param of another":         {tier("{name: gang, params: {factor: 1}}"), "/params"},
		"a param under another name": {tier("{name: mine, table: overcommit, params: {factr: 1}}"), "/params"},
		"a param out of bounds":      {tier("{name: overcommit, params: {factor: 0.5}}"), "/params/factor"},
		"a param of another type":    {tier("{name: overcommit, params: {factor: much}}"), "/params/factor"},
		"a section to switch":        {tier("{name: gang, without: [jobRedy]}"), "/without/0"},
		"a key of another section": {
			tier("{name: x, inline: {jobReady: [{name: a, expression: 'true', weight: 2}]}}"),
			"/jobReady/0",
		},
		"expression for by": {
			tier("{name: x, inline: {jobOrder: [{name: a, expression: job.priority}]}}"),
			"/jobOrder/0",
		},
		"a word of onError": {
			tier("{name: x, inline: {jobReady: [{name: a, expression: 'true', onError: no}]}}"),
			"/onError",
		},
		"an argument is missing":      {tier("{name: x, inline: {attributes: [{on: queue, name: a, sum: {over: job}}]}}"), "/sum"},
		"no verb":                     {policyHead + "  actions: [{name: a, steps: [{verb: put}]}]\n", "/steps/0/verb"},
		"a parameter of another verb": {policyHead + "  actions: [{name: a, steps: [{verb: admit, nodes: byCost}]}]\n", "/steps/0"},
		"a word of a parameter": {
			policyHead + "  actions: [{name: a, steps: [{verb: displace, nodes: byLuck}]}]\n",
			"/steps/0/nodes",
		},
		"a field of a table":    {rulesHead + "kind: RuleTable\nscore: []\n", "at ''"},
		"a type of a param":     {rulesHead + "kind: RuleTable\nparams: {a: {type: float, default: 1}}\n", "/params/a/type"},
		"a key of a job plugin": {rulesHead + "kind: JobPlugin\ndescription: d\npods: [{name: a, enw: []}]\n", "/pods/0"},
		"a loop without a list": {
			rulesHead + "kind: JobPlugin\ndescription: d\npods: [{name: a, forEach: [{itm: x}]}]\n",
			"/forEach/0",
		},
		"rules for no kind":       {rulesHead + "kind: AdmissionRules\nof: Deployment\n", "/of"},
		"a row without a message": {rulesHead + "kind: AdmissionRules\nof: Job\nvalidations: [{name: a}]\n", "/validations/0"},
		"a selector": {
			rulesHead + "kind: ResourceGroups\nresourceGroups: [{resourceGroup: a, object: {key: node}}]\n", "/object/key",
		},
		"a machine for nobody": {rulesHead + "kind: StateMachine\nmachine: jop\n", "/machine"},
		"a node of a world":    {"apiVersion: sim.celsius.dev/v1alpha1\nkind: World\nnodes: [{nam: n}]\n", "/nodes/0"},
		"a field of a Job": {
			"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {minAvailble: 1}\n", "/spec",
		},
		"a queue of no weight": {
			"apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\nspec: {weight: heavy}\n", "/spec/weight",
		},
	} {
		doc := parsed(t, name, []byte(c.text))[0]
		kind, _ := doc["kind"].(string)
		for _, schema := range []string{kind, "any"} {
			if err := valid[schema].Validate(doc); err == nil || !strings.Contains(err.Error(), c.place) {
				t.Errorf("%s, by the schema of %s: %v; want a mistake at %s", name, schema, err, c.place)
			}
		}
	}
	other := parsed(t, "another", []byte("apiVersion: apps/v1\nkind: Deployment\nx: 1\n"))[0]
	if err := valid["any"].Validate(other); err != nil {
		t.Errorf("another kind: %v", err)
	}
}
