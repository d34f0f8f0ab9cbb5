package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// exitFailed is the exit code of Volcano's programs after an error.
const exitFailed = 255

// Execute runs one of Volcano's programs, and returns its exit code. It prints an error on the standard output.
func Execute(program *cobra.Command) (code int) {
	c, err := program.ExecuteC()
	if err == nil {
		return 0
	}
	say(program.OutOrStdout(), "Failed to %s: %s\n", said(c), err)
	return exitFailed
}

// volcanos creates commands with the names, flags and columns of Volcano's programs.
type volcanos struct{ *tool }

// New creates one of Volcano's programs, with its names, flags and columns. It returns nil for an unknown name.
func New(program string, o Options) *cobra.Command {
	t := volcanos{&tool{o.withDefaults(), genericclioptions.NewConfigFlags(true)}}
	var root *cobra.Command
	switch program {
	case "vcctl":
		root = &cobra.Command{Use: "vcctl", Short: "The command line of Volcano's Jobs, Queues and JobFlows, as Celsius has it"}
		root.AddCommand(t.vcctlJob(), t.vcctlQueue(), t.vcctlFlow(jobFlows()), t.vcctlFlow(jobTemplates()), t.vcctlPod())
	case "vsub", "vjobs", "vqueues", "vcancel", "vsuspend", "vresume":
		root = t.slurm(program)
	default:
		return nil
	}
	root.SilenceErrors, root.SilenceUsage = true, true
	NarrowHelp(root)
	for _, c := range withRun(root) {
		f := c.Flags()
		f.StringVarP(t.flags.APIServer, "master", "s", "", "address of the API server")
		f.StringVarP(t.flags.KubeConfig, "kubeconfig", "k", "", "kubeconfig file; without it $KUBECONFIG, ~/.kube/config, or the pod's own")
	}
	return root
}

// withRun lists a command and its subcommands that have a RunE function.
func withRun(c *cobra.Command) (out []*cobra.Command) {
	if c.RunE != nil {
		out = append(out, c)
	}
	for _, sub := range c.Commands() {
		out = append(out, withRun(sub)...)
	}
	return out
}

// said returns the name of a command from its end: run job.
func said(c *cobra.Command) string {
	var words []string
	for ; c.HasParent(); c = c.Parent() {
		words = append(words, c.Name())
	}
	if words == nil {
		words = append(words, c.Name())
	}
	return strings.Join(words, " ")
}

// volcanoFlags declares flags with Volcano's names.
type volcanoFlags struct{ *pflag.FlagSet }

// namespace declares the flag -n, or -N in the programs that resemble Slurm's.
func (f volcanoFlags) namespace(to *string, short, otherwise string) {
	f.StringVarP(to, "namespace", short, otherwise, "namespace")
}

func (f volcanoFlags) name(to *string, short, otherwise string) {
	f.StringVarP(to, "name", short, otherwise, "name")
}

// needName returns an error for an empty name.
func needName(name string) error {
	if name == "" {
		return errors.New("--name is empty: say which")
	}
	return nil
}

// group returns a command that has only subcommands.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short}
	c.AddCommand(below...)
	return c
}

// leaf returns a command that runs a function and takes no arguments.
func (t volcanos) leaf(use, short string, flags func(volcanoFlags), run func(*cobra.Command, *Reach) error) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		r, err := t.Connect(t.flags)
		if err != nil {
			return err
		}
		return run(c, r)
	}}
	flags(volcanoFlags{c.Flags()})
	return c
}

// The defaults of Volcano's programs.
const (
	defaultNamespace = metav1.NamespaceDefault
	defaultImage     = "busybox"
	defaultScheduler = "volcano"
	defaultAmounts   = "cpu=1000m,memory=100Mi"
)

func (t volcanos) vcctlJob() *cobra.Command {
	return group("job", "Run, list, view, suspend, resume and delete Jobs", t.vcctlRun(), t.vcctlList("list", "n"),
		t.vcctlOnJob("view", "n", "N", "Show a Job and its events", func(c *cobra.Command, r *Reach, name types.NamespacedName) error {
			return t.viewJob(c.Context(), r, c.OutOrStdout(), name)
		}),
		t.vcctlOnJob("suspend", "n", "N", "Suspend a Job", t.suspend), t.vcctlOnJob("resume", "n", "N", "Resume a Job", t.resume),
		t.vcctlOnJob("delete", "n", "N", "Delete a Job", func(c *cobra.Command, r *Reach, name types.NamespacedName) error {
			return deleteJob(c, r, name, "delete")
		}))
}

