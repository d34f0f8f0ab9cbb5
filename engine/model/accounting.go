package model

import (
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/numa"
)

// spot contains the fields that a task's accounting depends on and that a step may change: the node, the status, and what the task holds
// there.
type spot struct {
	status   Status
	node     int32
	nodeName string
	gpus     []int
	known    bool     // the pod states gpus or a cycle decided them; they are not guessed
	cards    []string // see Task
	cpus     numa.Set
	volumes  []VolumeBind
	boundIn  string
}

func (t *Task) spot() spot {
	return spot{t.Status, t.Node, t.NodeName, t.GPUs, t.knownGPUs, t.cards, t.CPUs, t.Volumes, t.boundIn}
}

func (t *Task) setSpot(s spot) {
	t.Status, t.Node, t.NodeName, t.GPUs, t.knownGPUs, t.cards = s.status, s.node, s.nodeName, s.gpus, s.known, s.cards
	t.CPUs, t.Volumes, t.boundIn = s.cpus, s.volumes, s.boundIn
}

// move changes the spot of a known task. No other function does; an undo uses it too.
func (c *Cluster) move(t *Task, to spot) {
	from := t.Node
	c.account(t, -1)
	t.setSpot(to)
	c.account(t, 1)
	c.touchTask(t, from)
}

// account adds (sign 1) or subtracts (sign -1) everything that the task counts for in its present spot.
func (c *Cluster) account(t *Task, sign int64) {
	c.countInJob(t, sign)
	c.Storage.count(t, int(sign))
	c.countClaim(t, sign)
	switch {
	case t.Node != NoNode:
		c.countOnNode(t, sign)
	case t.NodeName != "" && t.Status.onNode():
		c.books.lost.put(t.NodeName, t.Key, t, sign > 0)
	}
}

func (c *Cluster) countInJob(t *Task, sign int64) {
	j, r, f := t.Job, t.role, float64(sign)
	if t.HasClaims && !t.Foreign && (t.Status == Pending || t.Status == Binding) {
		c.Claiming += int(sign)
	}
	j.Counts[t.Status] += sign
	r.Counts[t.Status] += sign
	if t.readyBestEffort() {
		j.PendingBestEffort += sign
		r.PendingBestEffort += sign
	}
	if t.Status == Pending && t.Gated {
		j.GatedRequest.addSum(&j.rests.gated, t.Request, f)
	}
	if held := t.withheld(); held != nil {
		j.countRequest(held, f, false)
		j.GatedRequest.addSum(&j.rests.gated, held, f)
	}
	if t.occupies() {
		j.Occupied.addSum(&j.rests.occupied, t.Request, f)
		if j.Queue != nil {
			j.Queue.Occupied.addSum(&j.Queue.rests.occupied, t.Request, f)
		}
	}
	if holds := t.Status.taken(); holds || t.Status == Pending {
		j.countRequest(t.Request, f, holds)
	}
}

// readyBestEffort reports whether a task counts in PendingBestEffort: it waits, requests nothing, is not gated, and its Vain is false.
func (t *Task) readyBestEffort() bool {
	return t.Status == Pending && t.BestEffort && !t.Gated && !t.Vain
}

// countRequest adds f times a task's request to its job and queue. If the task holds the resources, they also count as allocated.
func (j *Job) countRequest(r Resources, f float64, holds bool) {
	j.Request.addSum(&j.rests.request, r, f)
	if holds {
		j.Allocated.addSum(&j.rests.allocated, r, f)
	}
	if q := j.Queue; q != nil {
		q.Request.addSum(&q.rests.request, r, f)
		if holds {
			q.Allocated.addSum(&q.rests.allocated, r, f)
		}
	}
}

func (c *Cluster) countOnNode(t *Task, sign int64) {
	n, row, f := &c.Nodes, t.Node, float64(sign)
	n.grow()
	n.holdRequest(t.Request, int32(sign))
	if sign > 0 {
		n.attach(t)
	} else {
		n.detach(t)
	}
	if t.Status == Pipelined {
		n.addColumn(pipelined, row, t.Request, f)
		return
	}
	n.addColumn(used, row, t.Request, f)
	if t.Status == Releasing {
		n.addColumn(releasing, row, t.Request, f)
	}
	n.TaskCount[row] += int32(sign)
	for dim := range n.Unasked {
		if t.Request.Get(dim) == 0 {
			n.Unasked[dim][row] += int32(sign)
		}
	}
	switch {
	case t.Unadmitted:
	case n.Rows[row].Ready:
		c.Used.addSum(&c.books.usedRest, t.Request, f)
	default:
		c.UsedElsewhere.addSum(&c.books.elsewhere, t.Request, f)
	}
	if t.GPUCount > 0 {
		holdGPUs(n.GPUs[row], t, sign)
		if c.books.applying {
			c.books.guess = append(c.books.guess, row)
		}
	}
}

