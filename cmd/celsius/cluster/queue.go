package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// queueName is kubectl's name of Queues.
const queueName = "queue.scheduling.volcano.sh"

// commandNamespace is the namespace of Commands for Queues, which have no namespace themselves.
const commandNamespace = metav1.NamespaceDefault

func (t *tool) queueCommand() *cobra.Command {
	c := &cobra.Command{Use: "queue", Aliases: []string{"queues", "q"}, Short: "Create, list, get, open, close, change and delete Queues"}
	c.AddCommand(t.createQueueCommand(), t.listQueuesCommand(), t.getQueueCommand(), t.operateCommand(),
		t.deleteCommand(&schedulingv1beta1.Queue{}, "Queue", queueName, schedulingv1beta1.GroupVersion.String(), false))
	return c
}

func (t *tool) createQueueCommand() *cobra.Command {
	var weight int32
	var parent, capability, deserved, guarantee string
	c := &cobra.Command{
		Use: "create NAME", Short: "Make a Queue", Args: cobra.ExactArgs(1),
		Example: "  celsius queue create research --weight 2 --deserved cpu=64,nvidia.com/gpu=8",
		RunE: func(c *cobra.Command, args []string) error {
			r, _, err := t.reach(true)
			if err != nil {
				return err
			}
			queue := &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: args[0]}}
			queue.Spec.Weight, queue.Spec.Parent = weight, parent
			for _, part := range []struct {
				flag, text string
				into       *corev1.ResourceList
			}{
				{"--capability", capability, &queue.Spec.Capability},
				{"--deserved", deserved, &queue.Spec.Deserved},
				{"--guarantee", guarantee, &queue.Spec.Guarantee.Resource},
			} {
				if *part.into, err = quantities(part.flag, part.text); err != nil {
					return err
				}
			}
			if err := r.Create(c.Context(), queue); err != nil {
				return err
			}
			say(c.OutOrStdout(), "%s/%s created\n", queueName, queue.Name)
			return nil
		},
	}
	f := c.Flags()
	f.Int32Var(&weight, "weight", 1, "its weight among its siblings, by which they share what is left")
	f.StringVar(&parent, "parent", "", "its parent queue")
	f.StringVar(&capability, "capability", "", "the upper limit of its resources, such as cpu=8,memory=64Gi")
	f.StringVar(&deserved, "deserved", "", "its deserved share, which it may reclaim")
	f.StringVar(&guarantee, "guarantee", "", "the resources that are reserved for it")
	_ = c.RegisterFlagCompletionFunc("parent", t.named(schedulingv1beta1.GroupVersion.String(), "Queue", false))
	return c
}

// queueColumns returns the columns of Volcano's list of Queues. The function count returns numbers from the PodGroups or from the status.
func queueColumns(named func(string) string, tree bool, count counter) []column[*schedulingv1beta1.Queue] {
	type col = column[*schedulingv1beta1.Queue]
	number := func(name string, phase schedulingv1beta1.PodGroupPhase) col {
		return col{name: named(name), of: func(q *schedulingv1beta1.Queue) string { return strconv.Itoa(int(count(q, phase))) }}
	}
	out := []col{
		{name: named("Name"), of: func(q *schedulingv1beta1.Queue) string { return q.Name }},
		{name: named("Weight"), of: func(q *schedulingv1beta1.Queue) string { return strconv.Itoa(int(q.Spec.Weight)) }},
		{name: named("State"), of: func(q *schedulingv1beta1.Queue) string { return cmp.Or(string(q.Status.State), "Unknown") }},
	}
	if tree {
		out = append(out, col{name: named("Parent"), of: parentOf})
	}
	out = append(out,
		number("Inqueue", schedulingv1beta1.PodGroupInqueue), number("Pending", schedulingv1beta1.PodGroupPending),
		number("Running", schedulingv1beta1.PodGroupRunning), number("Unknown", schedulingv1beta1.PodGroupUnknown))
	if tree {
		out = append(out, number("Completed", schedulingv1beta1.PodGroupCompleted))
	}
	return out
}

