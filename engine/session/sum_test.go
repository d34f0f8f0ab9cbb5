package session

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// accounts contains attributes that add up, of every type and settlement, over jobs and queues, and attributes that read them.
const accounts = `
attributes:
- {on: queue, name: held, settle: current, sum: {over: job, of: job.allocated}}
- {on: queue, name: beyond, sum: {over: job, of: job.allocated.over(job.minResources)}}
- {on: queue, name: promised, sum: {over: job, when: "job.hasMinResources && job.phase == 'Inqueue'",
    of: "job.minResources.over(job.admittedNow ? resources() : job.allocated)"}}
- {on: queue, name: waiting, sum: {over: job, of: job.pendingTasks}}
- {on: queue, name: cores, sum: {over: job, when: job.allocatedTasks > 0, of: job.allocated.cpu}}
- {on: queue, name: tenths, sum: {over: job, of: job.request.scale(0.1)}}
- {on: queue, name: roles, sum: {over: job, of: "job.roles.map(r, r.ready).sum()"}}
- {on: queue, name: full, sum: {over: job, when: "cluster.used.cpu > 3.0", of: job.request}}
- {on: queue, name: ofItsQueue, sum: {over: job, of: "job.queue.allocated.cpu + 1.0"}}
- {on: cluster, name: held, sum: {over: queue, of: queue.allocated}}
- {on: cluster, name: asked, settle: cycle, sum: {over: job, of: job.request}}
- {on: cluster, name: inBackfill, sum: {over: job, when: "action == 'backfill'", of: job.taskCount}}
- {on: cluster, name: ofSums, sum: {over: queue, of: queue.cores}}
- {on: queue, name: erring, sum: {over: job, of: "6 / (job.taskCount - 1)"}}
- {on: queue, name: erringTasks, sum: {over: task, when: "6 / (task.index - 2) > 1", of: task.priority}}
- {on: queue, name: quotas, sum: {over: job, of: "job.quotas.size() + job.quotaRequest.names().size()"}}
- {on: cluster, name: tasks, sum: {over: task, of: "1"}}
- {on: node, name: measured, expression: "node.usageAt != null && now - node.usageAt < duration('1m')"}
- {on: cluster, name: measured, sum: {over: node, when: node.measured, of: node.allocatable}}
- {on: cluster, name: leaving, sum: {over: node, when: "!node.unschedulable", by: "node.labels[?'zone'].orValue('')", of: node.releasing}}
- {on: cluster, name: inUse, sum: {over: node, of: "node.cpuUsage / 3.0 - node.releasing.cpu"}}
- {on: cluster, name: erringNodes, sum: {over: node, of: "6 / (node.taskCount - 1)"}}
- {on: queue, name: young, sum: {over: job, when: "now - job.admittedAt < duration('61s')", of: job.request}}
- {on: cluster, name: ages, sum: {over: task, by: "now - task.createdAt >= duration('61m') ? 'old' : 'young'", of: "1"}}
- {on: namespace, name: minutes, sum: {over: job, of: "(now - job.createdAt).getMinutes()"}}
- {on: queue, name: tasks, sum: {over: task, when: task.holdsResources, of: task.request}}
- {on: namespace, name: asked, sum: {over: job, of: job.request}}
- {on: namespace, name: admitted, sum: {over: job, when: job.admittedNow && job.hasMinResources, of: job.minResources}}
- {on: namespace, name: waiting, settle: cycle, sum: {over: task, when: task.status == 'Pending', of: "1"}}
- {on: job, name: tenths, sum: {over: task, of: task.request.cpu}}
- {on: queue, name: byZone, sum: {over: task, when: "task.node != null && (task.holdsResources || task.status == 'Pipelined')",
    by: "task.node.labels[?'zone'].orValue('')", of: task.request}}
- {on: cluster, name: byStatus, sum: {over: task, by: task.status, of: "1"}}
- {on: cluster, name: byFullness, sum: {over: task, when: task.node != null, by: "string(task.node.taskCount)", of: task.request.cpu}}
- {on: cluster, name: byPhase, sum: {over: task, by: task.job.phase, of: "1"}}
- {on: namespace, name: byQueue, sum: {over: job, when: job.queue != null, by: job.queue.name, of: job.allocated}}
- {on: task, name: leaves, expression: "task.queue.held.cpu - task.request.cpu"}
- {on: task, name: crowd, settle: cycle, expression: task.job.taskCount}
- {on: job, name: ofNamespace, expression: "job.namespaceInfo.asked.cpu - job.namespaceInfo.admitted.cpu"}
- {on: queue, name: due, waterFill: {total: cluster.allocatable, weight: double(queue.spec.weight), demand: queue.request}}
- {on: queue, name: dueNow, settle: current, waterFill: {among: queue.jobCount > 1, total: cluster.allocatable,
    weight: double(queue.spec.weight), demand: queue.request, ceiling: "cluster.allocatable.scale(0.7)"}}
- {on: cluster, name: limits, private: true, sum: {over: queue, of: queue.spec.capability}}
- {on: queue, name: most, private: true, expression: "cluster.limits.over(cluster.allocatable).cap(queue.spec.capability.positive())"}
- {on: queue, name: atFirst, settle: cycle, expression: queue.allocated}
- {on: job, name: atFirst, settle: cycle, expression: job.allocated}
- {on: queue, name: ofFirsts, sum: {over: job, of: job.atFirst}}
- {on: queue, name: dueOfItsOwn, settle: current, waterFill: {among: queue.open, total: cluster.allocatable,
    weight: double(queue.spec.weight), floor: queue.spec.guarantee, ceiling: queue.most, demand: queue.held}}
- {on: queue, name: dueOfSums, waterFill: {total: cluster.allocatable, weight: "1 + queue.waiting", demand: queue.tenths}}
- {on: queue, name: dueOfUse, settle: current, waterFill: {total: cluster.used, weight: "1.0", demand: queue.held, ceiling: cluster.used}}
- {on: queue, name: dueAtFirst, settle: current, waterFill: {total: cluster.allocatable, weight: "2.0",
    demand: queue.atFirst + queue.ofFirsts}}
- {on: queue, name: dueByTime, settle: current, waterFill: {total: cluster.allocatable, weight: "double(1 + now.getMinutes() % 3)",
    demand: queue.request}}
- {on: queue, name: dueByAction, settle: current, waterFill: {total: cluster.allocatable, weight: "action == 'backfill' ? 3.0 : 1.0",
    among: "action != 'allocate' || queue.jobCount > 0", demand: queue.request}}
- {on: queue, name: dueOfDues, waterFill: {total: cluster.allocatable, weight: "1", ceiling: queue.due, demand: queue.request}}
- {on: queue, name: dueErring, settle: current, waterFill: {total: cluster.allocatable, weight: "6 / (queue.jobCount - 1)",
    demand: queue.request}}
- {on: queue, name: share, expression: queue.held.share(queue.due)}
- {on: job, name: part, expression: job.allocated.share(job.queue.held)}
- on: queue
  name: limits
  quotaTree:
    parent: queue.spec.parent
    root: "'top'"
    total: cluster.allocatable
    guarantee: queue.spec.guarantee
    capability: queue.spec.capability
    deserved: queue.spec.deserved
    rollUp: {used: queue.allocated, wanted: queue.promised, tenth: queue.tenths, young: queue.young}
- {on: queue, name: usedShare, expression: queue.used.share(queue.deserved)}
- {on: queue, name: shares, expression: "queue.path.map(q, [q.usedShare, q.wanted.cpu, double(q.waiting)])"}
- {on: queue, name: room, expression: "queue.path.all(q, q.used.within(q.realCapability, q.used))"}
- {on: job, name: above, expression: "job.queue.path.reverse().map(q, q.tenth.cpu).sum() + job.queue.root.used.cpu"}
- {on: queue, name: youngAbove, expression: "queue.path.map(q, q.young.cpu).sum()"}
- {on: cluster, name: usedByLeaves, sum: {over: queue, when: queue.leaf, of: queue.used}}
- on: cluster
  name: tree
  hdrf: {path: "'r/' + queue.spec.parent + '/' + queue.name", weights: "'1/1/' + string(queue.spec.weight)", total: cluster.allocatable,
      allocated: job.allocated, request: job.request}
- {on: queue, name: place, expression: cluster.tree.key(queue)}
- {on: job, name: placeWith, expression: "cluster.tree.with(job, job.minResources).without(job, job.allocated).key(job.queue)"}
`

