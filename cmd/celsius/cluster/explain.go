package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/live/questions"
)

// explainable are the kinds that can be explained, with the words that people write for them.
var explainable = []struct {
	kind, apiVersion, of string
	words                []string
}{
	{explain.Job, batchv1alpha1.GroupVersion.String(), "Job", []string{"job", "jobs", "vcjob", "vj", "podgroup", "podgroups", "pg"}},
	{explain.Pod, "v1", "Pod", []string{"pod", "pods", "po"}},
	{explain.Queue, schedulingv1beta1.GroupVersion.String(), "Queue", []string{"queue", "queues", "q"}},
	{explain.Node, "v1", "Node", []string{"node", "nodes", "no"}},
}

func (t *tool) explainCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "explain KIND NAME",
		Short: "Explain why a job, a pod, a queue or a node fares as it does",
		Long: `Explain what the last cycle of the scheduler decided of a job, a pod, a queue or
a node, and why: the job's place in its queue and who is before it, the rows
that refuse it with the values that they read, nodes by what refuses them, where
pods went and what else there was, and what would help.

The scheduler that leads answers, through the API server: who asks must be
allowed to get jobs or pods (in the namespace), queues or nodes of the API group
explain.celsius.dev. Roles view, edit and admin let their users ask about jobs
and pods. Of namespaces in which one may not ask no names are told.`,
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
			cause := ""
			if kind == explain.Job && output == "" {
				cause = t.jobCause(c.Context(), r, types.NamespacedName{Namespace: namespace, Name: name})
			}
			say(c.OutOrStdout(), "%s", cause)
			text, err := r.Raw(c.Context(), questions.Path(kind, namespace, name), accept, nil)
			if apierrors.IsNotFound(err) && cause != "" {
				return nil // the scheduler knows no job whose pods do not exist; its controllers stated why
			}
			if err != nil {
				return unanswered(err)
			}
			return sayAnswer(c, output, text)
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

// takenWithin is how long the controllers may take to write the first status of a new Job before that is worth a word.
const takenWithin = 10 * time.Second

// jobCause states what the controllers know of why a Job has no running pods, as the user may read it; "" where the Job runs, does not
// exist, or may not be read. The scheduler knows nothing of pods that could not be created.
func (t *tool) jobCause(ctx context.Context, r *Reach, name types.NamespacedName) string {
	job := &batchv1alpha1.Job{}
	if err := r.Get(ctx, name, job); err != nil {
		return ""
	}
	why := ""
	switch state := job.Status.State; {
	case state.Phase == "" && t.Now().Sub(job.CreationTimestamp.Time) > takenWithin:
		why = fmt.Sprintf("no controllers have taken the Job since it was created %s ago: its spec.schedulerName is %q, and either no "+
			"controllers of that name run, or the name is misspelt; Celsius serves celsius and volcano", age(t.Now(), job.CreationTimestamp),
			job.Spec.SchedulerName)
	case state.Message != "":
		why = state.Reason + ": " + state.Message
	}
	if why == "" {
		return ""
	}
	return fmt.Sprintf("job %s\n  phase  %s\n  cause  %s\n\n", name, phaseOf(job), why)
}

// acceptFor is the form in which an answer is asked for.
func acceptFor(output string) (accept string, err error) {
	switch output {
	case "":
		return "text/plain", nil
	case "json", "yaml":
		return "application/json", nil
	}
	return "", fmt.Errorf("-o %s: write json or yaml, or leave it out", output)
}

// sayAnswer writes an answer in the form that was asked for.
func sayAnswer(c *cobra.Command, output string, text []byte) (err error) {
	switch output {
	case "json":
		var object any
		if err := json.Unmarshal(text, &object); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		text, err = json.MarshalIndent(object, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	say(c.OutOrStdout(), "%s", text)
	return nil
}

// whatToExplain reads KIND NAME, or KIND/NAME.
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

// unanswered says of an API that is not there, or does not answer, what that means.
func unanswered(err error) error {
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