// parentOf returns the parent of a queue. The default parent is root.
func parentOf(q *schedulingv1beta1.Queue) string {
	if q.Name == schedulingv1beta1.RootQueue {
		return "-"
	}
	return cmp.Or(q.Spec.Parent, schedulingv1beta1.RootQueue)
}

// counter returns how many PodGroups of a queue have a phase.
type counter func(*schedulingv1beta1.Queue, schedulingv1beta1.PodGroupPhase) int32

// fromStatus returns the counts of the controllers, which are at most one second old.
func fromStatus(q *schedulingv1beta1.Queue, phase schedulingv1beta1.PodGroupPhase) int32 {
	s := q.Status
	return map[schedulingv1beta1.PodGroupPhase]int32{
		schedulingv1beta1.PodGroupInqueue: s.Inqueue, schedulingv1beta1.PodGroupPending: s.Pending, schedulingv1beta1.PodGroupRunning: s.Running,
		schedulingv1beta1.PodGroupUnknown: s.Unknown, schedulingv1beta1.PodGroupCompleted: s.Completed,
	}[phase]
}

// counted returns a counter for the existing PodGroups. If the user may not list PodGroups, the counter uses the status.
func counted(ctx context.Context, r *Reach) (counter, error) {
	list := &schedulingv1beta1.PodGroupList{}
	if err := r.List(ctx, list); err != nil {
		if apierrors.IsForbidden(err) {
			return fromStatus, nil
		}
		return nil, err
	}
	type key struct {
		queue string
		phase schedulingv1beta1.PodGroupPhase
	}
	counts := map[key]int32{}
	for i := range list.Items {
		g := &list.Items[i]
		counts[key{cmp.Or(g.Spec.Queue, schedulingv1beta1.DefaultQueue), cmp.Or(g.Status.Phase, schedulingv1beta1.PodGroupPending)}]++
	}
	return func(q *schedulingv1beta1.Queue, phase schedulingv1beta1.PodGroupPhase) int32 {
		return counts[key{q.Name, phase}]
	}, nil
}

func (t *tool) queuesShown() []column[*schedulingv1beta1.Queue] {
	type col = column[*schedulingv1beta1.Queue]
	out := queueColumns(upper, true, fromStatus)
	return append(out,
		col{name: "AGE", of: func(q *schedulingv1beta1.Queue) string { return age(t.Now(), q.CreationTimestamp) }},
		col{name: "ALLOCATED", wide: true, of: func(q *schedulingv1beta1.Queue) string { return amounts(q.Status.Allocated) }},
		col{name: "DESERVED", wide: true, of: func(q *schedulingv1beta1.Queue) string { return amounts(q.Spec.Deserved) }},
		col{name: "CAPABILITY", wide: true, of: func(q *schedulingv1beta1.Queue) string { return amounts(q.Spec.Capability) }},
		col{name: "GUARANTEE", wide: true, of: func(q *schedulingv1beta1.Queue) string { return amounts(q.Spec.Guarantee.Resource) }},
		col{name: "RESERVED", wide: true, of: reserved})
}

// reserved formats status.reservation of a queue: the amounts, then the names of the nodes.
func reserved(q *schedulingv1beta1.Queue) string {
	r := q.Status.Reservation
	if len(r.Nodes) == 0 {
		return amounts(r.Resource)
	}
	nodes := "on " + strings.Join(r.Nodes, ",")
	if len(r.Resource) == 0 {
		return nodes
	}
	return amounts(r.Resource) + " " + nodes
}

