package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
)

// shadowOf returns the results in the status of a stored policy that is a shadow.
func shadowOf(u *unstructured.Unstructured) (found []policyv1alpha1.ShadowStatus, err error) {
	var p policyv1alpha1.SchedulingPolicyStatus
	status, _ := u.Object["status"].(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &p); err != nil {
		return nil, fmt.Errorf("status of SchedulingPolicy %s: %w", u.GetName(), err)
	}
	mode, _, _ := unstructured.NestedString(u.Object, "spec", "mode")
	if mode != string(policyv1alpha1.ModeShadow) {
		return nil, fmt.Errorf("policy %s is no shadow: its spec.mode is %s", u.GetName(), cmp.Or(mode, string(policyv1alpha1.ModeActive)))
	}
	return p.Shadows, nil
}

// shadowLine returns a row with the results of a shadow.
func shadowLine(s *policyv1alpha1.ShadowStatus) []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{
		s.Name, s.Beside, number(s.Cycles.Decided), number(s.Cycles.Otherwise), number(s.Pods.Elsewhere), number(s.Pods.Later),
		number(s.Pods.Sooner), number(s.Pods.Evicted), number(s.Pods.Spared), number(int64(len(s.RuleErrors))),
	}
}

func (t *tool) shadowsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "shadows [POLICY]",
		Short: "Show how policies in mode Shadow would decide",
		Long: `Show how the decisions of policies in mode Shadow differ from those of the
served policy: in how many cycles, and for how many pods. A pod may be bound to
another node (ELSEWHERE), bound later or sooner, evicted, or not evicted
(SPARED). ERRORS is the number of rows with errors. If you name a policy, its
latest differences are shown as well. The counts are at most ten seconds old.`,
		Example: `  celsius policy shadows
  celsius policy shadows trial`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: t.named(policyv1alpha1.GroupVersion.String(), "SchedulingPolicy", false),
		RunE: func(c *cobra.Command, args []string) error {
			r, _, err := t.reach(true)
			if err != nil {
				return err
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind("SchedulingPolicyList"))
			if len(args) > 0 {
				one, err := r.policy(c.Context(), args[0])
				if err != nil {
					return err
				}
				list.Items = append(list.Items, *one)
			} else if err := r.List(c.Context(), list); err != nil {
				return fmt.Errorf("list SchedulingPolicies: %w", err)
			}
			rows := [][]string{{
				"POLICY", "SCHEDULER", "BESIDE", "CYCLES", "OTHERWISE", "ELSEWHERE", "LATER", "SOONER", "EVICTED", "SPARED", "ERRORS",
			}}
			var differ [][]string
			for i := range list.Items {
				u := &list.Items[i]
				found, err := shadowOf(u)
				if err != nil && len(args) > 0 {
					return err
				} else if err != nil {
					continue
				}
				if len(found) == 0 {
					rows = append(rows, []string{u.GetName(), none, none, "0"})
				}
				for k := range found {
					rows = append(rows, append([]string{u.GetName()}, shadowLine(&found[k])...))
					differ = append(differ, differences(&found[k])...)
				}
			}
			if len(rows) == 1 {
				return errors.New("no policy is in mode Shadow")
			}
			newGrid(c.OutOrStdout(), t.Env).print(rows)
			if len(args) > 0 && len(differ) > 0 {
				say(c.OutOrStdout(), "\n")
				newGrid(c.OutOrStdout(), t.Env).print(append([][]string{{"TIME", "POD", "QUEUE", "WHAT"}}, differ...))
			}
			return nil
		},
	}
}

// none is shown if there is nothing to show.
const none = "<none>"

func differences(s *policyv1alpha1.ShadowStatus) (rows [][]string) {
	for i := range s.Differences {
		d := &s.Differences[i]
		rows = append(rows, []string{d.Time.UTC().Format("15:04:05"), d.Pod, d.Queue, d.Text})
	}
	return rows
}

// policy reads a SchedulingPolicy.
func (r *Reach) policy(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind("SchedulingPolicy"))
	err := r.Get(ctx, types.NamespacedName{Name: name}, u)
	return u, err
}

