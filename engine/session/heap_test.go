package session

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// ordersOf returns rows of the three orders that read the object itself, others, computed fields, and the time.
func ordersOf() map[string]string {
	return map[string]string{
		"of itself": `
attributes:
- {on: job, name: share, expression: job.allocated.share(cluster.allocatable)}
queueOrder: [{name: held, by: queue.allocated.cpu}]
jobOrder: [{name: started, by: job.readyTasks + job.pendingBestEffort >= job.minMember}, {name: share, by: job.share}]
taskOrder: [{name: asked, by: task.request.cpu, descending: true}]
`,
		"of others": `
queueOrder: [{name: used, by: "cluster.used.cpu > 3.0 ? queue.jobCount : -queue.jobCount"}, {name: name, by: queue.name}]
jobOrder: [{name: queue, by: "job.queue.allocated.cpu > 1.5 ? job.name : ''", descending: true}, {name: roles,
    by: "job.roles.map(r, r.ready).sum()"}]
taskOrder: [{name: node, by: "task.job.allocatedTasks > 1 ? task.name : ''", descending: true}]
`,
		"of what is computed": `
attributes:
- {on: queue, name: due, settle: current, waterFill: {total: cluster.allocatable, weight: double(queue.spec.weight), demand: queue.request}}
- {on: queue, name: held, sum: {over: job, of: job.allocated}}
- {on: queue, name: share, expression: queue.held.share(queue.due)}
- {on: job, name: rank, expression: "job.queue.held.cpu > 1.5 ? job.name : ''"}
queueOrder: [{name: share, by: queue.share}]
jobOrder: [{name: rank, by: job.rank, descending: true}]
`,
		"of what an object's queue has": `
attributes:
- {on: job, name: rank, expression: "job.queue.allocated.cpu > 1.5 ? job.name : ''"}
jobOrder: [{name: rank, by: job.rank, descending: true}]
`,
		"along a tree": `
attributes:
- {on: queue, name: limits, quotaTree: {parent: queue.spec.parent, root: "'top'", total: cluster.allocatable,
    rollUp: {used: queue.allocated}}}
- {on: queue, name: share, expression: "queue.used.share(cluster.allocatable)"}
queueOrder: [{name: leaf, by: "!queue.leaf"}, {name: share, by: "queue.path.map(q, q.share)"}]
jobOrder: [{name: above, by: job.queue.root.used.cpu}]
`,
		"along a tree of one level": `
attributes:
- {on: queue, name: limits, quotaTree: {parent: "''", root: "'top'", total: cluster.allocatable, rollUp: {used: queue.allocated}}}
- {on: queue, name: share, expression: "queue.used.share(cluster.allocatable)"}
queueOrder: [{name: open, by: queue.open}, {name: share, by: "queue.path.map(q, [q.share, -q.used.cpu])", descending: true}]
`,
		"where there is no tree": `
params: {tree: {type: bool, default: false}}
attributes:
- {on: queue, name: limits, quotaTree: {parent: queue.spec.parent, root: "'top'", flat: "!params.tree", total: cluster.allocatable,
    rollUp: {used: queue.allocated}}}
- {on: queue, name: share, expression: "queue.used.share(cluster.allocatable)"}
queueOrder: [{name: share, by: "queue.path.map(q, q.share)"}]
`,
		"of a tree of shares": `
attributes:
- on: cluster
  name: tree
  hdrf: {path: "'r/' + queue.spec.parent + '/' + queue.name", weights: "'1/1/' + string(queue.spec.weight)", total: cluster.allocatable,
      allocated: job.allocated, request: job.request}
queueOrder: [{name: place, by: cluster.tree.key(queue)}]
`,
		"of variables": `
attributes:
- {on: cluster, name: placed, sum: {over: job, of: job.allocatedTasks}}
variables:
- {name: odd, expression: cluster.placed % 2 == 1}
- {name: age, on: job, expression: now - job.createdAt}
queueOrder: [{name: odd, by: "variables.odd ? queue.name : ''", descending: true}]
jobOrder: [{name: age, when: variables.odd, by: variables.age}, {name: name, by: job.name, descending: true}]
`,
	}
}

// ordersIn returns the objects of both heaps in the order of the heaps, and the pending tasks in their order.
func ordersIn(x *side) any {
	out := map[string][]string{}
	for _, q := range taken(x.queues) {
		out["queues"] = append(out["queues"], q.Name)
	}
	for _, j := range inOrder(x.jobs) {
		out["jobs"] = append(out["jobs"], j.Key)
	}
	tasks := x.c.TasksByKey()
	tasks = slices.DeleteFunc(tasks, func(t *model.Task) bool { return t.Job.Orphan || t.Job.Queue == nil })
	x.s.SortTasks(tasks)
	for _, t := range tasks {
		out["tasks"] = append(out["tasks"], t.Key)
	}
	return out
}

// taken lists queues in the order in which they are taken, and puts them back.
func taken(h *Queues) []*model.Queue {
	var out []*model.Queue
	for q, ok := h.Take(); ok; q, ok = h.Take() {
		out = append(out, q)
	}
	for _, q := range out {
		h.Put(q)
	}
	return out
}

// inOrder lists the items of a heap by the keys that it has read.
func inOrder[T comparable](h *Heap[T]) []T {
	first := h.first()
	items := h.all()
	slices.SortFunc(items, h.compare)
	var out []T
	for i, item := range items {
		if i == 0 && item != first {
			panic("the first of a heap is not its least") // a failure of the test: rapid reports it with its steps
		}
		out = append(out, item.Of)
	}
	return out
}

// TestOrdersAreWhatTheyWouldBeAfresh checks that the order of a heap is the order of newly read keys, whatever changed since the heap read
// them.
func TestOrdersAreWhatTheyWouldBeAfresh(t *testing.T) {
	t.Parallel()
	for name, table := range ordersOf() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := loaded(t, policyText(table))
			rapid.Check(t, func(t *rapid.T) { newTwins(p, ordersIn).run(t) })
		})
	}
}