func (t *tool) listQueuesCommand() *cobra.Command {
	var o outputFlags
	var selector string
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List Queues: state, and how many Jobs wait and run", Args: cobra.NoArgs,
		Long: `List Queues: their state, and how many Jobs wait and run. With -o wide, also
what each queue holds, and the deserved share, capability and guarantee that its
spec states. The deserved share that the policy computes is shown by
celsius explain queue NAME.`,
		RunE: func(c *cobra.Command, _ []string) error {
			r, _, err := t.reach(true)
			if err != nil {
				return err
			}
			of, err := optionsOf("", selector)
			if err != nil {
				return err
			}
			l := listing[*schedulingv1beta1.Queue]{tool: t, flags: &o, columns: t.queuesShown()}
			return l.show(c, r, &schedulingv1beta1.QueueList{}, of)
		},
	}
	o.register(c, true)
	selectorFlag(c, &selector)
	return c
}

func (t *tool) getQueueCommand() *cobra.Command {
	var o outputFlags
	c := &cobra.Command{
		Use: "get NAME", Short: "Show one Queue", Args: cobra.ExactArgs(1),
		ValidArgsFunction: t.named(schedulingv1beta1.GroupVersion.String(), "Queue", false),
		RunE: func(c *cobra.Command, args []string) error {
			r, _, err := t.reach(true)
			if err != nil {
				return err
			}
			queue := &schedulingv1beta1.Queue{}
			if err := r.Get(c.Context(), types.NamespacedName{Name: args[0]}, queue); err != nil {
				return err
			}
			l := listing[*schedulingv1beta1.Queue]{tool: t, flags: &o, columns: t.queuesShown()}
			return l.showOne(c, r, queue)
		},
	}
	o.register(c, false)
	return c
}

// The actions on a queue.
const (
	openAction   = "open"
	closeAction  = "close"
	updateAction = "update"
)

func (t *tool) operateCommand() *cobra.Command {
	var action string
	var weight int32
	c := &cobra.Command{
		Use: "operate NAME --action open|close|update [--weight N]", Short: "Open or close a Queue, or change its weight",
		DisableFlagsInUseLine: true,
		Args:                  cobra.ExactArgs(1),
		ValidArgsFunction:     t.named(schedulingv1beta1.GroupVersion.String(), "Queue", false),
		Long: `Open or close a Queue, or change its weight. A queue that is closed takes no new
Jobs; those in it go on. Open and close are asked for by a Command in the
namespace default, which the controllers obey.`,
		RunE: func(c *cobra.Command, args []string) error {
			r, _, err := t.reach(true)
			if err != nil {
				return err
			}
			became, err := t.operate(c.Context(), r, args[0], action, weight)
			if err != nil {
				return err
			}
			say(c.OutOrStdout(), "%s/%s %s\n", queueName, args[0], became)
			return nil
		},
	}
	c.Flags().StringVar(&action, "action", "", "what to do: open, close or update")
	c.Flags().Int32Var(&weight, "weight", 0, "the new weight, with --action update")
	_ = c.MarkFlagRequired("action")
	_ = c.RegisterFlagCompletionFunc("action",
		cobra.FixedCompletions([]string{openAction, closeAction, updateAction}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// operate opens or closes a queue through a Command, or changes its weight. It returns what to report.
func (t *tool) operate(ctx context.Context, r *Reach, name, action string, weight int32) (string, error) {
	if actions := []string{openAction, closeAction, updateAction}; !slices.Contains(actions, action) {
		return "", fmt.Errorf("action %q: give open, close or update", action)
	}
	if action == updateAction && weight < 1 {
		return "", errors.New("to update a queue, give a weight of at least 1")
	}
	if action != updateAction && weight != 0 {
		return "", fmt.Errorf("a weight goes with the action update, not with %s", action)
	}
	queue := &schedulingv1beta1.Queue{}
	if err := r.Get(ctx, types.NamespacedName{Name: name}, queue); err != nil {
		return "", err
	}
	if action == updateAction {
		old := queue.DeepCopy()
		queue.Spec.Weight = weight
		if err := r.Patch(ctx, queue, client.MergeFrom(old)); err != nil {
			return "", err
		}
		return "updated", nil
	}
	return t.commandQueue(ctx, r, queue, map[string]string{openAction: openQueue, closeAction: closeQueue}[action])
}
