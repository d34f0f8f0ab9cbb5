package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/numa"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// Txn is a sequence of tentative steps on the cluster, with a log to undo them. Each step is executed at once. Only one Txn may have steps
// that are neither rolled back nor committed. Between a step and its rollback, do not call Apply or CloseCycle.
//
// A step that the status of its task does not allow is a mistake of the caller. It changes nothing, and Check reports it.
type Txn struct {
	c   *Cluster
	log []step
}

// step contains what a rollback restores: a task's spot, or a job's phase if task is nil.
type step struct {
	content  uint64
	task     *Task
	was      spot
	job      *Job
	placed   int64
	phase    string
	admitted bool
	at       time.Time // when the job was admitted
}

// Savepoint is a state of a Txn to which it can be rolled back.
type Savepoint int

// Begin opens a transaction.
func (c *Cluster) Begin() *Txn {
	x := &Txn{c: c}
	if trial := c.books.trial; trial != nil {
		trial.open = append(trial.open, x)
	}
	return x
}

// Mark returns a savepoint of the present state.
func (x *Txn) Mark() Savepoint { return Savepoint(len(x.log)) }

// Rollback undoes the steps since to, the last one first. Everything that they touched counts as changed once more. Savepoint 0 is the
// beginning of the transaction.
func (x *Txn) Rollback(to Savepoint) {
	for len(x.log) > int(to) {
		last := len(x.log) - 1
		s := x.log[last]
		x.log = x.log[:last]
		s.job.PlacedNow = s.placed
		if s.task == nil {
			x.c.setPhase(s.job, s.phase, s.admitted, s.at)
		} else {
			x.c.move(s.task, s.was)
		}
		x.c.content = s.content
	}
}

// Commit keeps all steps: it discards their log and all savepoints. A trial still undoes the steps at its end. The Txn may be used again.
func (x *Txn) Commit() {
	if trial := x.c.books.trial; trial != nil {
		trial.steps = append(trial.steps, x.log...)
	}
	x.log = x.log[:0]
}

// Allocate gives a Pending task idle resources of a node, and the devices gpus. The caller must ensure that they fit. Check reports if they
// do not.
func (x *Txn) Allocate(t *Task, row int32, gpus []int) {
	if !x.c.promise(t.Status == Pending, "allocate", t, "is Pending") ||
		!x.c.promise(x.c.Nodes.used(row), "allocate", t, "goes to a node that is there") {
		return
	}
	x.c.promise(x.c.Nodes.FitsIdle(t.Request, row), "allocate", t, "fits what its node has idle")
	x.c.promise(devicesFree(x.c.Nodes.GPUs[row], t, gpus), "allocate", t, "gets devices that it wants and that are free enough")
	x.place(t, Allocated, row, gpus)
}

// Pipeline promises a Pending task resources of a node that are being released, and the devices gpus.
func (x *Txn) Pipeline(t *Task, row int32, gpus []int) {
	if x.c.promise(t.Status == Pending, "pipeline", t, "is Pending") &&
		x.c.promise(x.c.Nodes.used(row), "pipeline", t, "goes to a node that is there") {
		x.place(t, Pipelined, row, gpus)
	}
}

func (x *Txn) place(t *Task, status Status, row int32, gpus []int) {
	to := spot{status: status, node: row, nodeName: x.c.Nodes.Rows[row].Name}
	if t.GPUCount > 0 && len(gpus) > 0 {
		to.gpus = slices.Clone(gpus)
		to.cards = uuidsOf(x.c.Nodes.GPUs[row], gpus)
		to.known = to.cards == nil
	}
	to.cpus = CPUsFor(&x.c.Nodes, t, row).CPUs
	x.step(t, to, 1)
}

// Pin replaces the CPUs that were chosen for a placed task by cpus. It is for callers that repeat the placements of a plan.
func (x *Txn) Pin(t *Task, cpus string) error {
	set, err := numa.Parse(cpus)
	if err == nil && x.c.promise(t.Status == Allocated || t.Status == Pipelined, "pin", t, "is Allocated or Pipelined") {
		to := t.spot()
		to.cpus = set
		x.step(t, to, 0)
	}
	return err //nolint:wrapcheck // it names the list
}

// devicesFree reports whether the devices are as many as the task requests, all different, and free enough. An empty list is also correct,
// because the node may not identify its devices.
func devicesFree(devices []GPU, t *Task, gpus []int) bool {
	if len(gpus) == 0 {
		return true
	}
	for n, i := range gpus {
		if i < 0 || i >= len(devices) || slices.Contains(gpus[:n], i) || !devices[i].Takes(t) {
			return false
		}
	}
	return int64(len(gpus)) == t.GPUCount
}