// emptySum returns a sum of nothing. Sums always contain cpu and memory. They contain another dimension only while it is not 0, so that a
// sum depends only on its present members.
func emptySum() Resources { return make(Resources, Memory+1, Pods+1) } // every member of a sum is at least a pod

// rests contains the rounding errors of the sums of a job or a queue: the exact sum minus the stored sum.
type rests struct{ allocated, occupied, request, gated Resources }

// addSum adds sign times b to a sum, exactly. rest stores the rounding error.
func (r *Resources) addSum(rest *Resources, b Resources, sign float64) {
	for i, v := range b {
		if v != v {
			continue
		}
		r.AddExactly(rest, i, sign*v)
		if (*r)[i] == 0 && i > Memory {
			(*r)[i] = Absent()
		}
	}
}

// touchTask records that a task changed, and with it its nodes, its job and its queue. from is the row where the task was before.
func (c *Cluster) touchTask(t *Task, from int32) {
	if from != NoNode {
		c.touchNode(from)
	}
	if t.Node != NoNode && t.Node != from {
		c.touchNode(t.Node)
	}
	c.TaskLog.AddOf(t, len(c.Tasks))
	c.touchJob(t.Job)
}

// changed records that the content changed.
func (c *Cluster) changed() {
	c.Clock++
	c.content = c.Clock
}

// Content identifies what the cluster contains: while the number is the same, everything that a policy can read is the same. When steps are
// undone, Clock still increases, but Content returns to its number before the steps.
func (c *Cluster) Content() uint64 { return c.content }

func (c *Cluster) touchNode(row int32) {
	c.changed()
	c.Nodes.Version[row]++
	c.Nodes.Log.Add(row)
	if len(c.books.claimants) > 0 {
		c.books.claimRows[row] = true
	}
}

func (c *Cluster) touchJob(j *Job) {
	c.changed()
	j.Version++
	c.JobLog.AddOf(j, len(c.Tasks))
	if j.Queue != nil {
		c.touchQueue(j.Queue)
	}
}

func touchJobs(c *Cluster, keys []string) {
	for _, key := range keys {
		if j := c.Jobs[key]; j != nil {
			c.touchJob(j)
		}
	}
}

func (c *Cluster) touchQueue(q *Queue) {
	c.changed()
	q.Version++
	c.QueueLog.Add(q)
}

// total computes Total, Used, UsedElsewhere, Usable and ReadyNodes from all nodes.
func (c *Cluster) total() {
	c.Total, c.Used, c.UsedElsewhere, c.ReadyNodes = emptySum(), emptySum(), emptySum(), 0
	c.books.usedRest, c.books.elsewhere, c.books.closed = nil, nil, c.books.closed[:0]
	c.books.open, c.books.openRest = emptySum(), nil
	var totalRest Resources
	for _, row := range c.Nodes.byOrder {
		node := c.Nodes.Rows[row]
		if !node.AcceptsPods() {
			c.books.closed = append(c.books.closed, row)
		}
		if !node.Ready {
			c.addUsed(&c.UsedElsewhere, &c.books.elsewhere, row)
			continue
		}
		c.ReadyNodes++
		for _, i := range c.Nodes.Columns() {
			v := c.Nodes.Allocatable[i][row]
			if v != v {
				continue
			}
			c.Total.AddExactly(&totalRest, i, v)
			if !node.AcceptsPods() {
				v = 0 // a resource that no other node offers is listed, with 0
			}
			c.books.open.AddExactly(&c.books.openRest, i, v)
		}
		c.addUsed(&c.Used, &c.books.usedRest, row)
	}
	c.usable()
}

// addUsed adds the resources that pods use on a node to a sum.
func (c *Cluster) addUsed(sum, rest *Resources, row int32) {
	of := c.usedOn(row)
	for _, i := range c.Nodes.Columns() {
		if v, left := of(i); v != 0 {
			sum.AddExactly(rest, i, v)
			sum.AddExactly(rest, i, left)
		}
	}
}

