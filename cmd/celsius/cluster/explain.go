package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/live/lease"
	"github.com/celsius-scheduler/celsius/engine/live/questions"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// explainable lists the kinds that can be explained, with the words that users write for them.
var explainable = []struct {
	kind, apiVersion, of string
	words                []string
}{
	{explain.Job, batchv1alpha1.GroupVersion.String(), "Job", explain.Words(explain.Job)},
	{explain.Pod, "v1", "Pod", explain.Words(explain.Pod)},
	{explain.Queue, schedulingv1beta1.GroupVersion.String(), "Queue", explain.Words(explain.Queue)},
	{explain.Node, "v1", "Node", explain.Words(explain.Node)},
}

func (t *tool) explainCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "explain KIND NAME",
		Short: "Explain the last decisions about a job, pod, queue or node",
		Long: `Explain what the last cycle of the scheduler decided of a job, a pod, a queue or
a node, and why: the job's place in its queue and who is before it, the rows
that refuse it with the values that they read, nodes by what refuses them, where
pods went and what else there was, and what would help.

The scheduler that leads answers, through the API server: who asks must be
allowed to get jobs or pods (in the namespace), queues or nodes of the API group
explain.celsius.dev. Roles view, edit and admin let their users ask about jobs
and pods. Names from namespaces in which you may not ask are not shown.`,
		Example: `  celsius explain job train -n team
  celsius explain pod/train-worker-0 -n team
  celsius explain queue research
  celsius explain node gpu-1 -o yaml`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			kind, name, err := whatToExplain(args)
			if err != nil {
				return err
			}
			accept, err := acceptFor(output)
			if err != nil {
				return err
			}
			r, namespace, err := t.reach(false)
			if err != nil {
				return err
			}
			cause, phase, key := "", "", types.NamespacedName{Namespace: namespace, Name: name}
			if kind == explain.Job {
				cause, phase = t.jobCause(c.Context(), r, key)
			}
			if cause != "" && output == "" {
				say(c.OutOrStdout(), "job %s\n  phase  %s\n  cause  %s\n\n", key, source.Line(phase), source.Line(cause))
			}
			text, err := r.Raw(c.Context(), questions.Path(kind, namespace, name), accept, nil)
			switch {
			case apierrors.IsNotFound(err) && cause != "": // the scheduler does not know jobs without pods, but the controllers stated the cause
				if output == "" {
					return nil
				}
				text = []byte("{}")
			case err != nil:
				return unanswered(err, idle(c.Context(), r, schedulerLease, t.Now(), time.Time{}))
			}
			return sayAnswer(c, output, text, cause)
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return explain.Kinds(), cobra.ShellCompDirectiveNoFileComp
			}
			for _, e := range explainable {
				if len(args) == 1 && slices.Contains(e.words, args[0]) {
					return t.named(e.apiVersion, e.of, questions.Namespaced(e.kind))(c, nil, word)
				}
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "json or yaml: all that was decided, and the text; default: the text alone")
	return c
}

// The Leases of the parts, with the names that deploy installs.
const (
	schedulerLease   = "celsius-scheduler"
	controllersLease = "celsius-controllers"
)

// idle states that no process of a part holds its Lease. It returns "" if a process holds it, or if the user may not read the Lease.
// written is when the part is known to have written last. A part that wrote after the end of its Lease runs without it.
func idle(ctx context.Context, r *Reach, name string, now, written time.Time) string {
	l := &coordinationv1.Lease{}
	part := map[string]string{schedulerLease: "no scheduler runs", controllersLease: "no controllers run"}[name]
	if err := r.Get(ctx, types.NamespacedName{Namespace: partsNamespace, Name: name}, l); err != nil {
		return "" // a part that runs without --leader-elect, or under another name, has no such Lease
	}
	v := lease.VacancyOf(l, now)
	if v == nil || v.IsDisprovedBy(written) {
		return ""
	}
	return part + ": " + v.Ago(func(since metav1.Time) string { return age(now, since) })
}

// jobCause returns what the controllers know about why a Job has no running pods, and the Job's phase. The cause is "" if the Job runs,
// does not exist, or may not be read. The scheduler does not know pods that could not be created.
func (t *tool) jobCause(ctx context.Context, r *Reach, name types.NamespacedName) (why, phase string) {
	job := &batchv1alpha1.Job{}
	if err := r.Get(ctx, name, job); err != nil {
		return "", ""
	}
	return causeOf(ctx, r, job, t.Now()), string(phaseOf(job))
}

