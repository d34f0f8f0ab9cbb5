package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const askedSections = `-- w --
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 4, gpus: 1}, {name: n2}]
jobs:
- {name: on, replicas: 2, min: 1, cpu: 1, node: n1}
- {name: new, gpuMilli: 500}
-- p --
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: p}
spec:
  pipeline: [allocate]
  tiers:
  - name: house
    tables:
    - name: house
      inline:
        deviceScores: [{name: fullest, expression: -gpu.free}]
        victims: [{name: tired, expression: "victim.job.labels['tired'] == 'yes'"}]
        victimOrder: [{name: youngest, by: victim.createdAt, descending: true}]
        overused: [{name: never, expression: "false", message: "never shown"}]
`

// TestAsk checks the forms of questions for which no built-in table has rows.
func TestAsk(t *testing.T) {
	t.Parallel()
	tests := []struct{ question, want string }{
		{"deviceScores new-0 n1", "deviceScores  default/new-0 on n1  -1000  house/fullest\n"},
		{"victims on-0", "victims  default/on-0  error  house/tired: no such key: tired\n"},
		{"victimOrder on-0 by new-0", "victimOrder  default/on-0 by default/new-0  2026-01-05T12:00:00Z  house/youngest\n"},
		{"victimOrder on-0", "victimOrder  default/on-0  2026-01-05T12:00:00Z  house/youngest\n"},
		{"overused default", "overused  default  no  house/never\n"},
		{"jobReady default/on", "jobReady  default/on  -  the policy has no row\n"},
		{"taskOrder on-1 on-0", "taskOrder  default/on-0 before default/on-1  by  nothing but the final order of ties\n"},
	}
	for _, test := range tests {
		r, err := RunScenario("x", []byte("# R.\npolicy p\nload w\nask "+test.question+"\ncmp o\n-- o --\n"+askedSections), ScenarioOptions{})
		if err != nil {
			t.Errorf("ask %s: %v", test.question, err)
			continue
		}
		if diff := cmp.Diff(test.want, r.Output); diff != "" {
			t.Errorf("ask %s (-want +got)\n%s", test.question, diff)
		}
	}
}

func TestAskErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ question, want string }{
		{"predicate new-0 n1", "there is no site predicate; did you mean predicates?"},
		{"predicates new-0", "write ask predicates POD NODE"},
		{"predicates new-0 n1 n2", "write ask predicates POD NODE"},
		{"predicates new-1 n1", "there is no pod default/new-1; did you mean default/new-0?"},
		{"predicates new-0 n3", "there is no node n3; did you mean n1?"},
		{"deviceScores new-0 n2", "site deviceScores asks about [task node gpu]: no gpu is given"},
		{"jobOrder on", "write ask jobOrder JOB OTHER"},
		{"jobOrder on old", "there is no job default/old; did you mean default/on?"},
		{"jobReady on new", "write ask jobReady JOB"},
		{"overused defalt", "there is no queue defalt; did you mean default?"},
		{"preemptive on cpu", `"cpu" is no amount; write it as cpu=2`},
		{"preemptive on cpus=1", "no object in the cluster has or requests cpus"},
		{"preemptable on-0 for new-0", "write ask preemptable POD by POD [scope WORD]"},
		{"evictable on-0 for new scope", "write ask evictable POD for JOB [scope WORD]"},
		{"evictable on-0 for newer", "there is no job default/newer; did you mean default/new?"},
		{"victimOrder on-0 new-0", "write ask victimOrder POD [by POD [scope WORD]]"},
		{"victims on-0 on-1", "write ask victims POD"},
	}
	for _, test := range tests {
		_, err := RunScenario("x", []byte("policy p\nload w\nask "+test.question+"\n"+askedSections), ScenarioOptions{})
		if want := "x:3: ask: " + test.want; err == nil || err.Error() != want {
			t.Errorf("ask %s: error %v, want %s", test.question, err, want)
		}
	}
}