// usable computes Usable: what nodes that accept pods offer, and what pods use on the other nodes, up to what these offer. A user who
// creates a pod with a nodeName must not make the cluster larger. Usable does not change within a cycle: a pod that tolerates the cordon of
// a node, and is placed there, counts from the next Apply on.
func (c *Cluster) usable() {
	sum, rest := c.books.open.Clone(), c.books.openRest.Clone()
	c.books.beyond = c.books.beyond[:0]
	for _, row := range c.books.closed {
		of := c.usedOn(row)
		for _, i := range c.Nodes.Columns() {
			amount, left := of(i)
			uses := amount + left
			if uses == 0 {
				continue
			}
			has := c.Nodes.Allocatable[i][row]
			if uses <= has {
				sum.AddExactly(&rest, i, amount)
				sum.AddExactly(&rest, i, left)
				continue
			}
			if has != has {
				has = 0
			}
			sum.AddExactly(&rest, i, has)
			c.books.beyond.Set(i, c.books.beyond.Get(i)+uses-has)
		}
	}
	c.Usable = sum
}

// AcceptsPods reports whether a node accepts new pods: it is ready and not cordoned.
func (n *Node) AcceptsPods() bool { return n.Ready && !n.Unschedulable }

// Taken returns the resources that pods use on all nodes now. For a node that accepts no pods it counts at most what the node offers.
func (c *Cluster) Taken() Resources {
	if len(c.books.closed) == 0 {
		return c.Used
	}
	taken := c.Used.Add(c.UsedElsewhere)
	if len(c.books.beyond) == 0 {
		return taken
	}
	return taken.Sub(c.books.beyond)
}

// setPhase sets the phase of a job. No other function does.
func (c *Cluster) setPhase(j *Job, phase string, admittedNow bool, at time.Time) {
	was := j.letIn()
	j.countPhase(-1)
	j.Phase, j.AdmittedNow, j.AdmittedAt = phase, admittedNow, at
	j.countPhase(1)
	switch is := j.letIn(); {
	case j.Queue == nil || was == is:
	case is:
		j.Queue.Request.addSum(&j.Queue.rests.request, j.Expected, 1)
	default:
		j.Queue.Request.addSum(&j.Queue.rests.request, j.Expected, -1)
	}
	c.mark(j)
	c.touchJob(j)
}

// countPhase adds by to the count of the job's phase in its queue.
func (j *Job) countPhase(by int64) {
	if j.Queue == nil || j.Orphan {
		return
	}
	count := j.Queue.Phases
	count[j.Phase] += by
	if count[j.Phase] == 0 {
		delete(count, j.Phase)
	}
}

// SetRoleFailed records whether a task of the role found no node in this turn. It ignores a role that the job does not have.
func (c *Cluster) SetRoleFailed(j *Job, role string, failed bool) {
	i, ok := j.findRole(role)
	if !ok || j.Roles[i].Failed == failed {
		return
	}
	content := c.content
	j.Roles[i].Failed = failed
	c.mark(j)
	c.touchJob(j)
	c.content = content // the mark is valid in one turn only, whose end removes it
}

// SetVain records whether no place was found for a task in the turn of its job. A task that requests nothing counts as ready while it
// waits, unless it was just tried and found no node.
func (c *Cluster) SetVain(t *Task, vain bool) {
	if t.Vain == vain {
		return
	}
	content := c.content
	if c.books.trial != nil && vain {
		c.books.trial.vain = append(c.books.trial.vain, t)
	}
	c.account(t, -1)
	t.Vain = vain
	c.account(t, 1)
	c.touchTask(t, t.Node)
	c.content = content
}

// mark adds the job to the jobs that CloseCycle resets.
func (c *Cluster) mark(j *Job) {
	if !j.marked {
		j.marked = true
		c.books.marked = append(c.books.marked, j)
	}
}

// CloseCycle resets what is valid only within a cycle: AdmittedNow and PlacedNow of jobs, Failed of roles. Call it between cycles, when no
// transaction is open.
func (c *Cluster) CloseCycle() {
	for _, j := range c.books.marked {
		changed := j.AdmittedNow || j.PlacedNow != 0
		j.marked, j.AdmittedNow, j.PlacedNow = false, false, 0
		for _, r := range j.Roles {
			changed = changed || r.Failed
			r.Failed = false
		}
		if changed {
			c.touchJob(j)
		}
	}
	c.books.marked = slices.Delete(c.books.marked, 0, len(c.books.marked))
}