func (t volcanos) suspend(c *cobra.Command, r *Reach, name types.NamespacedName) error {
	_, err := t.commandJob(c.Context(), r, name, abortJob)
	return err
}

func (t volcanos) resume(c *cobra.Command, r *Reach, name types.NamespacedName) error {
	_, err := t.commandJob(c.Context(), r, name, resumeJob)
	return err
}

func deleteJob(c *cobra.Command, r *Reach, name types.NamespacedName, verb string) error {
	job := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if err := r.Delete(c.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return err
	}
	say(c.OutOrStdout(), "%s job %s successfully\n", verb, name.Name)
	return nil
}

// vcctlOnJob returns a command that acts on one Job.
func (t volcanos) vcctlOnJob(use, namespaceShort, nameShort, short string,
	do func(*cobra.Command, *Reach, types.NamespacedName) error,
) *cobra.Command {
	var name types.NamespacedName
	return t.leaf(use, short, func(f volcanoFlags) {
		f.namespace(&name.Namespace, namespaceShort, defaultNamespace)
		f.name(&name.Name, nameShort, "")
	}, func(c *cobra.Command, r *Reach) error {
		if err := needName(name.Name); err != nil {
			return err
		}
		return do(c, r, name)
	})
}

// register declares the flags of a Job that all of Volcano's programs have.
func (f *jobFlags) register(to volcanoFlags) {
	to.StringVarP(&f.image, "image", "i", f.image, "image of the container")
	to.Int32VarP(&f.min, "min", "m", 1, "how many pods must be able to run for any to be started")
	to.Int32VarP(&f.replicas, "replicas", "r", 1, "how many pods")
	to.StringVarP(&f.requests, "requests", "R", defaultAmounts, "the resources that a pod requests")
	to.StringVarP(&f.limits, "limits", "L", defaultAmounts, "what a pod may use at most")
	to.StringVarP(&f.scheduler, "scheduler", "S", f.scheduler, "scheduler of the pods")
}

// submit creates a Job, and reports it.
func submit(c *cobra.Command, r *Reach, f jobFlags) error {
	job, err := f.job()
	if err != nil {
		return err
	}
	if err := r.Create(c.Context(), job); err != nil {
		return err
	}
	say(c.OutOrStdout(), "run job %s successfully\n", job.Name)
	return nil
}

func (t volcanos) vcctlRun() *cobra.Command {
	f := jobFlags{image: defaultImage, scheduler: defaultScheduler}
	var file string
	return t.leaf("run", "Make a Job", func(v volcanoFlags) {
		v.name(&f.name, "N", "")
		v.namespace(&f.namespace, "n", defaultNamespace)
		v.StringVarP(&file, "filename", "f", "", "file of a Job, .yaml or .yml; then only --namespace counts in addition")
		f.register(v)
	}, func(c *cobra.Command, r *Reach) error {
		if file == "" {
			return submit(c, r, f)
		}
		if !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(file)) {
			return fmt.Errorf("%s: give a file that ends with .yaml or .yml", file)
		}
		documents, err := readDocuments(c, file, "Job")
		if err != nil {
			return err
		}
		for _, d := range documents {
			if d.object.GetNamespace() == "" || c.Flags().Changed("namespace") {
				d.object.SetNamespace(f.namespace)
			}
			if err := create(c.Context(), r, d.object); err != nil {
				return err
			}
			say(c.OutOrStdout(), "run job %s successfully\n", d.object.GetName())
		}
		return nil
	})
}

