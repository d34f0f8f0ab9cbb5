package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// The actions of Commands.
const (
	abortJob   = "AbortJob"
	resumeJob  = "ResumeJob"
	openQueue  = "OpenQueue"
	closeQueue = "CloseQueue"
)

// jobName is kubectl's name of Jobs.
const jobName = "job.batch.volcano.sh"

func (t *tool) jobCommand() *cobra.Command {
	c := &cobra.Command{Use: "job", Aliases: []string{"jobs", "vcjob"}, Short: "Run, list, view, suspend, resume and delete Jobs"}
	c.AddCommand(t.runCommand(), t.listJobsCommand(), t.viewCommand(),
		t.commandCommand("suspend", abortJob, "Suspend Jobs: their pods go, the Jobs stay until resumed"),
		t.commandCommand("resume", resumeJob, "Resume Jobs that were suspended or have failed"),
		t.deleteCommand(&batchv1alpha1.Job{}, "Job", jobName, batchv1alpha1.GroupVersion.String(), true))
	return c
}

// jobFlags describe a Job that is created without a file.
type jobFlags struct {
	name, namespace, image, scheduler, queue, requests, limits string
	min, replicas                                              int32
	command                                                    []string
}

// job creates the Job. It has one task of equal pods, and at least min of them start together.
func (f jobFlags) job() (*batchv1alpha1.Job, error) {
	requests, err := quantities("--requests", f.requests)
	if err != nil {
		return nil, err
	}
	limits, err := quantities("--limits", f.limits)
	if err != nil {
		return nil, err
	}
	switch {
	case f.name == "":
		return nil, errors.New("the Job has no name")
	case f.replicas < 1:
		return nil, fmt.Errorf("--replicas %d: give at least 1", f.replicas)
	case f.min < 1 || f.min > f.replicas:
		return nil, fmt.Errorf("--min %d: give a number from 1 to --replicas, which is %d", f.min, f.replicas)
	}
	job := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Name: f.name, Namespace: f.namespace}}
	job.SetGroupVersionKind(batchv1alpha1.GroupVersion.WithKind("Job"))
	job.Spec.SchedulerName, job.Spec.Queue, job.Spec.MinAvailable = f.scheduler, f.queue, f.min
	main := corev1.Container{
		Name: f.name, Image: f.image, ImagePullPolicy: corev1.PullIfNotPresent, Command: f.command,
		Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
	}
	job.Spec.Tasks = []batchv1alpha1.TaskSpec{{Name: "default", Replicas: f.replicas}}
	job.Spec.Tasks[0].Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{main}}
	return job, nil
}

// quantities parses amounts of resources such as cpu=1,memory=2Gi.
func quantities(flag, text string) (corev1.ResourceList, error) {
	out := corev1.ResourceList{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, amount, _ := strings.Cut(part, "=")
		q, err := resource.ParseQuantity(amount)
		if err != nil || name == "" || q.Sign() < 0 {
			return nil, fmt.Errorf("%s %s: %q is no amount of a resource; write cpu=1,memory=100Mi", flag, text, part)
		}
		out[corev1.ResourceName(name)] = q
	}
	return out, nil
}

