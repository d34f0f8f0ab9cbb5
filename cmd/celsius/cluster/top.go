package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/podspec"
)

func (t *tool) topCommand() *cobra.Command {
	c := &cobra.Command{Use: "top", Short: "Show what queues hold, and what of nodes is taken"}
	c.AddCommand(t.topQueuesCommand(), t.topNodesCommand())
	return c
}

func (t *tool) topQueuesCommand() *cobra.Command {
	var bare bool
	c := &cobra.Command{
		Use: "queues", Aliases: []string{"queue"}, Args: cobra.NoArgs,
		Short: "Show what each Queue holds, and the shares in its spec",
		Long: `Show what each Queue holds of each resource, and the guarantee, deserved share
and capability that its spec states; queues below queues are indented. The
deserved share that the policy computes is shown by celsius explain queue NAME.`,
		RunE: func(c *cobra.Command, _ []string) error {
			r, _, err := t.reach(true)
			if err != nil {
				return err
			}
			list := &schedulingv1beta1.QueueList{}
			if err := r.List(c.Context(), list); err != nil {
				return err
			}
			var rows [][]string
			if !bare {
				rows = append(rows, []string{"NAME", "RUNNING", "WAITING", "RESOURCE", "ALLOCATED", "GUARANTEE", "DESERVED", "CAPABILITY"})
			}
			for _, q := range treeOf(list.Items) {
				rows = append(rows, queueRows(q)...)
			}
			newGrid(c.OutOrStdout(), t.Env).print(rows)
			return nil
		},
	}
	bareFlag(c, &bare)
	return c
}

// placedQueue is a queue with its depth in the tree.
type placedQueue struct {
	*schedulingv1beta1.Queue
	depth int
}

// treeOf sorts queues below their parents. A queue without an existing ancestor is at the top, and so is the first queue of a circle.
func treeOf(queues []schedulingv1beta1.Queue) []placedQueue {
	slices.SortFunc(queues, func(a, b schedulingv1beta1.Queue) int { return strings.Compare(a.Name, b.Name) })
	below, there := map[string][]*schedulingv1beta1.Queue{}, map[string]bool{}
	for i := range queues {
		there[queues[i].Name] = true
	}
	for i := range queues {
		q := &queues[i]
		parent := parentOf(q)
		if !there[parent] || parent == q.Name {
			parent = ""
		}
		below[parent] = append(below[parent], q)
	}
	var out []placedQueue
	seen := map[string]bool{}
	var add func(q *schedulingv1beta1.Queue, depth int)
	add = func(q *schedulingv1beta1.Queue, depth int) {
		if seen[q.Name] {
			return
		}
		seen[q.Name] = true
		out = append(out, placedQueue{q, depth})
		for _, child := range below[q.Name] {
			add(child, depth+1)
		}
	}
	for _, q := range below[""] {
		add(q, 0)
	}
	for i := range queues {
		add(&queues[i], 0)
	}
	return out
}

// queueRows returns one row for each resource. The first row contains the queue's name.
func queueRows(q placedQueue) (rows [][]string) {
	s := q.Status
	lead := []string{strings.Repeat("  ", q.depth) + q.Name, strconv.Itoa(int(s.Running)), strconv.Itoa(int(s.Pending + s.Inqueue))}
	names := map[corev1.ResourceName]bool{}
	for _, list := range []corev1.ResourceList{s.Allocated, q.Spec.Guarantee.Resource, q.Spec.Deserved, q.Spec.Capability} {
		for name := range list {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		row := append(slices.Clone(lead), string(name))
		for _, list := range []corev1.ResourceList{s.Allocated, q.Spec.Guarantee.Resource, q.Spec.Deserved, q.Spec.Capability} {
			row = append(row, amountOf(list, name))
		}
		rows, lead = append(rows, row), []string{"", "", ""}
	}
	if rows == nil {
		return [][]string{append(lead, "-", "-", "-", "-", "-")}
	}
	return rows
}

func amountOf(list corev1.ResourceList, name corev1.ResourceName) string {
	if q, ok := list[name]; ok {
		return q.String()
	}
	return "-"
}

func (t *tool) topNodesCommand() *cobra.Command {
	var bare bool
	var selector string
	c := &cobra.Command{
		Use: "nodes", Aliases: []string{"node"}, Short: "Show what the pods on each node ask for, of what it has", Args: cobra.NoArgs,
		Long: `Show what the pods on each node ask for, of what the node has to give: that is
what a scheduler goes by. What they use is told by kubectl top.`,
		RunE: func(c *cobra.Command, _ []string) error {
			r, _, err := t.reach(true)
			if err != nil {
				return err
			}
			of, err := optionsOf("", selector)
			if err != nil {
				return err
			}
			nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
			if err := r.List(c.Context(), nodes, of); err != nil {
				return err
			}
			if err := r.List(c.Context(), pods); err != nil {
				return err
			}
			if len(nodes.Items) == 0 {
				say(c.ErrOrStderr(), "No resources found\n")
				return nil
			}
			newGrid(c.OutOrStdout(), t.Env).print(nodeRows(nodes.Items, pods.Items, !bare))
			return nil
		},
	}
	selectorFlag(c, &selector)
	bareFlag(c, &bare)
	return c
}

// nodeRows returns one row for each node, with columns for pods, CPU, memory, and each device resource.
func nodeRows(nodes []corev1.Node, pods []corev1.Pod, headed bool) (rows [][]string) {
	taken := map[string]corev1.ResourceList{}
	for i := range pods {
		p := &pods[i]
		if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		if taken[p.Spec.NodeName] == nil {
			taken[p.Spec.NodeName] = corev1.ResourceList{}
		}
		add(taken[p.Spec.NodeName], podspec.Requests(p))
		add(taken[p.Spec.NodeName], model.DeviceRequests(p, p.Spec.SchedulerName == corev1.DefaultSchedulerName))
		add(taken[p.Spec.NodeName], corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)})
	}
	for i := range nodes {
		nodes[i].Status.Allocatable = model.NodeOffers(&nodes[i])
	}
	columns := []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory}
	columns = append(columns, devicesOf(nodes)...)
	if headed {
		titles := []string{"NAME", "STATUS"}
		for _, name := range columns {
			titles = append(titles, strings.ToUpper(string(name)))
		}
		rows = append(rows, titles)
	}
	slices.SortFunc(nodes, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for i := range nodes {
		n := &nodes[i]
		row := []string{n.Name, nodeStatus(n)}
		for _, name := range columns {
			row = append(row, share(taken[n.Name][name], n.Status.Allocatable, name))
		}
		rows = append(rows, row)
	}
	return rows
}

// devicesOf returns the device resources of nodes, sorted by name.
func devicesOf(nodes []corev1.Node) []corev1.ResourceName {
	names := map[corev1.ResourceName]bool{}
	for i := range nodes {
		for name := range nodes[i].Status.Allocatable {
			if strings.Contains(string(name), "/") {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func add(to, what corev1.ResourceList) {
	for name, q := range what {
		sum := to[name]
		sum.Add(q)
		to[name] = sum
	}
}

// share formats an amount in use and the total.
func share(taken resource.Quantity, of corev1.ResourceList, name corev1.ResourceName) string {
	all, ok := of[name]
	if !ok {
		return "-"
	}
	percent := 0.0
	if all.Sign() > 0 {
		percent = 100 * taken.AsApproximateFloat64() / all.AsApproximateFloat64()
	}
	return fmt.Sprintf("%s/%s (%.0f%%)", cmp.Or(taken.String(), "0"), all.String(), percent)
}

func nodeStatus(n *corev1.Node) string {
	status := "NotReady"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}
