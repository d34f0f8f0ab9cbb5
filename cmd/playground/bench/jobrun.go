package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// measureShape measures Jobs of a shape, and then their floor.
func (x *jobsBench) measureShape(ctx context.Context, s jobShape) (shapeResult, error) {
	r := shapeResult{shape: s}
	x.say("%s: %d jobs of %d pods on %d nodes", s, s.jobs, s.pods, x.nodes)
	like, err := x.runJobs(ctx, &r)
	if err != nil {
		return r, err
	}
	x.tell("", s, r.jobs, "controllers", "scheduler")
	x.list("  API calls a pod: ", r.jobs.calls.each(s.all()))
	if x.o.volcano == "" {
		x.list(fmt.Sprintf("  of them the controllers' a job, who looked %.1f times: ", r.looked/float64(s.jobs)), r.controllers.each(s.jobs))
	}
	if err := x.runFloor(ctx, &r, like); err != nil {
		return r, fmt.Errorf("floor: %w", err)
	}
	x.tell("floor ", s, r.floor, "floor")
	x.list("  floor API calls a pod: ", r.floor.calls.each(s.all()))
	return r, nil
}

// tell prints the measurements of pods.
func (x *jobsBench) tell(who string, s jobShape, l lives, programs ...string) {
	x.say("  %smade after:  %s", who, l.made)
	x.say("  %sbound after: %s", who, l.bound)
	for _, step := range []step{bound, running, gone} {
		p := l.until[step]
		if p.after == 0 {
			continue
		}
		var shares []string
		for i, ms := range p.used.each(float64(s.all())) {
			shares = append(shares, fmt.Sprintf("%s %.2f", append(programs, "the rest")[i], ms))
		}
		x.say("  %sall %s after %.2f s, %.0f pods/s, CPU ms a pod: %s", who, step, p.after.Seconds(),
			float64(s.all())/p.after.Seconds(), strings.Join(shares, ", "))
	}
}

// runJobs runs Jobs from their creation to their deletion. It returns one of their pods.
func (x *jobsBench) runJobs(ctx context.Context, r *shapeResult) (like *corev1.Pod, err error) {
	start, countsOf := x.startBoth, counts
	if x.o.volcano != "" {
		start, countsOf = x.startVolcano, func(context.Context, *program) (requests, float64, error) { return nil, 0, nil }
	}
	scheduler, controllers, err := start(ctx)
	if err != nil {
		return nil, err
	}
	defer scheduler.stop()
	defer controllers.stop()
	l, err := x.newLoad(ctx, gangs, schedulerName)
	if err != nil {
		return nil, err
	}
	jobs, err := x.watchJobs(ctx, l.namespace)
	if err != nil {
		return nil, err
	}
	defer jobs.stop()
	first := make(chan *corev1.Pod, 1)
	w, err := x.watchPods(ctx, l.namespace, "", func(p *corev1.Pod) {
		select {
		case first <- p:
		default:
		}
	})
	if err != nil {
		return nil, err
	}
	defer w.stop()
	before, looked, err := countsOf(ctx, controllers)
	if err != nil {
		return nil, err
	}
	runtime.GC()
	stop, err := x.profile("jobs-" + r.shape.String())
	if err != nil {
		return nil, err
	}
	defer stop()
	x.profilePart(ctx, scheduler, "jobs-"+r.shape.String(), x.least)
	began, err := take(controllers, scheduler)
	if err != nil {
		return nil, err
	}
	if err := x.submit(ctx, l.namespace, r.shape.jobs, benchJob(r.shape.pods, x.o.run, x.o.plugins)); err != nil {
		return nil, err
	}
	x.say("  the last job was created after %.2f s", time.Since(began.at).Seconds())
	if err := r.jobs.follow(ctx, w, began, r.shape.all(), []step{bound, running, gone}, controllers, scheduler); err != nil {
		return nil, err
	}
	if err := jobs.await(ctx, r.shape.jobs); err != nil {
		return nil, err
	}
	r.jobs.until[gone].after = max(r.jobs.until[gone].after, jobs.last.Sub(began.at))
	if err := r.jobs.end(ctx, x.bench, began); err != nil {
		return nil, err
	}
	stop()
	after, lookedSince, err := countsOf(ctx, controllers)
	if err != nil {
		return nil, err
	}
	r.controllers, r.looked = after.since(before), lookedSince-looked
	return <-first, x.clear(ctx, l)
}

// runFloor lets a program that does nothing else create and bind pods like those of the Jobs.
func (x *jobsBench) runFloor(ctx context.Context, r *shapeResult, like *corev1.Pod) error {
	l, err := x.newLoad(ctx, plain, schedulerName)
	if err != nil {
		return err
	}
	w, err := x.watchPods(ctx, l.namespace, "", func(*corev1.Pod) {})
	if err != nil {
		return err
	}
	defer w.stop()
	file := filepath.Join(filepath.Dir(x.cluster.Kubeconfig), "floor.json")
	if err := writePod(file, asMade(like)); err != nil {
		return err
	}
	runtime.GC()
	p := &program{name: makerCommand, ready: begunLine}
	err = x.launchSelf(ctx, p, makerCommand, "--namespace", l.namespace, "--like", file, "--pods", strconv.Itoa(r.shape.all()))
	if err != nil {
		return err
	}
	defer p.stop()
	if err := p.await(ctx, w); err != nil {
		return err
	}
	if err := r.floor.follow(ctx, w, p.from, r.shape.all(), []step{bound, running}, p); err != nil {
		return err
	}
	if err := r.floor.end(ctx, x.bench, p.from); err != nil {
		return err
	}
	names, _ := w.when(made)
	for name := range names {
		l.pods = append(l.pods, name)
	}
	return x.clear(ctx, l)
}

// follow waits until all pods have passed some steps.
func (l *lives) follow(ctx context.Context, w *podWatch, began mark, pods int, through []step, programs ...*program) error {
	for _, s := range through {
		if err := w.await(ctx, s, pods); err != nil {
			return err
		}
		now, err := take(programs...)
		if err != nil {
			return err
		}
		_, last := w.when(s)
		_, used, _ := now.since(began)
		l.until[s] = point{last.Sub(began.at), used}
	}
	whenMade, _ := w.when(made)
	whenBound, _ := w.when(bound)
	from := map[string]time.Time{}
	for name := range whenMade {
		from[name] = began.at
	}
	l.made, l.bound = between(from, whenMade), between(from, whenBound)
	return nil
}

// end counts the calls until no more writes happen.
func (l *lives) end(ctx context.Context, b *bench, began mark) error {
	end, err := b.drained(ctx)
	if err != nil {
		return err
	}
	l.calls = end.calls.since(began.calls)
	return nil
}

var reconcileSeries = regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{controller="job",result="[^"]*"\} (\S+)`)

// counts returns the requests of the controllers so far, and how often they reconciled a Job.
func counts(ctx context.Context, controllers *program) (requests, float64, error) {
	asked, err := controllers.requests(ctx)
	if err != nil {
		return nil, 0, err
	}
	page, err := get(ctx, "http://"+controllers.metrics+"/metrics")
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