func (t *tool) runCommand() *cobra.Command {
	var f jobFlags
	var file string
	c := &cobra.Command{
		Use:   "run (NAME [flags] [-- COMMAND ...] | -f FILE)",
		Short: "Make a Job",
		Long: `Make a Job of equal pods, or those that a file describes. The pods wait for each
other: as many as --min are started together, or none.`,
		Example: `  celsius job run train --image pytorch --replicas 4 --min 4 \
      --requests cpu=4,memory=16Gi,nvidia.com/gpu=1 -- torchrun train.py
  celsius job run -f job.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			r, namespace, err := t.reach(false)
			if err != nil {
				return err
			}
			if file != "" {
				if len(args) > 0 {
					return fmt.Errorf("%s and --filename: one of both says which Job", args[0])
				}
				return t.createFrom(c, r, file, *t.flags.Namespace, namespace, "Job", jobName)
			}
			if len(args) == 0 {
				return errors.New("give the name of the Job, or --filename")
			}
			f.name, f.namespace, f.command = args[0], namespace, args[1:]
			if !c.Flags().Changed("min") {
				f.min = f.replicas
			}
			job, err := f.job()
			if err != nil {
				return err
			}
			if err := r.Create(c.Context(), job); err != nil {
				return err
			}
			say(c.OutOrStdout(), "%s/%s created\n", jobName, job.Name)
			return nil
		},
	}
	fs := c.Flags()
	fs.StringVarP(&file, "filename", "f", "", "file of Jobs, as YAML or JSON; -: standard input")
	fs.StringVar(&f.image, "image", "busybox", "image of the container")
	fs.Int32Var(&f.replicas, "replicas", 1, "how many pods")
	fs.Int32Var(&f.min, "min", 0, "how many pods must be able to run for any to be started (default: all)")
	fs.StringVar(&f.requests, "requests", "cpu=1,memory=100Mi", "the resources that a pod requests")
	fs.StringVar(&f.limits, "limits", "", "what a pod may use at most")
	fs.StringVarP(&f.queue, "queue", "q", "", "queue (default: that of the webhook, default)")
	fs.StringVar(&f.scheduler, "scheduler", "volcano", "scheduler of the pods")
	_ = c.RegisterFlagCompletionFunc("queue", t.named(schedulingv1beta1.GroupVersion.String(), "Queue", false))
	return c
}

func phaseOf(j *batchv1alpha1.Job) batchv1alpha1.JobPhase {
	return cmp.Or(j.Status.State.Phase, batchv1alpha1.Pending)
}

func replicasOf(j *batchv1alpha1.Job) int32 {
	n := int32(0)
	for i := range j.Spec.Tasks {
		n += j.Spec.Tasks[i].Replicas
	}
	return n
}

func queueOf(j *batchv1alpha1.Job) string {
	return cmp.Or(j.Spec.Queue, schedulingv1beta1.DefaultQueue)
}

func (t *tool) listJobsCommand() *cobra.Command {
	var o outputFlags
	var all bool
	var selector, queue string
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls", "get"}, Short: "List Jobs: phase, pods, queue, and why one waits with -o wide", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, namespace, err := t.reach(all)
			if err != nil {
				return err
			}
			of, err := optionsOf(namespace, selector)
			if err != nil {
				return err
			}
			l := listing[*batchv1alpha1.Job]{tool: t, flags: &o, columns: t.jobsShown(all)}
			if queue != "" {
				l.keep = func(j *batchv1alpha1.Job) bool { return queueOf(j) == queue }
			}
			return l.show(c, r, &batchv1alpha1.JobList{}, of)
		},
	}
	o.register(c, true)
	c.Flags().BoolVarP(&all, "all-namespaces", "A", false, "those of all namespaces")
	selectorFlag(c, &selector)
	c.Flags().StringVarP(&queue, "queue", "q", "", "only those of this queue")
	_ = c.RegisterFlagCompletionFunc("queue", t.named(schedulingv1beta1.GroupVersion.String(), "Queue", false))
	return c
}

// jobsShown returns the columns of our own list of Jobs.
func (t *tool) jobsShown(namespaces bool) []column[*batchv1alpha1.Job] {
	type col = column[*batchv1alpha1.Job]
	out := []col{
		{name: "NAME", of: func(j *batchv1alpha1.Job) string { return j.Name }},
		{name: "QUEUE", of: queueOf},
		{name: "PHASE", of: func(j *batchv1alpha1.Job) string { return string(phaseOf(j)) }},
		{name: "MIN", of: func(j *batchv1alpha1.Job) string { return strconv.Itoa(int(j.Spec.MinAvailable)) }},
		{name: "PENDING", of: func(j *batchv1alpha1.Job) string { return strconv.Itoa(int(j.Status.Pending)) }},
		{name: "RUNNING", of: func(j *batchv1alpha1.Job) string { return strconv.Itoa(int(j.Status.Running)) }},
		{name: "ENDED", of: func(j *batchv1alpha1.Job) string {
			return fmt.Sprintf("%d/%d", j.Status.Succeeded+j.Status.Failed, replicasOf(j))
		}},
		{name: "RETRIES", of: func(j *batchv1alpha1.Job) string { return strconv.Itoa(int(j.Status.RetryCount)) }},
		{name: "AGE", of: func(j *batchv1alpha1.Job) string { return age(t.Now(), j.CreationTimestamp) }},
		{name: "WHY", wide: true, of: func(j *batchv1alpha1.Job) string { return cmp.Or(j.Status.State.Message, j.Status.State.Reason, "-") }},
	}
	if namespaces {
		out = append([]col{{name: "NAMESPACE", of: func(j *batchv1alpha1.Job) string { return j.Namespace }}}, out...)
	}
	return out
}

// optionsOf returns which objects are listed.
func optionsOf(namespace, selector string) (*client.ListOptions, error) {
	raw, err := metav1.ParseToLabelSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("--selector %s: %w", selector, err)
	}
	labels, err := metav1.LabelSelectorAsSelector(raw)
	if err != nil {
		return nil, fmt.Errorf("--selector %s: %w", selector, err)
	}
	return &client.ListOptions{Namespace: namespace, LabelSelector: labels}, nil
}

func (t *tool) viewCommand() *cobra.Command {
	return &cobra.Command{
		Use: "view NAME", Aliases: []string{"describe"}, Short: "Describe a Job: its requests, its status, and the reasons",
		Args: cobra.ExactArgs(1), ValidArgsFunction: t.named(batchv1alpha1.GroupVersion.String(), "Job", true),
		RunE: func(c *cobra.Command, args []string) error {
			r, namespace, err := t.reach(false)
			if err != nil {
				return err
			}
			return t.viewJob(c.Context(), r, c.OutOrStdout(), types.NamespacedName{Namespace: namespace, Name: args[0]})
		},
	}
}

// viewJob prints all details of a Job.
func (t *tool) viewJob(ctx context.Context, r *Reach, out io.Writer, name types.NamespacedName) error {
	job := &batchv1alpha1.Job{}
	if err := r.Get(ctx, name, job); err != nil {
		return err
	}
	line := func(key, format string, args ...any) {
		say(out, "%-18s%s\n", source.Line(key)+":", source.Line(fmt.Sprintf(format, args...)))
	}
	if why := causeOf(ctx, r, job, t.Now()); why != "" {
		line("Cause", "%s", why)
	}
	line("Name", "%s", job.Name)
	line("Namespace", "%s", job.Namespace)
	say(out, "%-18s%s\n%-18s%s\n", "Labels:", wordsOf(job.Labels), "Annotations:", wordsOf(job.Annotations))
	line("Created", "%s (%s ago)", job.CreationTimestamp.UTC().Format("2006-01-02 15:04:05 MST"), age(t.Now(), job.CreationTimestamp))
	line("Queue", "%s", queueOf(job))
	line("Scheduler", "%s", job.Spec.SchedulerName)
	line("Priority class", "%s", cmp.Or(job.Spec.PriorityClassName, "<none>"))
	line("Min available", "%d", job.Spec.MinAvailable)
	line("Retries", "%d of %d", job.Status.RetryCount-objects.Resumes(&job.Status), job.Spec.MaxRetry)
	line("Phase", "%s, since %s", phaseOf(job), age(t.Now(), job.Status.State.LastTransitionTime))
	if s := job.Status.State; s.Reason != "" {
		line("Reason", "%s", s.Reason)
	}
	for _, c := range job.Status.LimitConditions {
		if c.Status == metav1.ConditionTrue {
			line(c.Type, "%s", c.Message)
		}
	}
	s := job.Status
	line("Pods", "%d pending, %d running, %d succeeded, %d failed, %d terminating, %d unknown", s.Pending, s.Running, s.Succeeded, s.Failed,
		s.Terminating, s.Unknown)
	say(out, "Tasks:\n")
	rows := [][]string{{"  NAME", "REPLICAS", "MIN", "PENDING", "RUNNING", "SUCCEEDED", "FAILED", "IMAGES", "REQUESTS"}}
	for i := range job.Spec.Tasks {
		rows = append(rows, taskRow(job, &job.Spec.Tasks[i]))
	}
	newGrid(out, t.Env).print(rows)
	return t.viewEvents(ctx, r, out, job)
}

func taskRow(job *batchv1alpha1.Job, task *batchv1alpha1.TaskSpec) []string {
	phases := job.Status.TaskStatusCount[task.Name].Phase
	least := "-"
	if task.MinAvailable != nil {
		least = strconv.Itoa(int(*task.MinAvailable))
	}
	row := []string{"  " + cmp.Or(task.Name, "<none>"), strconv.Itoa(int(task.Replicas)), least}
	for _, phase := range []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed} {
		row = append(row, strconv.Itoa(int(phases[phase])))
	}
	var images, requests []string
	for i := range task.Template.Spec.Containers {
		container := &task.Template.Spec.Containers[i]
		images = append(images, container.Image)
		requests = append(requests, amounts(container.Resources.Requests))
	}
	return append(row, strings.Join(images, ","), strings.Join(requests, "+"))
}

// amounts formats resources on one line, sorted by name.
func amounts(list corev1.ResourceList) string {
	var out []string
	for name, q := range list {
		out = append(out, string(name)+"="+q.String())
	}
	slices.Sort(out)
	return cmp.Or(strings.Join(out, ","), "-")
}

func wordsOf(of map[string]string) string {
	var out []string
	for key, value := range of {
		if key != corev1.LastAppliedConfigAnnotation {
			out = append(out, source.Line(key+"="+value))
		}
	}
	slices.Sort(out)
	return cmp.Or(strings.Join(out, "\n"+strings.Repeat(" ", 18)), "<none>")
}

// eventsOf is the field through which the API server finds the events of an object.
const eventsOf = "involvedObject.name"

// viewEvents prints the events of a Job and of its PodGroup, oldest first.
func (t *tool) viewEvents(ctx context.Context, r *Reach, out io.Writer, job *batchv1alpha1.Job) error {
	var events []corev1.Event
	for _, of := range []struct {
		kind, name string
		id         types.UID // "": any UID
	}{{"Job", job.Name, job.UID}, {"PodGroup", job.Name + "-" + string(job.UID), ""}} {
		list := &corev1.EventList{}
		if err := r.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingFields{eventsOf: of.name}); err != nil {
			return err
		}
		for i := range list.Items {
			about := list.Items[i].InvolvedObject
			if about.Kind == of.kind && (of.id == "" || about.UID == "" || about.UID == of.id) {
				events = append(events, list.Items[i])
			}
		}
	}
	if len(events) == 0 {
		say(out, "Events:           <none>\n")
		return nil
	}
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return lastSeen(&a).Compare(lastSeen(&b).Time) })
	say(out, "Events:\n")
	rows := [][]string{{"  TYPE", "REASON", "AGE", "FROM", "MESSAGE"}}
	for i := range events {
		e := &events[i]
		rows = append(rows, []string{
			"  " + e.Type, e.Reason, age(t.Now(), lastSeen(e)), cmp.Or(e.ReportingController, e.Source.Component, "-"),
			strings.TrimSpace(e.Message),
		})
	}
	newGrid(out, t.Env).print(rows)
	return nil
}

// lastSeen returns when an event was last seen, whichever of the event APIs its writer used.
func lastSeen(e *corev1.Event) metav1.Time {
	switch {
	case e.Series != nil:
		return metav1.Time{Time: e.Series.LastObservedTime.Time}
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.Time{Time: e.EventTime.Time}
	}
	return e.CreationTimestamp
}

// commandCommand returns a command that requests an action on Jobs with a Command object.
func (t *tool) commandCommand(verb, action, short string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME...", Short: short, Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: t.named(batchv1alpha1.GroupVersion.String(), "Job", true),
		RunE: func(c *cobra.Command, args []string) error {
			r, namespace, err := t.reach(false)
			if err != nil {
				return err
			}
			return eachOf(args, func(name string) error {
				became, err := t.commandJob(c.Context(), r, types.NamespacedName{Namespace: namespace, Name: name}, action)
				if err != nil {
					return err
				}
				say(c.OutOrStdout(), "%s/%s %s\n", jobName, name, became)
				return nil
			})
		},
	}
}

// eachOf calls do for each name, and joins the errors.
func eachOf(names []string, do func(string) error) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, do(name))
	}
	return errors.Join(errs...)
}

// deleteCommand returns a command that deletes objects of a kind by name.
func (t *tool) deleteCommand(kind client.Object, title, called, apiVersion string, namespaced bool) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME...", Aliases: []string{"rm"}, Short: "Delete " + title + "s", Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: t.named(apiVersion, title, namespaced),
		RunE: func(c *cobra.Command, args []string) error {
			r, namespace, err := t.reach(!namespaced)
			if err != nil {
				return err
			}
			return eachOf(args, func(name string) error {
				o, ok := kind.DeepCopyObject().(client.Object)
				if !ok {
					return fmt.Errorf("%T is no object", kind)
				}
				o.SetNamespace(namespace)
				o.SetName(name)
				became, err := r.remove(c.Context(), o, client.PropagationPolicy(metav1.DeletePropagationBackground))
				if err != nil {
					return err
				}
				say(c.OutOrStdout(), "%s %q %s\n", called, name, became)
				return nil
			})
		},
	}
}
