package engine_test

import (
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// binpackRows is the table binpack in which a row over the names of resources replaces the function binpack. The two are equal to the bit
// only as long as the sums are whole: see decision 35.
const binpackRows = `name: binpack
inline:
  variables:
  - {name: weights, expression: "{'cpu': 1.0, 'memory': 1.0}"}
  - {name: asked, on: task, expression: "['cpu', 'memory'].filter(r, task.request.get(r) != 0.0)"}
  - {name: total, on: task, expression: "variables.asked.map(r, variables.weights[r]).sum()"}
  scores:
  - name: fullest-node
    expression: >-
      variables.asked.exists(r, node.allocatable.milli(r) > 0
        && node.used.milli(r) + task.request.milli(r) > node.allocatable.milli(r)) ? 0.0
        : 100.0 * (variables.asked.filter(r, node.allocatable.milli(r) > 0)
          .map(r, variables.weights[r] * double(node.used.milli(r) + task.request.milli(r)) / double(node.allocatable.milli(r)))
          .sum() / variables.total)`

// strategyRows is the table resource-strategy-fit in which a row replaces strategyFit.
const strategyRows = `name: resource-strategy-fit
inline:
  variables:
  - {name: weights, expression: "{'cpu': 1.0, 'memory': 1.0}"}
  - {name: strategies, expression: "{'cpu': 'LeastAllocated', 'memory': 'LeastAllocated'}"}
  - {name: asked, on: task, expression: "task.request.positive().names().filter(r, r in variables.weights)"}
  - {name: total, on: task, expression: "variables.asked.map(r, variables.weights[r]).sum()"}
  scores:
  - name: by-strategy
    weight: 10
    expression: >-
      variables.asked.exists(r, node.allocatable.milli(r) > 0
        && node.used.milli(r) + task.request.milli(r) > node.allocatable.milli(r)) ? 0.0
        : 100.0 * (variables.asked.filter(r, node.allocatable.milli(r) > 0).map(r, variables.weights[r]
          * double(variables.strategies[r] == 'MostAllocated' ? node.used.milli(r) + task.request.milli(r)
            : node.allocatable.milli(r) - node.used.milli(r) - task.request.milli(r)) / double(node.allocatable.milli(r)))
          .sum() / variables.total)`

// BenchmarkFunctionsAsRows measures what binpack and strategyFit would cost as rows. They are functions: decision 35 has the figures.
func BenchmarkFunctionsAsRows(b *testing.B) {
	for _, x := range []struct{ name, table string }{
		{"binpack/function", "name: binpack"},
		{"binpack/row", binpackRows},
		{"strategyFit/function", "name: resource-strategy-fit"},
		{"strategyFit/row", strategyRows},
	} {
		text := policyOf("mode: Active", "name: priority", "name: gang", "name: predicates", "name: nodeorder", x.table)
		docs, issues := source.Parse("rows.yaml", text)
		if issues.Err() != nil {
			b.Fatal(issues)
		}
		p, issues := policy.Load(docs[0])
		if issues.Err() != nil {
			b.Fatal(issues)
		}
		for _, w := range []workload{{1000, 100, 20, "shapes"}, {5000, 100, 20, "shapes"}} {
			b.Run(x.name+"/"+w.String(), func(b *testing.B) { cold(b, p, w.objects()) })
		}
	}
}

// BenchmarkConditions measures rows behind the condition of their table, and rows that each have the same condition. Both cost the same.
func BenchmarkConditions(b *testing.B) {
	const condition = `when: "job.labels[?'x'].orValue('y') == 'y'"`
	rows := func(when string) string {
		return "  predicates: [{name: a, " + when + "expression: node.taskCount < 100}, {name: b, " + when + "expression: node.ready}]\n" +
			"  scores: [{name: a, " + when + "expression: 0 - node.taskCount}, {name: b, " + when + "expression: node.idle.cpu}]"
	}
	for _, x := range []struct{ name, table string }{
		{"none", "name: own\ninline:\n" + rows("")},
		{"rows", "name: own\ninline:\n" + rows(condition+", ")},
		{"table", "name: own\n" + condition + "\ninline:\n" + rows("")},
		{"table and rows", "name: own\n" + condition + "\ninline:\n" + rows("when: node.taskCount >= 0, ")},
		{"rows with both", "name: own\ninline:\n" + rows(strings.TrimSuffix(condition, `"`)+` && node.taskCount >= 0", `)},
	} {
		docs, issues := source.Parse("rows.yaml", policyOf("mode: Active", "name: priority", "name: gang", "name: predicates", x.table))
		if issues.Err() != nil {
			b.Fatal(issues)
		}
		p, issues := policy.Load(docs[0])
		if issues.Err() != nil {
			b.Fatal(issues)
		}
		w := workload{5000, 100, 20, "shapes"}
		b.Run(x.name+"/"+w.String(), func(b *testing.B) { cold(b, p, w.objects()) })
	}
}
