package model

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/follow"
)

// Check recomputes everything that the cluster stores, from its tasks and objects. It returns the first difference, or nil. It is for
// tests, which call it after every step. It costs as much as building the cluster from scratch.
func (c *Cluster) Check() error {
	if c.books.broken != nil {
		return c.books.broken
	}
	for _, check := range []func() error{
		c.checkTasks, c.checkColumns, c.checkRows, c.checkNodes, c.checkJobs, c.checkQueues, c.checkTotals, c.checkWaiting, c.checkOrder,
		c.checkQuotas, c.Budgets.check, c.checkStorage,
		func() error { return checkSlots(c) }, c.checkTerms, c.checkPeers,
		func() error { return checkClaims(c) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// sums contains amounts by dimension, added one by one: the exact sum is amounts plus rest.
type sums struct{ amounts, rest Resources }

func (s *sums) add(lists ...Resources) {
	for _, r := range lists {
		for i := range r {
			if r.Has(i) {
				s.amounts.AddExactly(&s.rest, i, r[i])
			}
		}
	}
}

// check compares with a stored sum. The stored sum must contain cpu and memory, and another dimension only if it is not 0.
func (s *sums) check(d *Dims, what string, kept, rest Resources) error {
	for i := range max(d.Len(), len(kept)) {
		if s.amounts.Get(i) != kept.Get(i) || s.rest.Get(i) != rest.Get(i) {
			return fmt.Errorf("%s: %s is %g and %g, its tasks sum up to %g and %g", what, d.Name(i), kept.Get(i), rest.Get(i), s.amounts.Get(i),
				s.rest.Get(i))
		}
		if kept.Has(i) != (i <= Memory || s.amounts.Get(i) != 0) {
			return fmt.Errorf("%s: %s is %g, but present: %t", what, d.Name(i), s.amounts.Get(i), kept.Has(i))
		}
	}
	return nil
}

func (c *Cluster) checkTasks() error {
	for _, key := range sortedKeys(c.Tasks) {
		t := c.Tasks[key]
		switch {
		case t.Key != key || t.Key != Key(t.Namespace, t.Name):
			return fmt.Errorf("task %s: is filed under %s", t.Key, key)
		case t.gone:
			return fmt.Errorf("task %s: is gone, but filed", key)
		case t.Job == nil || c.Jobs[t.Job.Key] != t.Job:
			return fmt.Errorf("task %s: its job is not of the cluster", key)
		case !slices.Contains(t.Job.Roles, t.role) || t.role.Name != t.Role:
			return fmt.Errorf("task %s: its role %q is not of its job", key, t.Role)
		}
		if err := cmp.Or(c.checkMember(t), c.checkSpot(t)); err != nil {
			return fmt.Errorf("task %s, which is %s: %w", key, t.Status, err)
		}
	}
	return nil
}

// checkMember checks the job of a task. It must be the job of the task's PodGroup, if the PodGroup exists and the task may join it.
// Otherwise it must be a job of the task's own.
func (c *Cluster) checkMember(t *Task) error {
	switch group := c.Jobs[t.group]; {
	case t.Job.Orphan != (t.group == "" || group == nil || !t.mayJoin(group)), !t.Job.Orphan && t.Job != group:
		return fmt.Errorf("it is of PodGroup %q, but in job %s", t.group, t.Job.Key)
	case t.Job.Orphan && t.Job.QueueName != t.boundIn:
		return fmt.Errorf("it was bound in queue %q, but counts in %q", t.boundIn, t.Job.QueueName)
	}
	return nil
}

func (c *Cluster) checkSpot(t *Task) error {
	row, known := c.Nodes.Index[t.NodeName]
	switch {
	case t.Status >= NumStatus:
		return errors.New("no such status")
	case t.Status == Gone:
		return errors.New("is taken for gone, though no step looks ahead")
	case c.books.nominated[t] != (t.NominatedNode != ""), t.NominatedNode != "" && t.Foreign:
		return fmt.Errorf("has the nominated node %q", t.NominatedNode)
	case t.Status == Pending && (t.NodeName != "" || t.GPUs != nil):
		return fmt.Errorf("is on node %q with devices %v", t.NodeName, t.GPUs)
	case !t.Status.onNode() && t.Node != NoNode:
		return fmt.Errorf("is on row %d", t.Node)
	case t.Status.onNode() && known && t.Node != row, t.Node != NoNode && !known:
		return fmt.Errorf("is on row %d, which is not node %q", t.Node, t.NodeName)
	}
	return nil
}

// checkColumns checks that all columns have the same length.
func (c *Cluster) checkColumns() error {
	n := &c.Nodes
	for _, columns := range [][][]float64{n.Allocatable, n.Used, n.Releasing, n.Pipelined} {
		if len(columns) != len(n.Allocatable) {
			return fmt.Errorf("nodes: %d columns of one kind, %d of another", len(columns), len(n.Allocatable))
		}
		for i, column := range columns {
			if len(column) != len(n.Rows) {
				return fmt.Errorf("nodes: column %s has %d rows of %d", c.Dims.Name(i), len(column), len(n.Rows))
			}
		}
	}
	if err := c.checkOwn(); err != nil {
		return err
	}
	for _, rows := range []int{
		len(n.TaskCount), len(n.Unasked[CPU]), len(n.Unasked[Memory]), len(n.Tasks), len(n.GPUs), len(n.Order),
		len(n.Object), len(n.Version),
	} {
		if rows != len(n.Rows) {
			return fmt.Errorf("nodes: a column has %d rows of %d", rows, len(n.Rows))
		}
	}
	return nil
}

// checkOwn checks each dimension that nodes offer or tasks on them request. It must have its own columns and be counted. It also checks
// that shared columns are empty.
func (c *Cluster) checkOwn() error {
	n := &c.Nodes
	held := make([]int32, len(n.Allocatable))
	for row := range n.Rows {
		for dim, column := range n.Allocatable {
			if column[row] == column[row] {
				held[dim]++
			}
		}
		for _, t := range n.Tasks[row] {
			for dim := Pods + 1; dim < len(t.Request); dim++ {
				if t.Request.Has(dim) {
					held[dim]++
				}
			}
		}
		if b := &n.columns; b.absent[row] == b.absent[row] || b.zero[row] != 0 {
			return fmt.Errorf("nodes: a column of nothing has %g, %g in row %d", b.absent[row], b.zero[row], row)
		}
	}
	for dim, count := range held {
		own := n.columns.owns[dim]
		if n.columns.held[dim] != count || count > 0 && !own || own != slices.Contains(n.columns.own, dim) {
			return fmt.Errorf("nodes: %s has columns of its own: %t, for %d of %d", c.Dims.Name(dim), own, n.columns.held[dim], count)
		}
	}
	return nil
}

// checkRows checks that rows and names agree, and that a free row is empty.
func (c *Cluster) checkRows() error {
	n, used := &c.Nodes, 0
	for row, node := range n.Rows {
		if node == nil {
			if len(n.Tasks[row]) > 0 || n.GPUs[row] != nil || !n.AllocatableOf(int32(row)).Equal(nil) {
				return fmt.Errorf("nodes: row %d is free, but holds something", row)
			}
			continue
		}
		used++
		if at, ok := n.Index[node.Name]; !ok || at != int32(row) || node.Row != int32(row) {
			return fmt.Errorf("node %s: is in row %d, but filed in %d", node.Name, row, at)
		}
	}
	if used != len(n.Index) || n.Slots.Len() != len(n.Rows) {
		return fmt.Errorf("nodes: %d rows, %d slots, %d in use, %d names", len(n.Rows), n.Slots.Len(), used, len(n.Index))
	}
	return nil
}

// onRow contains the sums over the tasks on a row.
type onRow struct {
	used, releasing, pipelined sums
	count                      int32
	unasked                    [Memory + 1]int32
	tasks                      []*Task
}

func (c *Cluster) checkNodes() error {
	want := make([]onRow, len(c.Nodes.Rows))
	for _, t := range c.TasksByKey() {
		if t.Node == NoNode {
			continue
		}
		w := &want[t.Node]
		w.tasks = append(w.tasks, t)
		switch t.Status {
		case Pipelined:
			w.pipelined.add(t.Request)
			continue
		case Releasing:
			w.releasing.add(t.Request)
		case Pending, Allocated, Binding, Bound, Running, Succeeded, Failed, Unknown, Gone, NumStatus:
		}
		w.used.add(t.Request)
		w.count++
		for dim := range w.unasked {
			if t.Request.Get(dim) == 0 {
				w.unasked[dim]++
			}
		}
	}
	for row := range want {
		if err := c.checkNode(int32(row), &want[row]); err != nil {
			return fmt.Errorf("node %s: %w", c.Nodes.nameOf(int32(row)), err)
		}
	}
	return nil
}

func (n *Nodes) nameOf(row int32) string {
	if n.Rows[row] == nil {
		return fmt.Sprintf("(free row %d)", row)
	}
	return n.Rows[row].Name
}

func (c *Cluster) checkNode(row int32, want *onRow) error {
	n := &c.Nodes
	for i := range n.Used {
		for kind, of := range []*sums{used: &want.used, releasing: &want.releasing, pipelined: &want.pipelined} {
			has, rest := n.columnsOf(columnKind(kind))[i][row], n.rest(columnKind(kind), i, row)
			if has != of.amounts.Get(i) || rest != of.rest.Get(i) {
				return fmt.Errorf("%s: of used, releasing, pipelined number %d is %g and %g, its tasks sum up to %g and %g", c.Dims.Name(i), kind,
					has, rest, of.amounts.Get(i), of.rest.Get(i))
			}
		}
	}
	if n.TaskCount[row] != want.count {
		return fmt.Errorf("counts %d tasks, has %d", n.TaskCount[row], want.count)
	}
	if unasked := [Memory + 1]int32{n.Unasked[CPU][row], n.Unasked[Memory][row]}; unasked != want.unasked {
		return fmt.Errorf("counts %d tasks without a request of cpu and of memory, has %d", unasked, want.unasked)
	}
	if !slices.Equal(n.Tasks[row], want.tasks) {
		return fmt.Errorf("lists %d tasks, not the %d that are on it in key order", len(n.Tasks[row]), len(want.tasks))
	}
	if n.Rows[row] == nil {
		return nil
	}
	return checkGPUs(newGPUs(n.Rows[row]), n.GPUs[row], want.tasks)
}

func checkGPUs(want, kept []GPU, tasks []*Task) error {
	for _, t := range tasks {
		for _, i := range t.GPUs {
			if i < len(want) && t.Status != Pipelined && (!want[i].Unlisted || !t.RequestsGPUs) {
				want[i].Free -= t.GPUMilli
				want[i].MemoryFree -= t.DeviceMemory(&want[i])
				want[i].TaskCount++
			}
		}
	}
	if !slices.Equal(want, kept) {
		return fmt.Errorf("devices are %v, by its tasks they should be %v", kept, want)
	}
	return nil
}

func (c *Cluster) checkJobs() error {
	tasks := map[*Job][]*Task{}
	for _, t := range c.TasksByKey() {
		tasks[t.Job] = append(tasks[t.Job], t)
	}
	for _, key := range sortedKeys(c.Jobs) {
		j := c.Jobs[key]
		if j.Key != key || !slices.Equal(j.Tasks, tasks[j]) {
			return fmt.Errorf("job %s: lists %d tasks, not its %d in key order", key, len(j.Tasks), len(tasks[j]))
		}
		if err := c.checkJob(j); err != nil {
			return fmt.Errorf("job %s: %w", key, err)
		}
	}
	return nil
}

func (c *Cluster) checkJob(j *Job) error {
	var all counts
	var bestEffort int64
	roles := map[string]*Role{}
	for name, least := range j.RoleMin {
		roles[name] = &Role{Name: name, Min: least}
	}
	var allocated, occupied, request, gated sums
	for _, t := range j.Tasks {
		if t.occupies() {
			occupied.add(t.Request)
		}
		r := roles[t.Role]
		if r == nil {
			r = &Role{Name: t.Role}
			roles[t.Role] = r
		}
		request.add(t.withheld())
		gated.add(t.withheld())
		all[t.Status]++
		r.Counts[t.Status]++
		if t.readyBestEffort() {
			bestEffort++
			r.PendingBestEffort++
		}
		switch {
		case t.Status.taken():
			allocated.add(t.Request)
			request.add(t.Request)
		case t.Status == Pending:
			request.add(t.Request)
			if t.Gated {
				gated.add(t.Request)
			}
		}
	}
	if counts(j.Counts) != all || j.PendingBestEffort != bestEffort {
		return fmt.Errorf("counts %v, %d best-effort; its tasks are %v, %d", j.Counts, j.PendingBestEffort, all, bestEffort)
	}
	if err := checkRoles(byKey(roles), j.Roles); err != nil {
		return err
	}
	if j.PlacedNow < 0 {
		return fmt.Errorf("placed %d tasks", j.PlacedNow)
	}
	if want := c.expectedOf(j); !want.Equal(j.Expected) {
		return fmt.Errorf("expects %s, should expect %s", c.Dims.Text(j.Expected), c.Dims.Text(want))
	}
	request.add(j.Expected)
	return errors.Join(allocated.check(c.Dims, "allocated", j.Allocated, j.rests.allocated),
		occupied.check(c.Dims, "occupied", j.Occupied, j.rests.occupied),
		request.check(c.Dims, "request", j.Request, j.rests.request), gated.check(c.Dims, "gated request", j.GatedRequest, j.rests.gated))
}

func checkRoles(want, kept []*Role) error {
	if len(want) != len(kept) {
		return fmt.Errorf("has %d roles, should have %d", len(kept), len(want))
	}
	for i, r := range kept {
		w := *want[i]
		w.Failed, w.template = r.Failed, r.template
		if *r != w {
			return fmt.Errorf("role %d is %v, by its tasks it should be %v", i, *r, w)
		}
	}
	return nil
}

func (c *Cluster) checkQueues() error {
	for _, j := range byKey(c.Jobs) {
		if j.Queue != c.Queues[j.QueueName] { // no queue has the name ""
			return fmt.Errorf("job %s: is not in queue %q", j.Key, j.QueueName)
		}
		if j.Queue != nil && j.Queue.Jobs[j.Key] != j {
			return fmt.Errorf("queue %s: lacks job %s", j.QueueName, j.Key)
		}
	}
	if !slices.Equal(c.QueuesByName(), byKey(c.Queues)) {
		return errors.New("the list of queues is not that of the queues that there are")
	}
	for _, q := range c.QueuesByName() {
		if err := c.checkQueue(q); err != nil {
			return fmt.Errorf("queue %s: %w", q.Name, err)
		}
	}
	return nil
}

func (c *Cluster) checkQueue(q *Queue) error {
	phases := map[string]int64{}
	var allocated, occupied, request sums
	for _, j := range byKey(q.Jobs) {
		if j.Queue != q || c.Jobs[j.Key] != j {
			return fmt.Errorf("has job %s, which is not its own", j.Key)
		}
		if !j.Orphan {
			phases[j.Phase]++
		}
		allocated.add(j.Allocated, j.rests.allocated)
		occupied.add(j.Occupied, j.rests.occupied)
		request.add(j.Request, j.rests.request)
		if !j.letIn() {
			request.add(Resources(nil).Sub(j.Expected))
		}
	}
	if !maps.Equal(phases, q.Phases) {
		return fmt.Errorf("phases are %v, by its jobs %v", q.Phases, phases)
	}
	return errors.Join(allocated.check(c.Dims, "allocated", q.Allocated, q.rests.allocated),
		occupied.check(c.Dims, "occupied", q.Occupied, q.rests.occupied),
		request.check(c.Dims, "request", q.Request, q.rests.request))
}

func (c *Cluster) checkTotals() error {
	var total, used, elsewhere sums
	ready := 0
	listed := map[int]bool{CPU: true, Memory: true}
	for row, node := range c.Nodes.Rows {
		if node == nil {
			continue
		}
		if !node.Ready {
			for _, t := range c.Nodes.Tasks[row] {
				if t.usesCluster() {
					elsewhere.add(t.Request)
				}
			}
			continue
		}
		ready++
		allocatable := c.Nodes.AllocatableOf(int32(row))
		total.add(allocatable)
		for i := range allocatable {
			listed[i] = listed[i] || allocatable.Has(i)
		}
		for _, t := range c.Nodes.Tasks[row] {
			if t.usesCluster() {
				used.add(t.Request)
			}
		}
	}
	if ready != c.ReadyNodes {
		return fmt.Errorf("cluster: counts %d ready nodes, has %d", c.ReadyNodes, ready)
	}
	for i := range c.Dims.Len() {
		if c.Total.Get(i) != total.amounts.Get(i) || c.Total.Has(i) != listed[i] {
			return fmt.Errorf("cluster: total %s is %g, by its nodes %g", c.Dims.Name(i), c.Total.Get(i), total.amounts.Get(i))
		}
	}
	return cmp.Or(used.check(c.Dims, "cluster: used", c.Used, c.books.usedRest),
		elsewhere.check(c.Dims, "cluster: used elsewhere", c.UsedElsewhere, c.books.elsewhere))
}

// checkWaiting checks that the lists contain exactly the tasks and jobs that wait for a missing object.
func (c *Cluster) checkWaiting() error {
	lost, groupless, queueless := waiting[*Task]{}, waiting[*Task]{}, waiting[*Job]{}
	for _, t := range c.TasksByKey() {
		if t.Node == NoNode && t.NodeName != "" && t.Status.onNode() {
			lost.put(t.NodeName, t.Key, t, true)
		}
		if t.Job.Orphan && t.group != "" {
			groupless.put(t.group, t.Key, t, true)
		}
	}
	for _, j := range byKey(c.Jobs) {
		if j.QueueName != "" && j.Queue == nil {
			queueless.put(j.QueueName, j.Key, j, true)
		}
	}
	return errors.Join(lost.check("node", c.books.lost), groupless.check("PodGroup", c.books.groupless),
		queueless.check("queue", c.books.queueless))
}

func (w waiting[T]) check(kind string, kept waiting[T]) error {
	if len(w) != len(kept) {
		return fmt.Errorf("%d objects of kind %s are waited for, %d are listed", len(w), kind, len(kept))
	}
	for _, what := range sortedKeys(w) {
		if !maps.Equal(w[what], kept[what]) {
			return fmt.Errorf("%s %s: %v wait for it, %v are listed", kind, what, sortedKeys(w[what]), sortedKeys(kept[what]))
		}
	}
	return nil
}

// checkOrder checks that the ranks are 0, 1, 2… over the rows in use, and that the logs are within their limits.
func (c *Cluster) checkOrder() error {
	n := &c.Nodes
	if len(n.byOrder) != len(n.Index) {
		return fmt.Errorf("nodes: %d of %d are ranked", len(n.byOrder), len(n.Index))
	}
	for rank, row := range n.byOrder {
		if !n.used(row) || n.Order[row] != int32(rank) {
			return fmt.Errorf("node %s: has rank %d, should have %d", n.nameOf(row), n.Order[row], rank)
		}
	}
	for _, length := range []int{
		len(n.Log.Entries), len(c.TaskLog.Entries), len(c.JobLog.Entries), len(c.QueueLog.Entries),
		len(c.Storage.Log.Entries),
	} {
		if length > follow.LogLimit {
			return fmt.Errorf("a log has %d entries, more than %d", length, follow.LogLimit)
		}
	}
	return nil
}

// checkSlots checks that every object has a slot or a row of its own, and that all other slots are free.
func checkSlots(c *Cluster) error {
	return errors.Join(c.Slots.Tasks.Check(slotsOf(c.Tasks, func(t *Task) int32 { return t.Slot })),
		c.Slots.Jobs.Check(slotsOf(c.Jobs, func(j *Job) int32 { return j.Slot })),
		c.Slots.Queues.Check(slotsOf(c.Queues, func(q *Queue) int32 { return q.Slot })), c.Nodes.Slots.Check(c.Nodes.byOrder))
}

func slotsOf[T any](objects map[string]T, slot func(T) int32) []int32 {
	used := []int32{0}
	for _, x := range objects {
		used = append(used, slot(x))
	}
	return used
}
