package recording

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// Options of a recording.
type Options struct {
	// Folder contains the files. "": nothing is recorded.
	Folder string
	// Most is the maximum size of all files in bytes. 0: DefaultMost.
	Most int64
	// Files is the number of files. Only whole files are removed, so more files keep more of the oldest cycles. 0: 8.
	Files int64
}

const (
	leastOfRecording = 1 << 20
	// DefaultMost is the default maximum size of a recording in bytes.
	DefaultMost  = 256 << 20
	defaultFiles = 8
	// mostQueued is the maximum number of deltas and cycles that wait to be written.
	mostQueued = 200_000
	writeEvery = time.Second
	retryAfter = time.Minute
)

// Check rejects invalid options.
func (o *Options) Check() error {
	if o.Most != 0 && o.Most < leastOfRecording {
		return fmt.Errorf("a recording of at most %d bytes: at least %d are needed", o.Most, leastOfRecording)
	}
	return nil
}

// Recorder records the inputs of cycles. Call all methods except Run from the goroutine that runs the cycles. A nil Recorder records
// nothing.
type Recorder struct {
	o     Options
	names []string // scheduler names
	log   logr.Logger
	// known contains the present objects.
	known  known
	policy *policy.Policy // of the last recorded cycles
	whole  bool           // the recorded data begins with a checkpoint and has no gap

	mu     sync.Mutex
	queue  []noted
	queued int // number of deltas and cycles in queue
	again  bool
	wake   chan struct{}
}

// known contains the present objects.
type known map[objectKey]model.Delta

type objectKey struct{ kind, namespace, name string }

// take applies a delta, and reports whether it contains an object of the API.
func (k known) take(d model.Delta) bool {
	key, ok := keyOf(d.Object)
	if ok && d.Op == model.Delete {
		delete(k, key)
	} else if ok {
		k[key] = model.Delta{Object: d.Object}
	}
	return ok
}

// keyOf returns the key of an object. It returns false if the object is not an object of the API.
func keyOf(object any) (objectKey, bool) {
	o, ok := object.(metav1.Object)
	if !ok {
		return objectKey{}, false
	}
	return objectKey{nameOf(o), o.GetNamespace(), o.GetName()}, true
}

// noted is data that waits to be written.
type noted struct {
	checkpoint *checkpoint
	deltas     []model.Delta
	line       *line
	policy     *policy.Policy
	plan       *model.Plan
	number     uint64
}

// checkpoint is the beginning of a file.
type checkpoint struct {
	begin   begin
	objects []model.Delta
	own     *own
}

// New returns a Recorder for an empty cluster of these schedulers.
func New(o Options, names []string, log logr.Logger) *Recorder {
	if o.Most == 0 {
		o.Most = DefaultMost
	}
	if o.Files == 0 {
		o.Files = defaultFiles
	}
	r := &Recorder{o: o, names: names, log: log, known: known{}, wake: make(chan struct{}, 1), whole: true}
	r.note(noted{checkpoint: &checkpoint{begin: r.begin(0, time.Now()), own: &own{}}})
	return r
}

func (r *Recorder) begin(number uint64, now time.Time) begin {
	return begin{Version: version, SchedulerNames: r.names, Time: now, Number: number}
}

// Applied records deltas that were applied to the cluster.
func (r *Recorder) Applied(deltas []model.Delta) {
	if r == nil || len(deltas) == 0 {
		return
	}
	own := make([]model.Delta, 0, len(deltas)) // the caller uses its list again
	for _, d := range deltas {
		if r.known.take(d) {
			own = append(own, d)
		}
	}
	r.note(noted{deltas: own})
}

// Spared records until when a task is not evicted.
func (r *Recorder) Spared(task string, until time.Time) {
	if r != nil {
		r.note(noted{line: &line{Spare: &spare{task, until}}})
	}
}

// Released records that no resources are kept any more for a job.
func (r *Recorder) Released(job string) {
	if r != nil {
		r.note(noted{line: &line{Release: job}})
	}
}