// Bind makes an Allocated task Binding. The decision is final, and the cluster assumes that it succeeds.
func (x *Txn) Bind(t *Task) {
	if x.c.promise(t.Status == Allocated, "bind", t, "is Allocated") {
		to := t.spot()
		to.status, to.boundIn = Binding, t.Job.QueueName
		x.step(t, to, 0)
	}
}

// Unplace makes a Pipelined or Allocated task Pending again.
func (x *Txn) Unplace(t *Task) {
	if x.c.promise(t.Status == Pipelined || t.Status == Allocated, "unplace", t, "is Pipelined or Allocated") {
		x.step(t, spot{status: Pending, node: NoNode}, -1)
	}
}

// Evict makes a Binding, Bound, Running or Unknown task Releasing. Its resources count as used until it is gone.
func (x *Txn) Evict(t *Task) {
	ok := t.Status == Binding || t.Status == Bound || t.Status == Running || t.Status == Unknown
	if x.c.promise(ok, "evict", t, "is Binding, Bound, Running or Unknown") {
		to := t.spot()
		to.status = Releasing
		x.step(t, to, 0)
	}
}

// Leave treats a task as gone that can be evicted or is Releasing, so that a step can look ahead.
func (x *Txn) Leave(t *Task) {
	if x.c.promise(t.Status == Releasing || t.MayGo(), "take for gone", t, "is Releasing or can be evicted") {
		to := t.spot()
		to.status, to.node = Gone, NoNode
		x.step(t, to, 0)
	}
}

// Fire records when a row or a step was evaluated that then pauses for some time. It is not undone.
func (x *Txn) Fire(name string, now time.Time) {
	if x.c.Past.Fired == nil {
		x.c.Past.Fired = map[string]time.Time{}
	}
	x.c.Past.Fired[name] = now
}

// Suppose sets the status that a task would have later, for a look ahead that is then undone: Running for a task that is promised a node,
// Pending for a task that is treated as gone.
func (x *Txn) Suppose(t *Task, status Status) {
	to := spot{status: Pending, node: NoNode}
	if status == Running {
		to = t.spot()
		to.status, to.boundIn = Running, t.Job.QueueName
	}
	if x.c.promise(status == Running && t.Status == Pipelined || status == Pending && t.Status == Gone, "suppose things of", t,
		"is promised a node, or taken for gone") {
		x.step(t, to, 0)
	}
}

// Return puts a task that was treated as gone back on its node, with its previous status or Releasing.
func (x *Txn) Return(t *Task, status Status) {
	row, ok := x.c.Nodes.Index[t.NodeName]
	if x.c.promise(t.Status == Gone && ok, "return", t, "is taken for gone from a node that is there") {
		to := t.spot()
		to.status, to.node = status, row
		x.step(t, to, 0)
	}
}

func (x *Txn) step(t *Task, to spot, placed int64) {
	j := t.Job
	x.log = slab.Append(x.log, step{content: x.c.content, task: t, was: t.spot(), job: j, placed: j.PlacedNow})
	if placed != 0 {
		j.PlacedNow = max(j.PlacedNow+placed, 0)
		x.c.mark(j)
	}
	x.c.move(t, to)
}

// Admit admits a Pending job to its queue: its phase becomes Inqueue.
func (x *Txn) Admit(j *Job, now time.Time) {
	if j.Phase != PhasePending {
		x.c.broken(fmt.Errorf("admit job %s: its phase is %s, not Pending", j.Key, j.Phase))
		return
	}
	x.keepPhase(j)
	x.c.setPhase(j, PhaseInqueue, true, now)
}

// Recall restores what CloseCycle reset, to check the cycle that ended: whether the cycle admitted the job, and how many of its tasks it
// placed.
func (x *Txn) Recall(j *Job, admitted bool, placed int64) {
	x.keepPhase(j)
	j.PlacedNow = placed
	x.c.setPhase(j, j.Phase, admitted, j.AdmittedAt)
}

func (x *Txn) keepPhase(j *Job) {
	x.log = append(x.log,
		step{content: x.c.content, job: j, phase: j.Phase, admitted: j.AdmittedNow, at: j.AdmittedAt, placed: j.PlacedNow})
}

// promise returns kept. If it is false, it records that a caller broke a promise, which Check reports.
func (c *Cluster) promise(kept bool, verb string, t *Task, promised string) bool {
	if !kept {
		c.broken(fmt.Errorf("%s task %s, which is %s: promised was that it %s", verb, t.Key, t.Status, promised))
	}
	return kept
}

func (c *Cluster) broken(err error) {
	if c.books.broken == nil {
		c.books.broken = err
	}
}

// used reports whether a row contains a node.
func (n *Nodes) used(row int32) bool {
	return row >= 0 && int(row) < len(n.Rows) && n.Rows[row] != nil
}