// causeOf states why a Job that the caller read has no running pods. It returns "" if the Job runs or has completed.
func causeOf(ctx context.Context, r *Reach, job *batchv1alpha1.Job, now time.Time) string {
	state, ours := job.Status.State, []string{"celsius", "volcano"}
	waits := slices.Contains([]batchv1alpha1.JobPhase{"", batchv1alpha1.Pending, batchv1alpha1.Restarting}, state.Phase)
	switch name := job.Spec.SchedulerName; {
	case state.Phase == "" && !slices.Contains(ours, name): // waiting does not change that
		notServed, _ := objects.NotServed(name, ours)
		return fmt.Sprintf("no controllers have taken the Job since it was created %s ago, because %s", age(now, job.CreationTimestamp),
			notServed)
	case state.Phase == "" && now.Sub(job.CreationTimestamp.Time) > objects.TakenWithin:
		return fmt.Sprintf("no controllers have taken the Job since it was created %s ago; %s", age(now, job.CreationTimestamp),
			cmp.Or(idle(ctx, r, controllersLease, now, time.Time{}), "see whether the controllers run"))
	}
	why := ""
	switch {
	case strings.HasPrefix(state.Message, state.Reason+" "): // the event of a policy
		why = state.Message
	case state.Message != "":
		why = strings.TrimPrefix(state.Reason+": "+state.Message, ": ")
	}
	if waits {
		none := cmp.Or(idle(ctx, r, controllersLease, now, controlledAt(job)), idle(ctx, r, schedulerLease, now, decidedAt(ctx, r, job)))
		if none != "" {
			return strings.TrimSuffix(none+"; before that: "+why, "; before that: ")
		}
	}
	return why
}

// controlledAt is the latest time at which controllers are known to have written to a Job.
func controlledAt(job *batchv1alpha1.Job) time.Time {
	at := job.Status.State.LastTransitionTime.Time
	for i := range job.Status.LimitConditions {
		if c := job.Status.LimitConditions[i].LastTransitionTime.Time; c.After(at) {
			at = c
		}
	}
	return at
}

// decidedAt is the latest time at which a scheduler is known to have written to the PodGroup of a Job. It is zero if the PodGroup does not
// exist, or the user may not read it.
func decidedAt(ctx context.Context, r *Reach, job *batchv1alpha1.Job) (at time.Time) {
	group := &schedulingv1beta1.PodGroup{}
	if err := r.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: objects.GroupName(job)}, group); err != nil {
		return at
	}
	for i := range group.Status.Conditions {
		if c := group.Status.Conditions[i].LastTransitionTime.Time; c.After(at) {
			at = c
		}
	}
	return at
}

// partsNamespace is the namespace of the Leases of the scheduler and the controllers.
const partsNamespace = "celsius-system"

// acceptFor returns the media type of an answer for an output format.
func acceptFor(output string) (accept string, err error) {
	switch output {
	case "":
		return "text/plain", nil
	case "json", "yaml":
		return "application/json", nil
	}
	return "", fmt.Errorf("-o %s: write json or yaml, or leave it out", output)
}

// sayAnswer prints an answer in the requested format. In JSON and YAML the cause that the controllers know is in the field cause.
func sayAnswer(c *cobra.Command, output string, text []byte, cause string) (err error) {
	if output != "" {
		object := map[string]any{}
		if err := json.Unmarshal(text, &object); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		if cause != "" {
			object["cause"] = cause
		}
		text, err = json.MarshalIndent(object, "", "  ")
		text = append(text, '\n')
	}
	if output == "yaml" && err == nil {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	say(c.OutOrStdout(), "%s", text)
	return nil
}

// whatToExplain parses KIND NAME, or KIND/NAME.
func whatToExplain(args []string) (kind, name string, err error) {
	kind, name, _ = strings.Cut(args[0], "/")
	if len(args) == 2 {
		kind, name = args[0], args[1]
	}
	if name == "" {
		return "", "", errors.New("give a kind and a name: job train, or pod/train-0")
	}
	for _, e := range explainable {
		if slices.Contains(e.words, strings.ToLower(kind)) {
			return e.kind, name, nil
		}
	}
	return "", "", fmt.Errorf("%q cannot be explained; there are %s", kind, strings.Join(explain.Kinds(), ", "))
}

// unanswered explains why the API of explanations is missing or does not answer. why states why no scheduler runs. It is "" if that is not
// known, or if a scheduler runs.
func unanswered(err error, why string) error {
	if why != "" {
		return fmt.Errorf("%s, so no pod is placed and no question answered; start the scheduler: %w", why, err)
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	switch {
	case ok && status.ErrStatus.Code == 404 && (status.ErrStatus.Details == nil || status.ErrStatus.Details.Group != questions.Group):
		return fmt.Errorf("no scheduler of this cluster answers: APIService %s is not there. A scheduler answers that is started with "+
			"--explain-address, as that of deploy is", questions.APIServiceName)
	case ok && status.ErrStatus.Code == 503 && status.ErrStatus.Details == nil:
		return fmt.Errorf("the scheduler does not answer just now, perhaps since another begins to lead "+
			"(kubectl get apiservice %s says more): %w", questions.APIServiceName, err)
	}
	return err
}