// figures returns the values of all attributes of the policy, for all their owners.
func figures(x *side) any {
	out := map[string]string{}
	s := x.s
	for _, a := range s.p.Attributes() {
		switch a.On {
		case "cluster":
			out["cluster."+a.Name] = exactly(policy.ReadAttribute(a, s.ClusterView))
		case "queue":
			for _, q := range x.c.QueuesByName() {
				out[q.Name+"."+a.Name] = exactly(policy.ReadAttribute(a, s.QueueView(q)))
			}
		case "namespace":
			for _, name := range s.NamespaceNames() {
				out["namespace "+name+"."+a.Name] = exactly(policy.ReadAttribute(a, s.NamespaceView(name)))
			}
		case "task":
			for _, t := range x.c.TasksByKey() {
				if t.Job.Queue != nil {
					out["task "+t.Key+"."+a.Name] = exactly(policy.ReadAttribute(a, s.TaskView(t)))
				}
			}
		case "job":
			for _, j := range x.c.JobsByKey() {
				if j.Queue != nil {
					out[j.Key+"."+a.Name] = exactly(policy.ReadAttribute(a, s.JobView(j)))
				}
			}
		}
	}
	return out
}

// exactly returns a value with all its digits, and only the dimensions that it has.
func exactly(v ref.Val) string {
	switch x := v.(type) {
	case *language.Amounts:
		out := ""
		for i := range x.Resources {
			if x.Resources.Has(i) {
				out += fmt.Sprintf("%s=%v ", x.Dims.Name(i), x.Resources[i])
			}
		}
		return out
	case traits.Mapper:
		var parts []string
		for it := x.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			parts = append(parts, fmt.Sprintf("%s: %s", key.Value(), exactly(x.Get(key))))
		}
		slices.Sort(parts)
		return strings.Join(parts, "; ")
	case *language.ShareTree:
		return "" // of the moment; its keys are compared
	case types.Double:
		return strconv.FormatFloat(float64(x), 'g', -1, 64)
	}
	return language.Text(v)
}

