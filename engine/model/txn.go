package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/numa"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// Txn is a run of tentative steps on the cluster, each done at once, with a log by which they
// can be undone. Only one may have steps that are neither rolled back nor committed, and
// no Apply and no CloseCycle may come between a step and its rollback.
//
// A step that its task's status does not allow is the caller's mistake: it changes nothing, and Check reports it.
type Txn struct {
	c   *Cluster
	log []step
}

// step is what to go back to: a task's spot, or where task is nil, a job's phase.
type step struct {
	content  uint64
	task     *Task
	was      spot
	job      *Job
	placed   int64
	phase    string
	admitted bool
	at       time.Time // when the job was let in
}

// Savepoint is a moment of a Txn, to roll back to.
type Savepoint int

// Begin opens a transaction.
func (c *Cluster) Begin() *Txn {
	x := &Txn{c: c}
	if trial := c.books.trial; trial != nil {
		trial.open = append(trial.open, x)
	}
	return x
}

// Mark is this moment.
func (x *Txn) Mark() Savepoint { return Savepoint(len(x.log)) }

// Rollback undoes the steps since to, the last one first, and thereby restores what was; what they touched
// counts as changed once more. Savepoint 0 is the transaction's beginning.
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

// Commit keeps all steps: their log is forgotten, and savepoints with it, but for a trial, which undoes them at its end. The Txn may be
// used again.
func (x *Txn) Commit() {
	if trial := x.c.books.trial; trial != nil {
		trial.steps = append(trial.steps, x.log...)
	}
	x.log = x.log[:0]
}

// Allocate gives a Pending task resources that are idle on a node now, and the devices gpus of it. That they
// fit is the caller's promise; Check reports where it was broken.
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

// Pin has a task that was given a node have these of its CPUs, in place of those that were chosen: for who places anew what a plan says.
func (x *Txn) Pin(t *Task, cpus string) error {
	set, err := numa.Parse(cpus)
	if err == nil && x.c.promise(t.Status == Allocated || t.Status == Pipelined, "pin", t, "is Allocated or Pipelined") {
		to := t.spot()
		to.cpus = set
		x.step(t, to, 0)
	}
	return err //nolint:wrapcheck // it names the list
}

// devicesFree says whether the devices are as many as the task wants, different ones, and each free enough. No
// device at all is well for a task that wants some too: its node may not tell its devices apart.
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

// Bind makes an Allocated task Binding: the decision goes out, and the cluster assumes that it succeeds.
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

// Evict makes a task Releasing that is Binding, Bound, Running or Unknown: it is used until it is gone.
func (x *Txn) Evict(t *Task) {
	ok := t.Status == Binding || t.Status == Bound || t.Status == Running || t.Status == Unknown
	if x.c.promise(ok, "evict", t, "is Binding, Bound, Running or Unknown") {
		to := t.spot()
		to.status = Releasing
		x.step(t, to, 0)
	}
}

// Leave takes a task that can be evicted, or is Releasing already, for gone, so that a step can look ahead.
func (x *Txn) Leave(t *Task) {
	if x.c.promise(t.Status == Releasing || t.MayGo(), "take for gone", t, "is Releasing or can be evicted") {
		to := t.spot()
		to.status, to.node = Gone, NoNode
		x.step(t, to, 0)
	}
}

// Fire notes that a row or a step was asked that rests for a while then. It is not undone.
func (x *Txn) Fire(name string, now time.Time) {
	if x.c.Past.Fired == nil {
		x.c.Past.Fired = map[string]time.Time{}
	}
	x.c.Past.Fired[name] = now
}

// Suppose gives a task the status that it would come to, for a look at what would be then, which is undone: Running to one that is promised
// a node, Pending to one that is taken for gone.
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

// Return gives a task that is taken for gone a status on its node back: that of before, or Releasing.
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

// Admit lets a Pending job into its queue: its phase is Inqueue.
func (x *Txn) Admit(j *Job, now time.Time) {
	if j.Phase != PhasePending {
		x.c.broken(fmt.Errorf("admit job %s: its phase is %s, not Pending", j.Key, j.Phase))
		return
	}
	x.keepPhase(j)
	x.c.setPhase(j, PhaseInqueue, true, now)
}

// Recall gives a job back what CloseCycle took, for a check of the cycle that ended: whether the cycle admitted the job, and how many of
// its tasks it placed.
func (x *Txn) Recall(j *Job, admitted bool, placed int64) {
	x.keepPhase(j)
	j.PlacedNow = placed
	x.c.setPhase(j, j.Phase, admitted, j.AdmittedAt)
}

func (x *Txn) keepPhase(j *Job) {
	x.log = append(x.log,
		step{content: x.c.content, job: j, phase: j.Phase, admitted: j.AdmittedNow, at: j.AdmittedAt, placed: j.PlacedNow})
}

// promise notes that a caller broke a promise, for Check to report, and says whether it was kept.
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

// used says whether a node is in the row.
func (n *Nodes) used(row int32) bool {
	return row >= 0 && int(row) < len(n.Rows) && n.Rows[row] != nil
}