// volcanoJobs returns the columns of Volcano's list of Jobs.
func volcanoJobs(namespaces bool) []column[*batchv1alpha1.Job] {
	type col = column[*batchv1alpha1.Job]
	number := func(name string, of func(*batchv1alpha1.Job) int32) col {
		return col{name: name, of: func(j *batchv1alpha1.Job) string { return strconv.Itoa(int(of(j))) }}
	}
	out := []col{
		{name: "Name", of: func(j *batchv1alpha1.Job) string { return j.Name }},
		{name: "Creation", of: func(j *batchv1alpha1.Job) string { return j.CreationTimestamp.Format("2006-01-02") }},
		{name: "Phase", of: func(j *batchv1alpha1.Job) string { return string(phaseOf(j)) }},
		{name: "JobType", of: func(j *batchv1alpha1.Job) string { return cmp.Or(j.Labels[batchv1alpha1.JobTypeKey], "Batch") }},
		number("Replicas", replicasOf),
		number("Min", func(j *batchv1alpha1.Job) int32 { return j.Status.MinAvailable }),
		number("Pending", func(j *batchv1alpha1.Job) int32 { return j.Status.Pending }),
		number("Running", func(j *batchv1alpha1.Job) int32 { return j.Status.Running }),
		number("Succeeded", func(j *batchv1alpha1.Job) int32 { return j.Status.Succeeded }),
		number("Failed", func(j *batchv1alpha1.Job) int32 { return j.Status.Failed }),
		number("Unknown", func(j *batchv1alpha1.Job) int32 { return j.Status.Unknown }),
		number("RetryCount", func(j *batchv1alpha1.Job) int32 { return j.Status.RetryCount }),
	}
	if namespaces {
		out = append([]col{{name: "Namespace", of: func(j *batchv1alpha1.Job) string { return j.Namespace }}}, out...)
	}
	return out
}

// jobFilter selects the Jobs of a list.
type jobFilter struct {
	namespace, scheduler, selector, queue string
	all                                   bool
}

func (f *jobFilter) register(v volcanoFlags) {
	v.StringVarP(&f.scheduler, "scheduler", "S", "", "only Jobs of this scheduler")
	v.BoolVar(&f.all, "all-namespaces", false, "those of all namespaces")
	v.StringVar(&f.selector, "selector", "", "only Jobs whose names have this in them")
}

// list prints the selected Jobs.
func (f *jobFilter) list(t volcanos, c *cobra.Command, r *Reach) error {
	namespace := f.namespace
	if f.all {
		namespace = ""
	}
	list := &batchv1alpha1.JobList{}
	if err := r.List(c.Context(), list, client.InNamespace(namespace)); err != nil {
		return err
	}
	columns := volcanoJobs(f.all)
	rows := [][]string{header(columns)}
	for i := range list.Items {
		j := &list.Items[i]
		if f.scheduler != "" && j.Spec.SchedulerName != f.scheduler || f.queue != "" && queueOf(j) != f.queue ||
			!strings.Contains(j.Name, f.selector) {
			continue
		}
		rows = append(rows, cells(columns, j))
	}
	t.printRows(c.OutOrStdout(), rows)
	return nil
}

// printRows prints a header and rows, or that no rows exist.
func (t volcanos) printRows(out io.Writer, rows [][]string) {
	if len(rows) < 2 {
		say(out, "No resources found\n")
		return
	}
	(&grid{out: out}).print(rows)
}

func (t volcanos) vcctlList(use, namespaceShort string) *cobra.Command {
	var f jobFilter
	return t.leaf(use, "List Jobs", func(v volcanoFlags) {
		v.namespace(&f.namespace, namespaceShort, defaultNamespace)
		f.register(v)
		v.StringVarP(&f.queue, "queue", "q", "", "only Jobs of this queue")
	}, func(c *cobra.Command, r *Reach) error { return f.list(t, c, r) })
}

func (t volcanos) vcctlQueue() *cobra.Command {
	return group("queue", "Create, list, get, operate and delete Queues", t.vcctlCreateQueue(), t.vcctlDeleteQueue(), t.vcctlOperate(),
		t.vcctlListQueues(), t.vcctlGetQueue())
}

func (t volcanos) vcctlCreateQueue() *cobra.Command {
	queue := &schedulingv1beta1.Queue{}
	var state string
	return t.leaf("create", "Make a Queue", func(v volcanoFlags) {
		v.name(&queue.Name, "n", "test")
		v.Int32VarP(&queue.Spec.Weight, "weight", "w", 1, "its share")
		v.StringVarP(&state, "state", "S", string(schedulingv1beta1.QueueStateOpen), "Open or Closed")
	}, func(c *cobra.Command, r *Reach) error {
		closed := strings.EqualFold(state, string(schedulingv1beta1.QueueStateClosed))
		if !closed && !strings.EqualFold(state, string(schedulingv1beta1.QueueStateOpen)) {
			return fmt.Errorf("--state %s: give Open or Closed", state)
		}
		if err := r.Create(c.Context(), queue); err != nil || !closed {
			return err
		}
		_, err := t.operate(c.Context(), r, queue.Name, closeAction, 0) // the command requests a state and does not write it
		return err
	})
}

