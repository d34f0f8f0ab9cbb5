package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/live/serving"
)

// PolicyCommands returns the commands for the policies that served a cluster.
func PolicyCommands(o Options) []*cobra.Command {
	t := &tool{o.withDefaults(), nil}
	return t.flagged(t.revisionsCommand(), t.rollbackCommand(), t.shadowsCommand(), t.promoteCommand())
}

// systemNamespace is the default namespace in which served policies are stored. -n overrides it.
const systemNamespace = "celsius-system"

// revision is a stored version of a policy that served.
type revision struct {
	*appsv1.ControllerRevision
	policy map[string]any
}

func (r *revision) name() string {
	name, _, _ := unstructured.NestedString(r.policy, "metadata", "name")
	return name
}

// spec returns the spec of the policy, or nil if it has none.
func (r *revision) spec() any { return r.policy["spec"] }

// revisions returns the policies that served, the newest first. An empty name selects all policies.
func (t *tool) revisions(c *cobra.Command, name string) (*Reach, []revision, error) {
	r, namespace, err := t.reach(!c.Flags().Changed("namespace"))
	if err != nil {
		return nil, nil, err
	}
	namespace = cmp.Or(namespace, systemNamespace)
	list := &appsv1.ControllerRevisionList{}
	if err := r.List(c.Context(), list, client.InNamespace(namespace), client.HasLabels{serving.LabelPolicy}); err != nil {
		return nil, nil, fmt.Errorf("list the policies that served: %w", err)
	}
	var out []revision
	for i := range list.Items {
		x := revision{ControllerRevision: &list.Items[i]}
		if err := json.Unmarshal(x.Data.Raw, &x.policy); err != nil {
			return nil, nil, fmt.Errorf("ControllerRevision %s/%s holds no policy: %w", x.Namespace, x.Name, err)
		}
		if name == "" || x.name() == name {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b revision) int {
		return cmp.Or(cmp.Compare(a.Labels[serving.LabelScheduler], b.Labels[serving.LabelScheduler]), cmp.Compare(b.Revision, a.Revision))
	})
	if len(out) == 0 {
		what := "policy served"
		if name != "" {
			what = "policy " + name + " is known to have served"
		}
		return nil, nil, fmt.Errorf("no %s: none is kept in namespace %s; -n says where Celsius is", what, namespace)
	}
	return r, out, nil
}

func (t *tool) revisionsCommand() *cobra.Command {
	var number int64
	c := &cobra.Command{
		Use:   "revisions [POLICY]",
		Short: "List the policies that served a cluster, or print one of them",
		Long: `List the policies that served a cluster, the newest first: the scheduler keeps
the last ten of each, as ControllerRevisions in its own namespace
(celsius-system, or that of -n). With --revision one is printed as a
SchedulingPolicy, to compare it (celsius policy diff) or to apply it again
(celsius policy rollback does that).`,
		Example: `  celsius policy revisions
  celsius policy revisions default --revision 3 > before.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			_, all, err := t.revisions(c, name)
			if err != nil {
				return err
			}
			if number != 0 {
				x, err := ofNumber(all, number)
				if err != nil {
					return err
				}
				text, err := yaml.Marshal(x.policy)
				if err != nil {
					return fmt.Errorf("write revision %d: %w", number, err)
				}
				say(c.OutOrStdout(), "%s", text)
				return nil
			}
			rows := [][]string{{"REVISION", "POLICY", "GENERATION", "SCHEDULER", "AGE"}}
			for i := range all {
				x := &all[i]
				rows = append(rows, []string{
					strconv.FormatInt(x.Revision, 10), x.name(), x.Labels[serving.LabelGeneration], x.Labels[serving.LabelScheduler],
					duration.HumanDuration(t.Now().Sub(x.CreationTimestamp.Time).Truncate(time.Second)),
				})
			}
			newGrid(c.OutOrStdout(), t.Env).print(rows)
			return nil
		},
	}
	c.Flags().Int64Var(&number, "revision", 0, "print this one, as YAML")
	return c
}

// ofNumber returns the revision with a number. It returns an error if schedulers with different names have one each, because the user must
// then name the policy.
func ofNumber(all []revision, number int64) (*revision, error) {
	var found *revision
	for i := range all {
		switch {
		case all[i].Revision != number:
		case found != nil:
			return nil, fmt.Errorf("schedulers %s and %s both have a revision %d: name the policy", found.Labels[serving.LabelScheduler],
				all[i].Labels[serving.LabelScheduler], number)
		default:
			found = &all[i]
		}
	}
	if found == nil {
		return nil, fmt.Errorf("there is no revision %d; the newest is %d, the oldest %d", number, all[0].Revision, all[len(all)-1].Revision)
	}
	return found, nil
}

func (t *tool) rollbackCommand() *cobra.Command {
	var to int64
	var dry bool
	c := &cobra.Command{
		Use:   "rollback POLICY",
		Short: "Roll back a SchedulingPolicy to its previous revision",
		Long: `Roll back a SchedulingPolicy to the last revision that differs from it, or to
that of --to-revision; celsius policy revisions lists them. The rollback is
checked like any change, and served from the next cycle on.`,
		Example: `  celsius policy rollback default
  celsius policy rollback default --to-revision 3`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: t.named(policyv1alpha1.GroupVersion.String(), "SchedulingPolicy", false),
		RunE: func(c *cobra.Command, args []string) error {
			r, all, err := t.revisions(c, args[0])
			if err != nil {
				return err
			}
			var before *revision
			now, err := r.changePolicy(c.Context(), args[0], dry, func(stored *unstructured.Unstructured) (err error) {
				if before, err = rolledTo(all, stored.Object["spec"], to); err == nil {
					stored.Object["spec"] = before.spec()
				}
				return err
			})
			if err != nil {
				return err
			}
			was := fmt.Sprintf("revision %d (generation %s)", before.Revision, before.Labels[serving.LabelGeneration])
			if dry {
				say(c.OutOrStdout(), "policy %s would be rolled back to %s\n", args[0], was)
				return nil
			}
			say(c.OutOrStdout(), "policy %s is rolled back to %s; it is generation %d now\n", args[0], was, now.GetGeneration())
			return nil
		},
	}
	c.Flags().Int64Var(&to, "to-revision", 0, "the revision to go back to; 0: the last in which it was another one")
	c.Flags().BoolVar(&dry, "dry-run", false, "have it checked by the API server, and store nothing")
	return c
}

func storedPolicy(ctx context.Context, r *Reach, name string) (*unstructured.Unstructured, error) {
	stored, err := r.policy(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no SchedulingPolicy %s any more; celsius policy revisions %[1]s --revision N | "+
			"kubectl apply -f - creates it again", name)
	}
	return stored, err
}

// rolledTo returns the revision for a rollback, which differs from the present policy.
func rolledTo(all []revision, now any, number int64) (*revision, error) {
	if number != 0 {
		x, err := ofNumber(all, number)
		if err == nil && sameSpec(x.spec(), now) {
			err = fmt.Errorf("policy %s is what it was in revision %d", x.name(), number)
		}
		return x, err
	}
	for i := range all {
		if !sameSpec(all[i].spec(), now) {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("policy %s was never another one in the revisions that are kept", all[0].name())
}
