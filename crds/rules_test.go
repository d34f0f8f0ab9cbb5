package crds_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// rulesEnv is what rules of schemas are written in.
func rulesEnv(t *testing.T) *cel.Env {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("self", cel.DynType), cel.Variable("oldSelf", cel.DynType), cel.OptionalTypes())
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// broken evaluates the schema's rules (x-kubernetes-validations) on a value that is new and gives the
// message of each that does not hold, with its place.
func (s schemaNode) broken(t *testing.T, env *cel.Env, path string, value any) []string {
	t.Helper()
	out := s.brokenHere(t, env, path, value, types.OptionalNone)
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

// brokenHere does so for the rules of this schema, without those of the schemas below it.
func (s schemaNode) brokenHere(t *testing.T, env *cel.Env, path string, value any, old *types.Optional) (out []string) {
	t.Helper()
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
		verdict, _, err := program.Eval(map[string]any{"self": self, "oldSelf": old})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if verdict.Value() != true {
			out = append(out, path+": "+rule["message"].(string))
		}
	}
	return out
}

func TestRules(t *testing.T) {
	env := rulesEnv(t)
	const (
		policy = "must name either events (event, events) or an exitCode, and not both"
		claim  = "must have a volumeClaim or a volumeClaimName"
		exit   = "exitCode 0 is success and cannot have a policy; write that of a failure, or wait for the event TaskCompleted"
		tiers  = "highestTierAllowed and highestTierName exclude each other; keep one of them"
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
		{"Job", `{policies: [{action: a, exitCode: 0}]}`, []string{".policies[0]: " + exit}},
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
		{"PodGroup", `{minTaskMember: {a: 0}}`, nil},
		{
			"PodGroup", `{minTaskMember: {a: 1, b: -1}}`,
			[]string{".minTaskMember: has a number below 0; write how many pods of the task must be able to start"},
		},
		{"CronJob", `{schedule: "0 3 * * *", timeZone: Etc/UTC}`, nil},
		{"CronJob", `{schedule: "", timeZone: ""}`, []string{
			".schedule: is empty; write when Jobs are due, such as 0 3 * * * for three o'clock each night",
			".timeZone: is empty; write the name of a time zone, such as Europe/Berlin, or leave it out",
		}},
		{"SchedulingPolicy", `{tiers: [{tables: [{only: [a]}, {without: [a]}, {table: a}, {inline: {}}]}]}`, nil},
		{"SchedulingPolicy", `{tiers: [{tables: [{only: [a], without: [b]}]}]}`, nil},
		{
			"SchedulingPolicy", `{tiers: [{tables: [{table: a, inline: {}}]}]}`,
			[]string{".tiers[0].tables[0]: table and inline exclude each other; keep one of them"},
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

// TestRulesOfWholeObjects asks those about what is new, which let what is stored be changed otherwise.
func TestRulesOfWholeObjects(t *testing.T) {
	env := rulesEnv(t)
	long := strings.Repeat("x", 53)
	const (
		name   = "metadata.name has more than 52 characters; write a shorter one, as the names of Jobs and their pods begin with it"
		parent = "is the queue itself; name the queue above it, or root"
		target = "is missing; write apiVersion, kind, name and uid of a Job of this namespace or of a Queue"
		action = "is missing; write what to do, such as AbortJob or CloseQueue"
	)
	for _, c := range []struct {
		kind, object, old string // old "": it is new
		want              []string
	}{
		{"CronJob", "{metadata: {name: " + long + "}}", "", []string{name}},
		{"CronJob", "{metadata: {name: " + long[:52] + "}}", "", nil},
		{"CronJob", "{metadata: {name: " + long + "}}", "{metadata: {name: " + long + "}}", nil},
		{"Queue", "{metadata: {name: a}, spec: {parent: a}}", "", []string{parent}},
		{"Queue", "{metadata: {name: a}, spec: {parent: a}}", "{metadata: {name: a}, spec: {parent: root}}", []string{parent}},
		{"Queue", "{metadata: {name: a}, spec: {parent: a}}", "{metadata: {name: a}, spec: {parent: a}}", nil},
		{"Queue", "{metadata: {name: a}, spec: {parent: b}}", "{metadata: {name: a}}", nil},
		{"Queue", "{metadata: {name: a}}", "", nil},
		{"Command", "{metadata: {name: a}}", "", []string{target, action}},
		{"Command", "{metadata: {name: a}, action: '', target: {}}", "", []string{action}},
		{"Command", "{metadata: {name: a}, action: AbortJob, target: {}}", "", nil},
		{"Command", "{metadata: {name: a}}", "{metadata: {name: a}}", nil},
	} {
		read := func(text string) (object map[string]any) {
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			return object
		}
		object, old := read(c.object), types.OptionalNone
		if c.old != "" {
			old = types.OptionalOf(types.DefaultTypeAdapter.NativeToValue(read(c.old)))
		}
		got := definitions(t)[c.kind].schema().brokenHere(t, env, "", object, old)
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], ": ")
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %s after %s (-want +got):\n%s", c.kind, c.object, c.old, diff)
		}
	}
}

func TestSamplesKeepRules(t *testing.T) {
	env := rulesEnv(t)
	for kind, d := range definitions(t) {
		_, value := sample(t, kind)
		for _, b := range d.schema().broken(t, env, "", value) {
			t.Errorf("%s%s", kind, b)
		}
	}
}