// TestMovingTreesAreWhatTheyWouldBeAfresh checks that a tree is computed again with each step if its sums read more than queues, or its
// limits change with steps.
func TestMovingTreesAreWhatTheyWouldBeAfresh(t *testing.T) {
	t.Parallel()
	for name, table := range map[string]string{
		"sums that read the cluster": `
attributes:
- {on: queue, name: limits, quotaTree: {parent: queue.spec.parent, root: "'top'", total: cluster.allocatable,
    rollUp: {used: "cluster.used.cpu > 3.0 ? queue.request : queue.allocated"}}}
- {on: queue, name: sums, expression: "queue.path.map(q, q.used.cpu)"}
`,
		"limits that move": `
attributes:
- {on: queue, name: limits, quotaTree: {parent: queue.spec.parent, root: "'top'", total: cluster.used, guarantee: queue.allocated,
    rollUp: {used: queue.allocated}}}
- {on: queue, name: most, expression: "queue.path.map(q, q.realCapability.cpu < 100.0 ? q.realCapability.cpu : -1.0)"}
`,
		"a tree by the action": `
attributes:
- {on: queue, name: limits, quotaTree: {parent: "action == 'backfill' ? '' : queue.spec.parent", root: "'top'",
    flat: "action == 'allocate'", total: cluster.allocatable, rollUp: {used: "action == '' ? queue.request : queue.allocated"}}}
- {on: queue, name: sums, expression: "queue.path.map(q, q.used.cpu)"}
`,
		"shares of what moves": `
attributes:
- {on: cluster, name: tree, hdrf: {path: "queue.allocated.cpu > 1.0 ? 'r/much/' + queue.name : 'r/little/' + queue.name", weights: "'1'",
    total: cluster.used, allocated: "action == 'backfill' ? job.request : job.allocated", request: job.queue.request}}
- {on: queue, name: place, expression: cluster.tree.key(queue)}
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := loaded(t, policyText(table))
			rapid.Check(t, func(t *rapid.T) { newTwins(p, figures).run(t) })
		})
	}
}

// TestAccountsAreWhatTheyWouldBeAfresh checks that an incrementally updated sum, and all that is read of it, equals a new sum to the last
// bit.
func TestAccountsAreWhatTheyWouldBeAfresh(t *testing.T) {
	t.Parallel()
	p := loaded(t, policyText(accounts))
	rapid.Check(t, func(t *rapid.T) { newTwins(p, figures).run(t) })
}
