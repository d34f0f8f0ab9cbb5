package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// jobsOptions are the flags of bench-jobs.
type jobsOptions struct {
	options

	jobs, podsEach         int // that go from created to collected
	placedJobs, placedEach int // that are bound
	plugins                []string
	atMost                 int // calls of the controllers for a job beyond its pods; 0: as many as they like
}

// NewJobsCommand makes bench-jobs.
func NewJobsCommand(run Run) *cobra.Command {
	var o jobsOptions
	c := &cobra.Command{
		Use:    "bench-jobs",
		Short:  "Measure what Jobs cost, from created to collected, and until their pods are bound",
		Hidden: true,
		Long: `Measures Jobs in a cluster of one process, with the scheduler and the controllers
as processes of their own.

First many Jobs are made at once that run straight through: their pods, which
KWOK plays, run for a second and succeed, and the Jobs are deleted as soon as
they have ended. The time is that from just before the first Job is asked for
until a watch has seen the last one go, with all that was theirs. Meanwhile the
requests of the controllers are counted, by themselves, but for watches and
those about leases, and how often they looked at a Job (reconciles).

Then KWOK ends, and Jobs are made at once whose pods only have to be placed:
the time is that from just before the first Job is asked for until a watch has
seen the last pod bound. The shares are of the processor time that was used
meanwhile: that of the controllers' process, of the scheduler's, and the rest,
which is this process: API server, etcd, Kubernetes' own controllers, and what
makes the Jobs and watches.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return inCluster(c, run, Setup{Nodes: o.nodes, Kubelets: true, Bare: true}, o.measure)
		},
	}
	f := c.Flags()
	f.IntVar(&o.nodes, "nodes", 1000, "how many nodes")
	f.IntVar(&o.jobs, "jobs", 1000, "how many Jobs go from created to collected")
	f.IntVar(&o.podsEach, "pods", 10, "how many pods each of them has")
	f.IntVar(&o.placedJobs, "placed-jobs", 500, "how many Jobs are measured until their pods are bound; 0: none")
	f.IntVar(&o.placedEach, "placed-pods", 20, "how many pods each of these has")
	f.IntVar(&o.atMost, "at-most", 12, "fail where the controllers make more requests a Job than it has pods, and so many; 0: never")
	f.StringSliceVar(&o.plugins, "plugin", nil, "a plugin that the Jobs have; repeatable")
	f.StringVar(&o.profiles, "profiles", "", "folder for CPU profiles of this process and of the scheduler's")
	o.registerCelsius(c)
	return c
}

func (o *jobsOptions) check() error {
	for flag, n := range map[string]int{"nodes": o.nodes, "jobs": o.jobs, "pods": o.podsEach, "placed-pods": o.placedEach} {
		if n < 1 {
			return UsageError{fmt.Errorf("--%s %d: give 1 or more", flag, n)}
		}
	}
	return o.find()
}

// measure measures in a cluster and prints; the result is the last line.
func (o jobsOptions) measure(ctx context.Context, out io.Writer, cluster *Cluster) error {
	b, err := newBench(o.options, out, cluster)
	if err != nil {
		return err
	}
	if err := b.makeProfiles(); err != nil {
		return err
	}
	x := &jobsBench{bench: b, o: o}
	if x.scheduler, err = b.startScheduler(ctx); err != nil {
		return err
	}
	defer x.scheduler.stop()
	if x.controllers, err = b.startControllers(ctx); err != nil {
		return err
	}
	defer x.controllers.stop()
	for _, p := range []*program{x.scheduler, x.controllers} {
		if err := p.await(ctx); err != nil {
			return err
		}
	}
	straight, err := x.straight(ctx)
	if err != nil {
		return err
	}
	if o.placedJobs > 0 {
		cluster.EndKubelets()
		if err := x.placed(ctx); err != nil {
			return err
		}
	}
	b.say("jobs: %.1f jobs/s, %.1f API calls a job, %.1f reconciles a job", straight.rate, straight.calls, straight.reconciles)
	if most := float64(o.podsEach + o.atMost); o.atMost > 0 && straight.calls > most {
		return fmt.Errorf("%.1f API calls a job are more than its %d pods and %d", straight.calls, o.podsEach, o.atMost)
	}
	return nil
}

// jobsBench is a cluster in which Jobs are measured.
type jobsBench struct {
	*bench

	o jobsOptions

	scheduler, controllers *program
}

// straightRun is what Jobs cost that run straight through.
type straightRun struct{ rate, calls, reconciles float64 }

// straight has Jobs go from created to collected.
func (x *jobsBench) straight(ctx context.Context) (r straightRun, err error) {
	l, err := x.newLoad(ctx)
	if err != nil {
		return r, err
	}
	w, err := x.watchJobs(ctx, l.namespace)
	if err != nil {
		return r, err
	}
	defer w.stop()
	stop, err := x.profile("jobs-straight")
	if err != nil {
		return r, err
	}
	defer stop()
	before, looked, err := x.counts(ctx)
	if err != nil {
		return r, err
	}
	meter := x.meter()
	began := time.Now()
	template := benchJob(x.o.podsEach, x.o.plugins)
	template.Spec.TTLSecondsAfterFinished = new(int32)
	template.Spec.Tasks[0].Template.Annotations = map[string]string{"celsius.dev/sim": "{run: 1s}"}
	if err := x.submit(ctx, l.namespace, x.o.jobs, template); err != nil {
		return r, err
	}
	made := time.Since(began)
	if err := w.await(ctx, x.o.jobs); err != nil {
		return r, err
	}
	took := w.last.Sub(began)
	used := x.meter().since(meter)
	stop()
	after, lookedSince, err := x.counts(ctx)
	if err != nil {
		return r, err
	}
	calls := after.since(before)
	jobs := float64(x.o.jobs)
	r = straightRun{jobs / took.Seconds(), calls.sum() / jobs, (lookedSince - looked) / jobs}
	x.say("%d jobs of %d pods, from created to collected: %.1f s, of which %.1f s until the last was created", x.o.jobs, x.o.podsEach,
		took.Seconds(), made.Seconds())
	x.say("  the controllers' API calls a job: %s", calls.each(x.o.jobs))
	x.say("  %s", used.of("job", x.o.jobs))
	return r, x.clear(ctx, l)
}

// placed has Jobs of which only is wanted that their pods are bound.
func (x *jobsBench) placed(ctx context.Context) error {
	l, err := x.newLoad(ctx)
	if err != nil {
		return err
	}
	w, err := x.watchPods(ctx, l.namespace, "", func(*corev1.Pod) {})
	if err != nil {
		return err
	}
	defer w.stop()
	stop, err := x.profile("jobs-placed")
	if err != nil {
		return err
	}
	defer stop()
	before, err := x.controllers.requests(ctx)
	if err != nil {
		return err
	}
	served, err := servedRequests()
	if err != nil {
		return err
	}
	x.profileScheduler(ctx, x.scheduler, "jobs-placed")
	meter := x.meter()
	began := time.Now()
	if err := x.submit(ctx, l.namespace, x.o.placedJobs, benchJob(x.o.placedEach, x.o.plugins)); err != nil {
		return err
	}
	made, pods := time.Since(began), x.o.placedJobs*x.o.placedEach
	if err := w.await(ctx, pods); err != nil {
		return err
	}
	used := x.meter().since(meter)
	stop()
	after, err := x.controllers.requests(ctx)
	if err != nil {
		return err
	}
	all, err := servedSince(served)
	if err != nil {
		return err
	}
	w.mu.Lock()
	last, grouped, bound := w.last, w.grouped, w.bound
	w.mu.Unlock()
	from := map[string]time.Time{}
	for name := range bound {
		from[name] = began
	}
	x.say("%d jobs of %d pods on %d nodes, from the first created to the last pod bound: %.1f s", x.o.placedJobs, x.o.placedEach, x.nodes,
		last.Sub(began).Seconds())
	x.say("  by then: the last job was created after %.1f s", made.Seconds())
	x.say("  pods were made after:  %s", between(from, grouped))
	x.say("  and bound after:       %s", between(from, bound))
	x.say("  %s", used.of("pod", pods))
	x.say("  the controllers' API calls a job: %s", after.since(before).each(x.o.placedJobs))
	x.say("  all API calls a pod: %s", all.each(pods))
	return nil
}

// shares is who used how much processor time.
type shares struct{ controllers, scheduler, rest time.Duration }

// meter is what was used so far.
func (x *jobsBench) meter() shares {
	return shares{
		processorTimeOf(x.controllers.process.Process.Pid), processorTimeOf(x.scheduler.process.Process.Pid), processorTime(),
	}
}

func (s shares) since(before shares) shares {
	return shares{s.controllers - before.controllers, s.scheduler - before.scheduler, s.rest - before.rest}
}

// of tells the shares, and what of them is one thing's.
func (s shares) of(what string, n int) string {
	all := s.controllers + s.scheduler + s.rest
	share := func(part time.Duration) float64 { return 100 * part.Seconds() / max(all.Seconds(), 0.001) }
	const form = "%.2f ms of processor a %s: the controllers %.0f %%, the scheduler %.0f %%, the API server and what is beside it %.0f %%"
	return fmt.Sprintf(form, 1000*all.Seconds()/float64(n), what, share(s.controllers), share(s.scheduler), share(s.rest))
}

// sum is how many requests there were in all.
func (r requests) sum() (n float64) {
	for _, of := range r {
		n += of
	}
	return n
}

var reconcileSeries = regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{controller="job",result="[^"]*"\} (\S+)`)

// counts is what the controllers have asked the API server for so far, and how often they looked at a Job.
func (x *jobsBench) counts(ctx context.Context) (requests, float64, error) {
	asked, err := x.controllers.requests(ctx)
	if err != nil {
		return nil, 0, err
	}
	page, err := get(ctx, "http://"+x.controllers.metrics+"/metrics")
	if err != nil {
		return nil, 0, err
	}
	looked := 0.0
	for _, m := range reconcileSeries.FindAllSubmatch(page, -1) {
		n, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return nil, 0, fmt.Errorf("metrics of the controllers: %w", err)
		}
		looked += n
	}
	return asked, looked, nil
}

