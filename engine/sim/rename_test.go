package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/policy"
	policytext "github.com/celsius-scheduler/celsius/engine/policy/text"
	"github.com/celsius-scheduler/celsius/engine/sim/conformance"
	"github.com/celsius-scheduler/celsius/engine/sim/corpus"
	"github.com/celsius-scheduler/celsius/engine/sim/openb"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// aliases gives every built-in table a random name, and replaces it by the old name later. A new name has the length of the old one, so
// that columns do not move.
type aliases struct {
	random *rand.Rand
	names  map[string]string // old name -> new name
}

func newAliases(seed uint64) *aliases {
	return &aliases{rand.New(rand.NewPCG(seed, 0)), map[string]string{}}
}

// rename draws from letters that form no words.
func (a *aliases) rename(table string) string {
	if name, ok := a.names[table]; ok {
		return name
	}
	for {
		letters := make([]byte, len(table))
		for i := range letters {
			letters[i] = "jkqvwxz"[a.random.IntN(7)]
		}
		name, taken := string(letters), false
		for _, other := range a.names {
			taken = taken || strings.Contains(other, name) || strings.Contains(name, other)
		}
		if !taken {
			a.names[table] = name
			return name
		}
	}
}

func (a *aliases) back(text string) string {
	for _, table := range sortedKeys(a.names) {
		text = strings.ReplaceAll(text, a.names[table], table)
	}
	return text
}

// compile is policy.Load of the policy with its built-in tables included under other names.
func (a *aliases) compile(doc *source.Document) (*policy.Policy, source.Issues) {
	text, issues := policytext.Resolve(doc, a.rename)
	if issues.Err() != nil {
		return nil, issues
	}
	docs, issues := source.Parse("renamed.yaml", text)
	if issues.Err() != nil {
		return nil, issues
	}
	return policy.Load(docs[0])
}

// TestRenameScenarios checks that no built-in table is known by its name. A copy under another name has the same result byte by byte.
func TestRenameScenarios(t *testing.T) {
	t.Parallel()
	renamed := map[string]bool{}
	for i, name := range scenarioFiles(t) {
		path, data := scenarioFile(t, name)
		plain, err := RunScenario(path, data, ScenarioOptions{World: withVolumes(), Compile: loadOnce})
		if err != nil {
			t.Fatal(err)
		}
		a := newAliases(uint64(i))
		r, err := RunScenario(path, data, ScenarioOptions{World: withVolumes(), Compile: a.compile})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(plain.Output, a.back(r.Output)); diff != "" {
			t.Errorf("%s: with its tables renamed it prints something else (-as it is +renamed)\n%s", name, diff)
		}
		for table := range a.names {
			renamed[table] = true
		}
	}
	for _, table := range policy.ShippedNames() {
		if !renamed[table] {
			t.Errorf("no scenario uses the table %s", table)
		}
	}
}

// TestRenameCases is TestRenameScenarios for the recorded cases: their plans are equal byte by byte.
func TestRenameCases(t *testing.T) {
	t.Parallel()
	cases, err := conformance.Load(corpus.Dir(t, "conformance"))
	if err != nil {
		t.Fatal(err)
	}
	plain, other := caseRunner(t), caseRunner(t)
	a := newAliases(1)
	other.Rewrite = func(text []byte) ([]byte, error) {
		docs, issues := source.Parse("case.yaml", text)
		if issues.Err() != nil {
			return nil, issues
		}
		out, issues := policytext.Resolve(docs[0], a.rename)
		return out, issues.Err()
	}
	var calls []*conformance.Case // their answers are in the differences from the recording
	for _, c := range cases {
		if c.Mode == "calls" || c.Mode == "scores" {
			calls = append(calls, c)
			continue
		}
		if diff := cmp.Diff(planText(t, plain, c), a.back(planText(t, other, c))); diff != "" {
			t.Errorf("%s: with its tables renamed it decides otherwise (-as it is +renamed)\n%s", c.ID, diff)
		}
	}
	if diff := cmp.Diff(differences(plain, calls), a.back(differences(other, calls))); diff != "" {
		t.Errorf("with their tables renamed cases answer otherwise (-as they are +renamed)\n%s", diff)
	}
}

// differences returns the differences of all cases from the recording, one line per case.
func differences(r *conformance.Runner, cases []*conformance.Case) string {
	var out strings.Builder
	for _, result := range r.Run(cases).Results {
		fmt.Fprintln(&out, result.Case.ID, result.Skip, result.Differences)
	}
	return out.String()
}

func caseRunner(t *testing.T) *conformance.Runner {
	t.Helper()
	r, err := conformance.NewRunner()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// planText returns the plan of a case as JSON; "null" if it has none.
func planText(t *testing.T, r *conformance.Runner, c *conformance.Case) string {
	t.Helper()
	plan, err := r.Decide(c)
	if err != nil {
		t.Fatalf("%s: %v", c.ID, err)
	}
	text, err := json.MarshalIndent(plan, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRenameTrace is TestRenameScenarios for one run of the trace, under a policy of built-in tables.
func TestRenameTrace(t *testing.T) {
	t.Parallel()
	trace, err := openb.Load(corpus.Dir(t, "traces/openb"), "default")
	if err != nil {
		t.Fatal(err)
	}
	docs, issues := source.Parse("pack.yaml", []byte(`
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: pack}
spec:
  pipeline: [allocate]
  tiers:
  - name: first
    tables: [{name: gang}, {name: predicates}, {name: binpack}]
`))
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	run := func(compile func(*source.Document) (*policy.Policy, source.Issues)) *openb.Result {
		p, issues := compile(docs[0])
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		r, err := trace.Run(p, 42)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if diff := cmp.Diff(run(policy.Load), run(newAliases(1).compile)); diff != "" {
		t.Errorf("with its tables renamed the trace goes otherwise (-as it is +renamed)\n%s", diff)
	}
}
