package engine_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/join"
)

// ofQueues is a policy as one of queues, under another name.
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

// joinedPolicies are some of policies with others beside them, each with queues of its own.
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
	return out
}

// A policy of queues that serves none decides nothing, and one that serves all of them decides all, but for what is between queues.
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
					return // who goes must be allowed to by both
				}
				if diff := gocmp.Diff(want, plans(all)); diff != "" {
					t.Fatalf("the same beside itself, for all queues, decides otherwise (-alone +beside):\n%s", diff)
				}
			})
		})
	}
}