// benchJob is a Job of one task, whole as admission would have made it.
func benchJob(pods int, plugins []string) *batchv1alpha1.Job {
	pod := benchPod("")
	job := &batchv1alpha1.Job{Spec: batchv1alpha1.JobSpec{
		SchedulerName: schedulerName, Queue: "default", MinAvailable: int32(pods), MaxRetry: 3, Plugins: map[string][]string{},
		Tasks: []batchv1alpha1.TaskSpec{{
			Name: "main", Replicas: int32(pods), MaxRetry: 3, Template: corev1.PodTemplateSpec{Spec: pod.Spec},
		}},
	}}
	job.Spec.Tasks[0].Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	for _, name := range plugins {
		job.Spec.Plugins[name] = []string{}
	}
	return job
}

// submit makes so many Jobs, several at once.
func (x *jobsBench) submit(ctx context.Context, namespace string, jobs int, like *batchv1alpha1.Job) error {
	err := each(jobs, func(i int) error {
		job := like.DeepCopy()
		job.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("job-%d", i)}
		return insist(ctx, apierrors.IsAlreadyExists, func() error { return x.groups.Create(ctx, job.DeepCopy()) })
	})
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	return nil
}

// goneWatch sees Jobs go.
type goneWatch struct {
	stop context.CancelFunc

	mu   sync.Mutex
	gone int
	last time.Time
	err  error
}

// watchJobs begins to watch a namespace in which there is no Job yet.
func (x *jobsBench) watchJobs(ctx context.Context, namespace string) (*goneWatch, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &goneWatch{stop: stop}
	watching, err := x.groups.Watch(ctx, &batchv1alpha1.JobList{}, client.InNamespace(namespace))
	if err != nil {
		stop()
		return nil, fmt.Errorf("watch jobs: %w", err)
	}
	go func() {
		defer watching.Stop()
		for event := range watching.ResultChan() {
			w.see(event)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.err = errors.New("the API server ended the watch of jobs")
	}()
	return w, nil
}

func (w *goneWatch) see(event watch.Event) {
	if event.Type != watch.Deleted {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone++
	w.last = time.Now()
}

// await waits until so many have gone.
func (w *goneWatch) await(ctx context.Context, jobs int) error {
	return poll(ctx, "the end of jobs", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.gone >= jobs {
			return nil
		}
		return errors.Join(fmt.Errorf("%d of %d have gone", w.gone, jobs), w.err)
	})
}