func (t volcanos) vcctlDeleteQueue() *cobra.Command {
	var name string
	return t.leaf("delete", "Delete a Queue", func(v volcanoFlags) { v.name(&name, "n", "") }, func(c *cobra.Command, r *Reach) error {
		if err := needName(name); err != nil {
			return err
		}
		return r.Delete(c.Context(), &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
}

func (t volcanos) vcctlOperate() *cobra.Command {
	var name, action string
	var weight int32
	return t.leaf("operate", "Open or close a Queue, or change its weight", func(v volcanoFlags) {
		v.name(&name, "n", "")
		v.StringVarP(&action, "action", "a", openAction, "open, close or update")
		v.Int32VarP(&weight, "weight", "w", 0, "the new weight, with update")
	}, func(c *cobra.Command, r *Reach) error {
		if err := needName(name); err != nil {
			return err
		}
		if action != updateAction {
			weight = 0
		}
		_, err := t.operate(c.Context(), r, name, action, weight)
		return err
	})
}

// volcanoQueues prints Volcano's list of Queues, with all Queues or one.
func (t volcanos) volcanoQueues(c *cobra.Command, r *Reach, name string, tree bool) error {
	list := &schedulingv1beta1.QueueList{}
	if name == "" {
		if err := r.List(c.Context(), list); err != nil {
			return err
		}
	} else {
		queue := &schedulingv1beta1.Queue{}
		if err := r.Get(c.Context(), types.NamespacedName{Name: name}, queue); err != nil {
			return err
		}
		list.Items = append(list.Items, *queue)
	}
	count, err := counted(c.Context(), r)
	if err != nil {
		return err
	}
	columns := queueColumns(asIs, tree, count)
	rows := [][]string{header(columns)}
	for i := range list.Items {
		rows = append(rows, cells(columns, &list.Items[i]))
	}
	t.printRows(c.OutOrStdout(), rows)
	return nil
}

func (t volcanos) vcctlListQueues() *cobra.Command {
	return t.leaf("list", "List Queues", func(volcanoFlags) {}, func(c *cobra.Command, r *Reach) error {
		return t.volcanoQueues(c, r, "", true)
	})
}

func (t volcanos) vcctlGetQueue() *cobra.Command {
	var name string
	return t.leaf("get", "Show a Queue", func(v volcanoFlags) { v.name(&name, "n", "") }, func(c *cobra.Command, r *Reach) error {
		if err := needName(name); err != nil {
			return err
		}
		return t.volcanoQueues(c, r, name, true)
	})
}

func (t volcanos) vcctlPod() *cobra.Command {
	var p podsOf
	var namespace string
	var all bool
	return group("pod", "List pods", t.leaf("list", "List the pods of Jobs, of one Job or of a queue", func(v volcanoFlags) {
		v.StringVarP(&p.queue, "queue", "q", "", "only those of this queue")
		v.StringVarP(&p.job, "job", "j", "", "only those of this Job")
		v.namespace(&namespace, "n", defaultNamespace)
		v.BoolVar(&all, "all-namespaces", false, "those of all namespaces")
	}, func(c *cobra.Command, r *Reach) error {
		if all {
			namespace = ""
		}
		rows, err := p.rows(c.Context(), r, namespace, all, asIs)
		if err != nil {
			return err
		}
		t.printRows(c.OutOrStdout(), rows)
		return nil
	}))
}

// vcctlFlow returns the commands of JobFlows or of JobTemplates.
func (t volcanos) vcctlFlow(k flowKind) *cobra.Command {
	return group(k.command, "Create, list, get, describe and delete "+k.kind+"s", t.vcctlCreateFlow(k), t.vcctlListFlows(k), t.vcctlGetFlow(k),
		t.vcctlDescribeFlow(k), t.vcctlDeleteFlow(k))
}

func (t volcanos) vcctlCreateFlow(k flowKind) *cobra.Command {
	var file string
	return t.leaf("create", "Make the "+k.kind+"s of a file", func(v volcanoFlags) {
		v.StringVarP(&file, "file", "f", "", "file, as YAML")
	}, func(c *cobra.Command, r *Reach) error {
		return k.eachOf(c, file, "create", "Created", func(d document) error { return create(c.Context(), r, d.object) })
	})
}

// eachOf calls do for each object of a file, and reports each result.
func (k flowKind) eachOf(c *cobra.Command, file, verb, done string, do func(document) error) error {
	if file == "" {
		return errors.New("--file is empty: say which")
	}
	documents, err := readDocuments(c, file, k.kind)
	if err != nil {
		return err
	}
	failed := 0
	for _, d := range documents {
		if d.object.GetNamespace() == "" {
			d.object.SetNamespace(defaultNamespace)
		}
		if err := do(d); err != nil {
			failed++
			say(c.OutOrStdout(), "Failed to %s %s: %s\n", verb, k.kind, err)
			continue
		}
		say(c.OutOrStdout(), "%s %s: %s/%s\n", done, k.kind, d.object.GetNamespace(), d.object.GetName())
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d failed", failed, len(documents))
	}
	return nil
}

func (t volcanos) vcctlListFlows(k flowKind) *cobra.Command {
	var namespace string
	var all bool
	return t.leaf("list", "List "+k.kind+"s", func(v volcanoFlags) {
		v.namespace(&namespace, "n", defaultNamespace)
		if k.kind == "JobFlow" {
			v.BoolVar(&all, "all-namespaces", false, "those of all namespaces")
		}
	}, func(c *cobra.Command, r *Reach) error {
		if all {
			namespace = ""
		}
		return t.volcanoFlows(c, r, k, types.NamespacedName{Namespace: namespace})
	})
}

func (t volcanos) vcctlGetFlow(k flowKind) *cobra.Command {
	var name types.NamespacedName
	return t.leaf("get", "Show a "+k.kind, func(v volcanoFlags) {
		v.name(&name.Name, "N", "")
		v.namespace(&name.Namespace, "n", defaultNamespace)
	}, func(c *cobra.Command, r *Reach) error {
		if err := needName(name.Name); err != nil {
			return err
		}
		return t.volcanoFlows(c, r, k, name)
	})
}

// volcanoFlows prints Volcano's columns for one object, or for all objects of a namespace.
func (t volcanos) volcanoFlows(c *cobra.Command, r *Reach, k flowKind, name types.NamespacedName) error {
	found, err := k.find(c, r, name)
	if err != nil {
		return err
	}
	columns := slices.Insert(k.columns(t.tool, asIs), 1, column[client.Object]{name: "Namespace", of: client.Object.GetNamespace})
	if k.kind == "JobTemplate" { // Volcano shows no age for them
		columns = columns[:len(columns)-1]
	}
	rows := [][]string{header(columns)}
	for _, o := range found {
		rows = append(rows, cells(columns, o))
	}
	t.printRows(c.OutOrStdout(), rows)
	return nil
}

// find returns one object by name. Without a name, it returns all objects of a namespace.
func (k flowKind) find(c *cobra.Command, r *Reach, name types.NamespacedName) ([]client.Object, error) {
	if name.Name != "" {
		o := k.new()
		err := r.Get(c.Context(), name, o)
		return []client.Object{o}, err
	}
	list := k.list()
	if err := r.List(c.Context(), list, client.InNamespace(name.Namespace)); err != nil {
		return nil, err
	}
	return itemsOf[client.Object](list)
}

func (t volcanos) vcctlDescribeFlow(k flowKind) *cobra.Command {
	var name types.NamespacedName
	var format string
	return t.leaf("describe", "Print "+k.kind+"s whole", func(v volcanoFlags) {
		v.name(&name.Name, "N", "")
		v.namespace(&name.Namespace, "n", defaultNamespace)
		v.StringVarP(&format, "format", "o", "yaml", "yaml or json")
	}, func(c *cobra.Command, r *Reach) error {
		if format != "yaml" && format != "json" {
			return fmt.Errorf("--format %s: give yaml or json", format)
		}
		found, err := k.find(c, r, name)
		if err != nil {
			return err
		}
		for i, o := range found {
			if i > 0 && format == "yaml" {
				say(c.OutOrStdout(), "---\n")
			}
			if err := printWhole(c.OutOrStdout(), r, o, format); err != nil {
				return err
			}
		}
		return nil
	})
}

// printWhole prints an object without its managed fields.
func printWhole(out io.Writer, r *Reach, o client.Object, format string) error {
	o.SetManagedFields(nil)
	gvk, err := r.GroupVersionKindFor(o)
	if err != nil {
		return err
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	text, err := yaml.Marshal(o)
	if err == nil && format == "json" {
		text, err = yaml.YAMLToJSON(text)
		text = append(text, '\n')
	}
	if err != nil {
		return err
	}
	say(out, "%s", text)
	return nil
}

func (t volcanos) vcctlDeleteFlow(k flowKind) *cobra.Command {
	var name types.NamespacedName
	var file string
	return t.leaf("delete", "Delete "+k.kind+"s", func(v volcanoFlags) {
		v.name(&name.Name, "N", "")
		v.namespace(&name.Namespace, "n", defaultNamespace)
		v.StringVarP(&file, "file", "f", "", "file of what is to be deleted, as YAML")
	}, func(c *cobra.Command, r *Reach) error {
		remove := func(name types.NamespacedName) error {
			o := k.new()
			o.SetNamespace(name.Namespace)
			o.SetName(name.Name)
			return r.Delete(c.Context(), o)
		}
		switch {
		case file != "":
			return k.eachOf(c, file, "delete", "Deleted", func(d document) error { return remove(client.ObjectKeyFromObject(d.object)) })
		case name.Name == "":
			return errors.New("give --name or --file")
		}
		if err := remove(name); err != nil {
			return err
		}
		say(c.OutOrStdout(), "Deleted %s: %s\n", k.kind, name)
		return nil
	})
}

// slurm creates one of the programs whose names resemble those of Slurm.
func (t volcanos) slurm(program string) *cobra.Command {
	switch program {
	case "vsub":
		return t.vsub()
	case "vjobs":
		return t.vjobs()
	case "vqueues":
		var name string
		return t.leaf(program, "List Queues", func(v volcanoFlags) { v.name(&name, "n", "") }, func(c *cobra.Command, r *Reach) error {
			return t.volcanoQueues(c, r, name, false)
		})
	case "vcancel":
		return t.vcctlOnJob(program, "N", "n", "Delete a Job", func(c *cobra.Command, r *Reach, name types.NamespacedName) error {
			return deleteJob(c, r, name, "cancel")
		})
	case "vsuspend":
		return t.vcctlOnJob(program, "N", "n", "Suspend a Job", t.suspend)
	}
	return t.vcctlOnJob(program, "N", "n", "Resume a Job", t.resume)
}

func (t volcanos) vsub() *cobra.Command {
	f := jobFlags{
		image: cmp.Or(t.Env("VOLCANO_DEFAULT_IMAGE"), defaultImage), scheduler: cmp.Or(t.Env("VOLCANO_SCHEDULER_NAME"), defaultScheduler),
	}
	var command string
	return t.leaf("vsub", "Make a Job", func(v volcanoFlags) {
		v.name(&f.name, "n", "")
		v.namespace(&f.namespace, "N", cmp.Or(t.Env("VOLCANO_DEFAULT_JOB_NAMESPACE"), defaultNamespace))
		v.StringVarP(&command, "command", "c", "", "what the container runs, in words as a shell reads them")
		f.register(v)
	}, func(c *cobra.Command, r *Reach) error {
		words, err := wordsOfShell(command)
		if err != nil {
			return fmt.Errorf("--command %s: %w", command, err)
		}
		f.command = words
		return submit(c, r, f)
	})
}

func (t volcanos) vjobs() *cobra.Command {
	var f jobFilter
	var name string
	return t.leaf("vjobs", "List Jobs, or show one", func(v volcanoFlags) {
		v.name(&name, "n", "")
		v.namespace(&f.namespace, "N", defaultNamespace)
		f.register(v)
	}, func(c *cobra.Command, r *Reach) error {
		if name != "" {
			return t.viewJob(c.Context(), r, c.OutOrStdout(), types.NamespacedName{Namespace: f.namespace, Name: name})
		}
		return f.list(t, c, r)
	})
}