func (t *tool) promoteCommand() *cobra.Command {
	var to string
	var dry, force bool
	c := &cobra.Command{
		Use:   "promote POLICY",
		Short: "Serve a shadow, or a policy of some queues, in all queues",
		Long: `Copy a SchedulingPolicy to the one that a scheduler serves. A policy in mode
Shadow is copied to the policy with which it was compared, or to that of --to. A
policy that serves queues of its own is copied to that of --to, and then applies
in all queues. If the policy of --to does not exist, it is created. The promoted
policy itself does not change. A shadow is refused if its current generation, or
the served generation, has not been compared yet; --force promotes it anyway.
The change is checked like any other, and served from the next cycle on. To roll
it back, run celsius policy rollback. The scheduler does so as well if the
spec.rollback of the policy requires it.`,
		Example: `  celsius policy promote trial
  celsius policy promote trial --to default --dry-run`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: t.named(policyv1alpha1.GroupVersion.String(), "SchedulingPolicy", false),
		RunE: func(c *cobra.Command, args []string) error {
			r, _, err := t.reach(true)
			if err != nil {
				return err
			}
			shadow, err := r.policy(c.Context(), args[0])
			if err != nil {
				return err
			}
			found, err := shadowOf(shadow)
			if _, ofQueues, _ := unstructured.NestedFieldNoCopy(shadow.Object, "spec", "queues"); err != nil && !ofQueues {
				return err
			} else if err != nil && to == "" {
				return fmt.Errorf("policy %s serves queues of its own: write --to POLICY", args[0])
			}
			if to == "" {
				if len(found) != 1 {
					return fmt.Errorf("policy %s was compared with %s: write --to POLICY", args[0], besides(found))
				}
				to, _ = servedBeside(&found[0])
			}
			decided := func(*unstructured.Unstructured) error { return nil }
			if err == nil && !force {
				decided = func(stored *unstructured.Unstructured) error { return decidedBeside(shadow, found, to, stored) }
			}
			return t.promote(c, r, shadow, to, dry, decided)
		},
	}
	c.Flags().StringVar(&to, "to", "", "the policy to which the shadow is copied; unset: the policy with which it was compared")
	c.Flags().BoolVar(&dry, "dry-run", false, "have it checked by the API server, and store nothing")
	c.Flags().BoolVar(&force, "force", false, "promote a shadow although its generation, or the served one, has not been compared yet")
	return c
}

// servedBeside returns the served policy with which a shadow was compared, and its generation. It is the policy of all other queues.
func servedBeside(s *policyv1alpha1.ShadowStatus) (name, generation string) {
	base, _, _ := strings.Cut(s.Beside, "+")
	name, generation, _ = strings.Cut(base, "@")
	return name, generation
}

// decidedBeside returns an error if the results of a shadow do not apply to its present spec and to the policy that it replaces. stored is
// that policy, or nil if it does not exist.
func decidedBeside(shadow *unstructured.Unstructured, found []policyv1alpha1.ShadowStatus, to string,
	stored *unstructured.Unstructured,
) error {
	name, now := shadow.GetName(), shadow.GetGeneration()
	const otherwise = ": wait until it has, or write --force"
	if len(found) == 0 {
		return fmt.Errorf("policy %s has not decided yet"+otherwise, name)
	}
	is := "0" // of the embedded default
	if stored != nil {
		is = strconv.FormatInt(stored.GetGeneration(), 10)
	}
	for i := range found {
		if found[i].Generation != now {
			return fmt.Errorf("policy %s decided as it was in generation %d, and not yet in generation %d"+otherwise, name,
				found[i].Generation, now)
		}
		beside, was := servedBeside(&found[i])
		switch {
		case beside != to || was == is:
		case stored == nil:
			return fmt.Errorf("policy %s was compared with generation %s of %s, which is gone"+otherwise, name, was, to)
		default:
			return fmt.Errorf("policy %s was compared with generation %s of %s, and not yet with generation %s"+otherwise,
				name, was, to, is)
		}
	}
	return nil
}

func besides(found []policyv1alpha1.ShadowStatus) string {
	if len(found) == 0 {
		return "none yet"
	}
	var names []string
	for i := range found {
		names = append(names, found[i].Beside)
	}
	return strings.Join(names, " and ")
}

// promote stores the spec of a shadow in another policy, if decided permits it for the stored policy. The stored policy is nil if it does
// not exist.
func (t *tool) promote(c *cobra.Command, r *Reach, shadow *unstructured.Unstructured, to string, dry bool,
	decided func(stored *unstructured.Unstructured) error,
) error {
	spec, _ := shadow.Object["spec"].(map[string]any)
	spec = maps.Clone(spec)
	spec["mode"] = string(policyv1alpha1.ModeActive)
	delete(spec, "queues") // the result serves all queues
	if to == shadow.GetName() {
		return fmt.Errorf("policy %s is to be served already: set its spec.mode to Active", to)
	}
	said := fmt.Sprintf("policy %s is what %s is in generation %d", to, shadow.GetName(), shadow.GetGeneration())
	if dry {
		said = fmt.Sprintf("policy %s would be what %s is in generation %d", to, shadow.GetName(), shadow.GetGeneration())
	}
	stored, err := r.policy(c.Context(), to)
	missing := apierrors.IsNotFound(err)
	if missing {
		stored, err = nil, nil
	}
	if err != nil {
		return err
	}
	if err := decided(stored); err != nil {
		return err
	}
	switch {
	case missing:
		stored = &unstructured.Unstructured{}
		stored.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind("SchedulingPolicy"))
		stored.SetName(to)
		stored.Object["spec"] = spec
		var options []client.CreateOption
		if dry {
			options = append(options, client.DryRunAll)
		}
		if err = r.Create(c.Context(), stored, options...); err == nil && !dry {
			_, err = r.policyIs(c.Context(), to, any(spec))
		}
	default:
		_, err = r.changePolicy(c.Context(), to, dry, func(stored *unstructured.Unstructured) error {
			if sameSpec(stored.Object["spec"], any(spec)) {
				return fmt.Errorf("policy %s is what %s is already", to, shadow.GetName())
			}
			stored.Object["spec"] = spec
			return decided(stored)
		})
	}
	if err != nil {
		return err
	}
	say(c.OutOrStdout(), "%s\n", said)
	return nil
}
