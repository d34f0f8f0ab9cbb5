package crds_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// broken evaluates the schema's rules (x-kubernetes-validations) on a value and gives the
// message of each that does not hold, with its place.
func (s schemaNode) broken(t *testing.T, env *cel.Env, path string, value any) []string {
	t.Helper()
	var out []string
	list, _ := s["x-kubernetes-validations"].([]any)
	for _, r := range list {
		rule, _ := r.(map[string]any)
		ast, issues := env.Compile(rule["rule"].(string))
		if issues.Err() != nil {
			t.Fatalf("%s: %v", path, issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		self := value
		if text, ok := value.(string); ok && s["format"] == "date-time" {
			if self, err = time.Parse(time.RFC3339, text); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		verdict, _, err := program.Eval(map[string]any{"self": self})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if verdict.Value() != true {
			out = append(out, path+": "+rule["message"].(string))
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			if p := s.property(name); p != nil {
				out = append(out, p.broken(t, env, path+"."+name, v[name])...)
			}
		}
	case []any:
		for i, below := range v {
			if items := s.child("items"); items != nil {
				out = append(out, items.broken(t, env, fmt.Sprintf("%s[%d]", path, i), below)...)
			}
		}
	}
	return out
}

func TestRules(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("self", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	const (
		policy = "must name either events (event, events) or an exitCode, and not both"
		claim  = "must have a volumeClaim or a volumeClaimName"
		tiers  = "highestTierAllowed and highestTierName exclude each other"
	)
	for _, c := range []struct {
		kind, spec string
		want       []string
	}{
		{"Job", `{tasks: [{replicas: 1, minAvailable: 1}, {replicas: 1}, {}]}`, nil},
		{
			"Job", `{tasks: [{replicas: 1}, {replicas: 1, minAvailable: 2}]}`,
			[]string{".tasks[1]: minAvailable must not be greater than replicas"},
		},
		{"Job", `{tasks: [{minAvailable: 1}]}`, []string{".tasks[0]: minAvailable must not be greater than replicas"}},
		{"Job", `{policies: [{action: AbortJob, event: PodFailed}, {action: a, events: [PodFailed]}, {action: a, exitCode: 1}, {action: a, ` +
			`exitCode: 1, events: []}]}`, nil},
		{"Job", `{policies: [{action: AbortJob}]}`, []string{".policies[0]: " + policy}},
		{"Job", `{policies: [{action: a, events: []}]}`, []string{".policies[0]: " + policy}},
		{"Job", `{policies: [{action: a, events: [PodFailed], exitCode: 1}]}`, []string{".policies[0]: " + policy}},
		{"Job", `{tasks: [{policies: [{action: a, event: PodFailed, exitCode: 1}]}]}`, []string{".tasks[0].policies[0]: " + policy}},
		{"Job", `{policies: [{action: a, exitCode: 0}]}`, []string{".policies[0]: exitCode 0 is success and cannot have a policy"}},
		{"Job", `{policies: [{event: PodFailed}]}`, []string{".policies[0]: must say what to do: an action such as RestartJob"}},
		{"Job", `{networkTopology: {highestTierAllowed: 1, highestTierName: a}}`, []string{".networkTopology: " + tiers}},
		{"Job", `{tasks: [{partitionPolicy: {totalPartitions: 2, minPartitions: 2}}]}`, nil},
		{
			"Job", `{tasks: [{partitionPolicy: {totalPartitions: 2, minPartitions: 3}}]}`,
			[]string{".tasks[0].partitionPolicy: minPartitions must not be greater than totalPartitions"},
		},
		{"Job", `{volumes: [{volumeClaimName: a}, {volumeClaim: {}}, {volumeClaimName: a, volumeClaim: {}}]}`, nil},
		{"Job", `{volumes: [{mountPath: /a}, {volumeClaimName: ""}]}`, []string{".volumes[0]: " + claim, ".volumes[1]: " + claim}},
		{
			"PodGroup", `{networkTopology: {highestTierAllowed: 1, highestTierName: ""}, subGroupPolicy: [{networkTopology: {highestTierName: a}}]}`,
			nil,
		},
		{"PodGroup", `{networkTopology: {highestTierAllowed: 1, highestTierName: a}}`, []string{".networkTopology: " + tiers}},
		{
			"PodGroup", `{subGroupPolicy: [{networkTopology: {highestTierAllowed: 1, highestTierName: a}}]}`,
			[]string{".subGroupPolicy[0].networkTopology: " + tiers},
		},
		{"SchedulingPolicy", `{tiers: [{tables: [{only: [a]}, {without: [a]}, {table: a}, {inline: {}}]}]}`, nil},
		{"SchedulingPolicy", `{tiers: [{tables: [{only: [a], without: [b]}]}]}`, nil},
		{
			"SchedulingPolicy", `{tiers: [{tables: [{table: a, inline: {}}]}]}`,
			[]string{".tiers[0].tables[0]: table and inline exclude each other"},
		},
	} {
		var spec map[string]any
		if err := yaml.Unmarshal([]byte(c.spec), &spec); err != nil {
			t.Fatal(err)
		}
		got := definitions(t)[c.kind].schema().property("spec").broken(t, env, "", spec)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.kind, c.spec, diff)
		}
	}
}

func TestSamplesKeepRules(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("self", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	for kind, d := range definitions(t) {
		_, value := sample(t, kind)
		for _, b := range d.schema().broken(t, env, "", value) {
			t.Errorf("%s%s", kind, b)
		}
	}
}