// Decided records a cycle: its number, and the plan of a policy for a cluster, which is as the cycle left it.
func (r *Recorder) Decided(number uint64, c *model.Cluster, p *policy.Policy, plan *model.Plan) {
	if r == nil {
		return
	}
	if p != r.policy {
		r.policy = p
		r.note(noted{policy: p})
	}
	r.note(noted{plan: plan, number: number})
	r.mu.Lock()
	again := r.again
	r.again = false
	r.mu.Unlock()
	if r.whole && !again {
		return
	}
	x := &checkpoint{begin: r.begin(number, plan.Now), own: ownOf(c), objects: make([]model.Delta, 0, len(r.known))}
	for _, d := range r.known {
		x.objects = append(x.objects, d)
	}
	r.whole = true
	r.note(noted{checkpoint: x})
	r.note(noted{policy: p})
}

// note queues data. If too much waits already, it drops this and all data until the next checkpoint.
func (r *Recorder) note(n noted) {
	if !r.whole {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queued > mostQueued {
		r.log.Info("a recording of cycles cannot be written as fast as they come; some are left out", "folder", r.o.Folder)
		r.whole = false
		return
	}
	r.queue = append(r.queue, n)
	r.queued += 1 + len(n.deltas)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take returns all queued data.
func (r *Recorder) take() []noted {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.queue
	r.queue, r.queued = nil, 0
	return out
}

// anew requests a checkpoint.
func (r *Recorder) anew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again = true
}

// Again removes the objects, because the cluster was rebuilt. Nothing is recorded until the next cycle, which begins with a checkpoint. The
// decisions of a rebuilt cluster do not follow from what was recorded before.
func (r *Recorder) Again() {
	if r != nil {
		clear(r.known)
		r.whole = false
	}
}

// Run writes until ctx ends. After an error, it logs the error, and starts again with a checkpoint after a while.
func (r *Recorder) Run(ctx context.Context) {
	w := &writer{folder: r.o.Folder, most: r.o.Most, ofFile: r.o.Most / r.o.Files}
	var failed time.Time
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-r.wake:
			if sleep(ctx, writeEvery) {
				ended = true
			}
		}
		batch := r.take()
		if !failed.IsZero() {
			if time.Since(failed) >= retryAfter {
				failed = time.Time{}
				r.anew()
			}
			continue
		}
		full, err := w.write(batch)
		switch {
		case err != nil:
			failed = time.Now()
			r.log.Error(err, "cycles are not recorded", "folder", r.o.Folder, "again after", retryAfter.String())
		case full:
			r.anew()
		}
	}
	if err := w.close(); err != nil && failed.IsZero() {
		r.log.Error(err, "the end of a recording of cycles could not be written", "folder", r.o.Folder)
	}
}

func sleep(ctx context.Context, d time.Duration) (ended bool) {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(d):
		return false
	}
}

// encode writes queued data as lines.
func (w *writer) encode(n *noted) error {
	e := json.NewEncoder(w)
	switch {
	case n.checkpoint != nil:
		return w.encodeCheckpoint(e, n.checkpoint)
	case n.plan != nil:
		if !n.plan.Same || w.sum == "" {
			sum, err := SumOf(n.plan)
			if err != nil {
				return err
			}
			w.sum = sum
		}
		return e.Encode(line{Cycle: cycleOf(n.number, n.plan, w.sum)})
	case n.policy != nil:
		object, err := n.policy.Object()
		if err != nil {
			return err
		}
		return e.Encode(line{Policy: &served{Generation: n.policy.Generation, Mode: n.policy.Mode, Object: object}})
	case n.line != nil:
		return e.Encode(n.line)
	}
	var all changes
	for _, d := range n.deltas {
		c, err := written(d)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	return e.Encode(line{Apply: all})
}

func (w *writer) encodeCheckpoint(e *json.Encoder, x *checkpoint) error {
	w.sum = ""
	if err := e.Encode(line{Begin: &x.begin}); err != nil {
		return err
	}
	for _, d := range x.objects {
		c, err := written(d)
		if err == nil {
			err = e.Encode(line{Put: &c})
		}
		if err != nil {
			return err
		}
	}
	return e.Encode(line{Own: x.own})
}
