package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// jobsOptions contains the flags of bench-jobs.
type jobsOptions struct {
	options

	shapes  []string
	scale   float64
	run     time.Duration // how long pods run
	plugins []string
	atMost  int    // limit of the controllers' calls for a Job in addition to its pods; 0: no limit
	volcano string // folder with Volcano's programs, which are measured instead of Celsius; "": Celsius
}

// NewJobsCommand creates the command bench-jobs.
func NewJobsCommand(run Run) *cobra.Command {
	var o jobsOptions
	c := &cobra.Command{
		Use:    "bench-jobs",
		Short:  "Measure what Jobs cost, from asked for to collected",
		Hidden: true,
		Long: `Measures Jobs in a cluster of one process, with the scheduler and the controllers
as processes of their own, in the shapes of kube-scheduling-perf: 10,000 Jobs of
one pod, 500 of 20, 20 of 500, and one of 10,000. The pods of a Job wait for each
other.

Of each shape all Jobs are made at once. The time is that from just before the
first is asked for until a watch has seen the last pod bound, the last one running,
and the last pod and Job gone; KWOK, in this process, plays the pods, which run
for a second and succeed, and Jobs are deleted as soon as they have ended. With
each goes the processor time until then: of the controllers' process, of the
scheduler's, and of the rest, which is this process: API server, etcd, Kubernetes'
own controllers, KWOK, and what makes the Jobs and watches.

Then scheduler and controllers are stopped, and a floor is measured: a program
that makes pods like those of the Jobs and binds each to the next node, 32 at
once, and does nothing else. The ratio is that of pods a second, until bound and
until running.

API calls are counted by the API server, whoever made them, but for watches and
leases. Those of the controllers alone, and how often they looked at a Job
(reconciles), are counted by themselves; the last line has them of the first
shape of several pods a Job that has more Jobs than that.

With --volcano the same is measured of Volcano's own scheduler and controllers, as
they are configured when installed, but that nobody counts what its controllers
ask for. There are no webhooks, of neither.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			shapes, err := o.check()
			if err != nil {
				return err
			}
			return inCluster(c, run, Setup{Nodes: o.nodes, Kubelets: true, Bare: true},
				func(ctx context.Context, out io.Writer, cluster *Cluster) error {
					return o.measure(ctx, out, cluster, shapes)
				})
		},
	}
	f := c.Flags()
	f.IntVar(&o.nodes, "nodes", 1000, "how many nodes")
	f.StringSliceVar(&o.shapes, "shapes", []string{"10000x1", "500x20", "20x500", "1x10000"}, "what is measured, JOBSxPODS each")
	f.Float64Var(&o.scale, "scale", 1, "by what the larger number of each shape is multiplied")
	f.DurationVar(&o.run, "run", time.Second, "how long pods run")
	f.IntVar(&o.atMost, "at-most", 12, "fail where the controllers make more requests a Job than it has pods, and so many; 0: never")
	f.StringSliceVar(&o.plugins, "plugin", nil, "a plugin that the Jobs have; repeatable")
	f.StringVar(&o.volcano, "volcano", "", "folder with what make volcano builds, which is measured instead of Celsius")
	f.StringVar(&o.profiles, "profiles", "", "folder for CPU profiles of this process and of the scheduler's")
	o.registerCelsius(c)
	return c
}

func (o *jobsOptions) check() ([]jobShape, error) {
	if o.nodes < 1 {
		return nil, UsageError{fmt.Errorf("--nodes %d: give 1 or more", o.nodes)}
	}
	shapes, err := parseShapes(o.shapes, o.scale)
	if err != nil {
		return nil, err
	}
	if o.volcano != "" {
		return shapes, findVolcano(o.volcano)
	}
	return shapes, o.find()
}

// measure measures in a cluster and prints the report. The last line contains the result.
func (o jobsOptions) measure(ctx context.Context, out io.Writer, cluster *Cluster, shapes []jobShape) error {
	b, err := newBench(o.options, out, cluster)
	if err != nil {
		return err
	}
	x := &jobsBench{bench: b, o: o}
	var all []shapeResult
	for _, s := range shapes {
		r, err := x.measureShape(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		all = append(all, r)
	}
	return x.conclude(all)
}

// jobsBench is a cluster in which Jobs are measured.
type jobsBench struct {
	*bench

	o jobsOptions
}

// shapeResult contains the measurements of Jobs of a shape, and of their floor.
type shapeResult struct {
	shape       jobShape
	jobs, floor lives
	controllers requests // the part of the Jobs' calls that the controllers sent
	looked      float64  // how often the controllers reconciled a Job
}

// lives contains the measurements of pods through their lives.
type lives struct {
	until       [steps]point // bound, running and, for Jobs, gone
	made, bound waits        // time of each pod from the beginning
	calls       requests     // from all clients, until no more writes happened
}

// point is the state when the last pod reached a step.
type point struct {
	after time.Duration
	used  usage
}

// conclude prints all results, and returns an error if there were too many calls.
func (x *jobsBench) conclude(all []shapeResult) error {
	x.say("\n%s", tableOfShapes(all))
	x.say("%s", tableOfCosts(all))
	r := all[max(slices.IndexFunc(all, func(r shapeResult) bool { return r.shape.counted }), 0)]
	jobs := float64(r.shape.jobs)
	if x.o.volcano != "" {
		x.say("jobs: %s by Volcano, %.1f jobs/s", r.shape, jobs/r.jobs.until[gone].after.Seconds())
		return nil
	}
	calls := r.controllers.sum() / jobs
	x.say("jobs: %s, %.1f jobs/s, %.1f API calls a job, %.1f reconciles a job", r.shape, jobs/r.jobs.until[gone].after.Seconds(), calls,
		r.looked/jobs)
	if most := float64(r.shape.pods + x.o.atMost); r.shape.counted && x.o.atMost > 0 && calls > most {
		return fmt.Errorf("%.1f API calls a job are more than its %d pods and %d", calls, r.shape.pods, x.o.atMost)
	}
	return nil
}

// tableOfShapes returns a table with the speed of the shapes.
func tableOfShapes(all []shapeResult) (t table) {
	t.add("jobs x pods", "bound s", "running s", "gone s", "bound/s", "running/s", "floor bound/s", "running/s", "of it: bound", "running")
	for _, r := range all {
		rate := func(l lives, s step) float64 { return float64(r.shape.all()) / l.until[s].after.Seconds() }
		row := []any{r.shape}
		for _, s := range []step{bound, running, gone} {
			row = append(row, r.jobs.until[s].after.Seconds())
		}
		for _, l := range []lives{r.jobs, r.floor} {
			row = append(row, rate(l, bound), rate(l, running))
		}
		for _, s := range []step{bound, running} {
			row = append(row, rate(r.jobs, s)/rate(r.floor, s))
		}
		t.add(row...)
	}
	return t
}

// tableOfCosts returns a table with the cost of a pod, and its times.
func tableOfCosts(all []shapeResult) (t table) {
	t.add("a pod", "made p50", "p99", "bound p50", "p99", "controllers", "scheduler", "the rest", "floor", "the rest", "calls", "floor")
	t.add("", "s", "s", "s", "s", "CPU ms", "CPU ms", "CPU ms", "CPU ms", "CPU ms", "", "")
	for _, r := range all {
		n := float64(r.shape.all())
		row := []any{r.shape}
		for _, w := range []waits{r.jobs.made, r.jobs.bound} {
			row = append(row, w.at(0.5).Seconds(), w.at(0.99).Seconds())
		}
		row = append(row, r.jobs.until[gone].used.each(n)...)
		row = append(row, r.floor.until[running].used.each(n)...)
		t.add(append(row, r.jobs.calls.sum()/n, r.floor.calls.sum()/n)...)
	}
	return t
}

// each returns the milliseconds of each program per thing, and then of the rest.
func (u usage) each(things float64) (out []any) {
	for _, of := range append(slices.Clone(u.of), u.rest) {
		out = append(out, milliseconds(of)/things)
	}
	return out
}
