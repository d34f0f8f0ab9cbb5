package engine_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/join"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// ofQueues returns a policy as a policy of queues, under another name.
func ofQueues(t testing.TB, p *policy.Policy, name, queues string) *policy.Policy {
	t.Helper()
	data, err := p.Object()
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	object["metadata"] = map[string]any{"name": name}
	object["spec"].(map[string]any)["queues"] = queues
	if data, err = json.Marshal(object); err != nil {
		t.Fatal(err)
	}
	out, issues := policy.LoadStored(data)
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	return out
}

func joined(t testing.TB, base *policy.Policy, parts ...*policy.Policy) *policy.Policy {
	t.Helper()
	out, issues := join.Policies(base, parts...)
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	return out
}

// joinedPolicies joins some policies with others. Each of the others has its own queues.
func joinedPolicies(t *testing.T) map[string]*policy.Policy {
	t.Helper()
	of := map[string]*policy.Policy{}
	for _, p := range policies(t) {
		of[p.name] = p.policies[0]
	}
	out := map[string]*policy.Policy{}
	for _, c := range [][3]string{
		{"default", "house", "binpack"},
		{"taking back", "taking back along the tree", "devices"},
		{"taking back by gangs", "taking back gangs", "hours"},
		{"house", "taking back cards", "taking back CPUs"},
	} {
		out[strings.Join(c[:], " beside ")] = joined(t, of[c[0]], ofQueues(t, of[c[1]], "one", "queue.name == 'q1'"),
			ofQueues(t, of[c[2]], "two", "queue.name != 'q0'"))
	}
	kept := keptPart(t, of["house"])
	kept.OfAll = true
	var issues source.Issues
	if out["default with predicates of another"], issues = join.Parts(of["default"], kept); issues.Err() != nil {
		t.Fatal(issues)
	}
	return out
}

// keptPart returns a policy of which only the predicates are in force. One predicate denies node n1, and one fails for half of all tasks.
func keptPart(t testing.TB, p *policy.Policy) policy.Part {
	t.Helper()
	own := ofQueues(t, p, "newer", "queue.name == 'q1'")
	data, err := own.Object()
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	spec := object["spec"].(map[string]any)
	spec["tiers"] = append(spec["tiers"].([]any), map[string]any{"name": "owner", "tables": []any{map[string]any{
		"name": "owner", "inline": map[string]any{"predicates": []any{
			map[string]any{"name": "own-nodes", "expression": "node.name != 'n1'"},
			map[string]any{
				"name": "faulty", "onError": "allow",
				"expression": "!task.name.endsWith('1') || task.labels['an-absent-label'] == node.name",
			},
		}},
	}}})
	if data, err = json.Marshal(object); err != nil {
		t.Fatal(err)
	}
	out, issues := policy.LoadStored(data)
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	part := out.Part()
	part.PredicatesOnly = true
	return part
}

// TestKeptPredicates checks a fallback with predicates of a newer policy. No pod is bound to a node that these predicates deny, or for
// which they fail. If the newer policy is one of queues, this holds in its queues.
func TestKeptPredicates(t *testing.T) {
	t.Parallel()
	base := policies(t)[0].policies[0]
	for _, ofAll := range []bool{true, false} {
		part := keptPart(t, base)
		part.OfAll = ofAll
		p, issues := join.Parts(base, part)
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		bound, denied := 0, 0
		rapid.Check(t, func(t *rapid.T) {
			w := answered(t, drawRichWorld(t), base)
			run{world: w, policies: []*policy.Policy{base}, noErrors: true, after: func(_ *model.Cluster, _ *engine.Decider, plan *model.Plan) {
				for _, b := range plan.Binds {
					if b.Node == "n1" || strings.HasSuffix(b.Task, "1") {
						denied++
					}
				}
			}}.plans(t)
			run{world: w, policies: []*policy.Policy{p}, noErrors: true, after: func(c *model.Cluster, _ *engine.Decider, plan *model.Plan) {
				for _, b := range plan.Binds {
					bound++
					if task := c.Tasks[b.Task]; !ofAll && task.Job.Queue.Name != "q1" {
						continue
					}
					if b.Node == "n1" || strings.HasSuffix(b.Task, "1") {
						t.Fatalf("%s is bound to %s", b.Task, b.Node)
					}
				}
			}}.plans(t)
		})
		if bound == 0 || denied == 0 {
			t.Errorf("of all %t: %d pods were bound, and %d that the predicates deny without them", ofAll, bound, denied)
		}
	}
}

// TestPoliciesOfQueuesKeepApart checks a policy of queues at its extremes. If it serves no queue, it decides nothing. If it serves all
// queues, it decides everything except what is between queues.
func TestPoliciesOfQueuesKeepApart(t *testing.T) {
	t.Parallel()
	for _, p := range policies(t) {
		base := p.policies[0]
		none := joined(t, base, ofQueues(t, base, "lab", "queue.name == ''"))
		all := joined(t, base, ofQueues(t, base, "lab", "queue.name != ''"))
		between := slices.ContainsFunc(base.Displacing(), func(s *policy.Step) bool { return s.Word(policy.KeyScope) == "otherQueues" })
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				w := answered(t, drawRichWorld(t), base)
				plans := func(p *policy.Policy) []string {
					out := run{world: w, policies: []*policy.Policy{p}, noErrors: true}.plans(t)
					for i := range out {
						out[i] = strings.ReplaceAll(out[i], "lab:", "")
					}
					return out
				}
				want := plans(base)
				if diff := gocmp.Diff(want, plans(none)); diff != "" {
					t.Fatalf("one that serves no queue decides (-without +with):\n%s", diff)
				}
				if between {
					return // both must allow the eviction
				}
				if diff := gocmp.Diff(want, plans(all)); diff != "" {
					t.Fatalf("the same beside itself, for all queues, decides otherwise (-alone +beside):\n%s", diff)
				}
			})
		})
	}
}
