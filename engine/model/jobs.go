package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// orphanPrefix is the prefix of the key of a job that contains a single pod.
const orphanPrefix = "~"

// joinJob adds a task to the job of its PodGroup, or to a job of its own. The task must not be accounted yet.
func (c *Cluster) joinJob(t *Task) {
	j := c.Jobs[t.group]
	if t.group == "" || j == nil || !t.mayJoin(j) {
		j = &Job{
			Slot: c.Slots.Jobs.Take(), Key: orphanPrefix + t.Key, Orphan: true, Phase: PhasePending, QueueName: t.boundIn,
			Allocated: emptySum(), Occupied: emptySum(), Request: emptySum(), GatedRequest: emptySum(),
		}
		c.readOrphan(j, t)
		putJob(c, j)
		if t.group != "" {
			c.books.groupless.put(t.group, t.Key, t, true)
		}
		c.enterQueue(j)
	}
	t.Job = j
	t.share(j.role(t.Role))
	j.Tasks = append(j.Tasks, t)
	c.untidy(j)
}

// putJob adds a job to the cluster.
func putJob(c *Cluster, j *Job) {
	c.Jobs[j.Key] = j
	c.books.jobs.Changed(j.Key)
}

// dropJob removes a job from the cluster.
func dropJob(c *Cluster, j *Job) {
	delete(c.Jobs, j.Key)
	delete(c.Past.Stuck, j.Key)
	c.Slots.Jobs.Leave(j.Slot)
	c.books.jobs.Changed(j.Key)
}

// readOrphan sets the fields of a job that contains a single pod.
func (c *Cluster) readOrphan(j *Job, t *Task) {
	j.Name, j.Title, j.Namespace, j.CreatedAt = t.Name, j.Key, t.Namespace, t.CreatedAt
	j.Labels, j.Annotations = t.Labels, t.Annotations
	j.Preemptable = readPreemptable(t.Annotations, t.Labels, false)
	j.PreemptableForGang = readPreemptable(t.Annotations, t.Labels, true)
	j.PriorityClassName = t.PriorityClassName
	j.Priority = c.ClassValue(j.PriorityClassName)
}

// leaveJob removes a task from its job. The task must no longer be accounted. The list of the job's tasks is cleaned up later.
func (c *Cluster) leaveJob(t *Task) {
	j := t.Job
	if j.Orphan {
		c.leaveQueue(j)
		dropJob(c, j)
		if t.group != "" {
			c.books.groupless.put(t.group, t.Key, t, false)
		}
	}
	j.dropRole(t.role)
	c.untidy(j)
}

// rejoin moves a task to the job to which it now belongs.
func (c *Cluster) rejoin(t *Task) {
	was := t.Job
	c.account(t, -1)
	c.leaveJob(t)
	c.joinJob(t)
	c.Slots.Tasks.Change(t.Slot)
	c.account(t, 1)
	c.touchJob(was)
	c.touchTask(t, t.Node)
}

func (c *Cluster) untidy(j *Job) {
	if !j.untidy {
		j.untidy = true
		c.books.untidy = append(c.books.untidy, j)
	}
}

// tidy removes the tasks that have left and the duplicates, and sorts the list.
func (j *Job) tidy() {
	j.untidy = false
	j.Tasks = slices.DeleteFunc(j.Tasks, func(t *Task) bool { return t.gone || t.Job != j })
	byTaskKey := func(a, b *Task) int { return strings.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(j.Tasks, byTaskKey) {
		slices.SortFunc(j.Tasks, byTaskKey)
	}
	j.Tasks = slices.Compact(j.Tasks)
}

func (j *Job) findRole(name string) (int, bool) {
	return slices.BinarySearchFunc(j.Roles, name, func(r *Role, name string) int { return strings.Compare(r.Name, name) })
}

// role returns the job's role with that name, and creates it if necessary.
func (j *Job) role(name string) *Role {
	i, ok := j.findRole(name)
	if !ok {
		j.Roles = slices.Insert(j.Roles, i, &Role{Name: name, Min: j.RoleMin[name]})
	}
	return j.Roles[i]
}

// dropRole removes a role that has neither tasks nor a minimum.
func (j *Job) dropRole(r *Role) {
	if _, named := j.RoleMin[r.Name]; named || r.TaskCount() > 0 {
		return
	}
	if i, ok := j.findRole(r.Name); ok && j.Roles[i] == r {
		j.Roles = slices.Delete(j.Roles, i, i+1)
	}
}

func (c *Cluster) upsertGroup(o *v1beta1.PodGroup, m *mistakes) {
	next := readGroup(c.Dims, o, m)
	c.Limits.metadata(o, m)
	if len(m.errs) > 0 {
		c.removeGroup(next.Key)
		return
	}
	next.Priority = c.ClassValue(next.PriorityClassName)
	j := c.Jobs[next.Key]
	var was *Queue
	var members []*Task
	if j != nil {
		was = j.Queue
	}
	if j == nil {
		j = next
		j.Slot = c.Slots.Jobs.Take()
		j.Allocated, j.Occupied, j.Request, j.GatedRequest = emptySum(), emptySum(), emptySum(), emptySum()
		putJob(c, j)
	} else {
		c.leaveQueue(j)
		c.books.owned.put(j.owner, j.Key, j, false)
		if j.QueueName != next.QueueName {
			members = slices.Clone(j.Tasks)
		}
		j.takeOver(next)
		c.Slots.Jobs.Change(j.Slot)
	}
	if j.owner != "" {
		c.books.owned.put(j.owner, j.Key, j, true)
	}
	for _, name := range sortedKeys(j.RoleMin) {
		j.role(name)
	}
	for _, r := range slices.Clone(j.Roles) {
		r.Min = j.RoleMin[r.Name]
		j.dropRole(r)
	}
	c.enterQueue(j)
	c.untidy(j)
	if j.Queue != was {
		c.logTasks(j)
	}
	for _, t := range append(members, c.books.groupless.list(j.Key)...) {
		if !t.gone && (t.Job == j) != t.mayJoin(j) {
			c.rejoin(t)
		}
	}
	c.touchJob(j)
}

// takeOver overwrites the fields of the PodGroup with those of its newer version.
func (j *Job) takeOver(next *Job) {
	j.QueueName, j.PriorityClassName, j.Priority = next.QueueName, next.PriorityClassName, next.Priority
	j.CreatedAt, j.Labels, j.Annotations = next.CreatedAt, next.Labels, next.Annotations
	j.Preemptable, j.PreemptableForGang = next.Preemptable, next.PreemptableForGang
	j.HasTopology, j.MinMember = next.HasTopology, next.MinMember
	j.MinResources, j.HasMinResources = next.MinResources, next.HasMinResources
	j.RoleMin, j.RoleMinTotal = next.RoleMin, next.RoleMinTotal
	j.Name, j.Title, j.owner, j.ownerUID = next.Name, next.Title, next.owner, next.ownerUID
	j.Phase, j.Object = next.Phase, next.Object
}

// removeGroup removes a PodGroup. Each of its tasks gets a job of its own.
func (c *Cluster) removeGroup(key string) {
	j := c.Jobs[key]
	if j == nil {
		return
	}
	j.tidy()
	dropJob(c, j)
	tasks := slices.Clone(j.Tasks)
	for _, t := range tasks {
		c.rejoin(t)
	}
	c.leaveQueue(j)
	c.books.owned.put(j.owner, j.Key, j, false)
	j.Queue = nil
	c.touchJob(j)
	touchJobs(c, c.Past.Rivals.Left(key))
}

// enterQueue counts a job in its queue, or lets it wait for the queue to be created. For an orphan, only the resources that it holds count.
func (c *Cluster) enterQueue(j *Job) {
	if j.QueueName == "" {
		return
	}
	q := c.Queues[j.QueueName]
	j.Queue = q
	if q == nil {
		c.books.queueless.put(j.QueueName, j.Key, j, true)
		return
	}
	q.Jobs[j.Key] = j
	j.countPhase(1)
	q.addJob(j, 1)
	c.touchQueue(q)
}

// Seated reports whether the job is in a queue that accepts jobs: the queue exists, and is not the root, which only contains other queues.
func (j *Job) Seated() bool {
	return !j.Orphan && j.Queue != nil && j.QueueName != v1beta1.RootQueue
}

// JobCount returns the number of PodGroups in a queue.
func (q *Queue) JobCount() int64 {
	var n int64
	for _, count := range q.Phases {
		n += count
	}
	return n
}

// addJob adds the amounts of a job to the sums of its queue (sign 1), or subtracts them (sign -1). Expected counts only for an admitted
// job.
func (q *Queue) addJob(j *Job, sign float64) {
	for _, of := range []Resources{j.Allocated, j.rests.allocated} {
		q.Allocated.addSum(&q.rests.allocated, of, sign)
	}
	for _, of := range []Resources{j.Occupied, j.rests.occupied} {
		q.Occupied.addSum(&q.rests.occupied, of, sign)
	}
	for _, of := range []Resources{j.Request, j.rests.request} {
		q.Request.addSum(&q.rests.request, of, sign)
	}
	if !j.letIn() {
		q.Request.addSum(&q.rests.request, j.Expected, -sign)
	}
}

func (c *Cluster) leaveQueue(j *Job) {
	q := j.Queue
	if q == nil {
		if j.QueueName != "" {
			c.books.queueless.put(j.QueueName, j.Key, j, false)
		}
		return
	}
	delete(q.Jobs, j.Key)
	j.countPhase(-1)
	q.addJob(j, -1)
	c.touchQueue(q)
}

func (c *Cluster) upsertQueue(o *v1beta1.Queue, m *mistakes) {
	next := readQueue(c.Dims, o, m)
	if len(m.errs) > 0 {
		c.removeQueue(next.Name)
		return
	}
	if q := c.Queues[next.Name]; q != nil {
		next.Jobs, next.Phases, next.Allocated, next.Request = q.Jobs, q.Phases, q.Allocated, q.Request
		next.Occupied, next.Slot, next.Version, next.rests = q.Occupied, q.Slot, q.Version, q.rests
		if q.Parent != next.Parent || q.State != next.State || q.Open != next.Open || !q.Capability.Equal(next.Capability) {
			c.QueueLimits++
		}
		*q = *next
		c.Slots.Queues.Change(q.Slot)
		c.touchQueue(q)
		return
	}
	c.QueueLimits++
	next.Slot = c.Slots.Queues.Take()
	c.Queues[next.Name], c.books.queues = next, nil
	c.touchQueue(next)
	for _, j := range c.books.queueless.list(next.Name) {
		c.books.queueless.put(next.Name, j.Key, j, false)
		c.enterQueue(j)
		c.logTasks(j)
		c.touchJob(j)
	}
}

// logTasks logs the tasks of a job as changed after its queue changed.
func (c *Cluster) logTasks(j *Job) {
	for _, t := range j.Tasks {
		c.TaskLog.AddOf(t, len(c.Tasks))
	}
}

func (c *Cluster) removeQueue(name string) {
	q := c.Queues[name]
	if q == nil {
		return
	}
	c.QueueLimits++
	delete(c.Queues, name)
	delete(c.Past.Exceeded, name)
	c.Slots.Queues.Leave(q.Slot)
	c.books.queues = nil
	for _, j := range byKey(q.Jobs) {
		c.leaveQueue(j)
		c.enterQueue(j)
		c.logTasks(j)
		c.touchJob(j)
	}
	c.touchQueue(q)
}

// ClassValue returns the value of a PriorityClass; if the class does not exist, that of the default class; if there is none, 0. If several
// classes are the default, the lowest value counts, as in Kubernetes.
func (c *Cluster) ClassValue(name string) int64 {
	if p := c.PriorityClasses[name]; p != nil {
		return p.Value
	}
	if p := c.defaultClass(); p != nil {
		return p.Value
	}
	return 0
}

func (c *Cluster) defaultClass() *PriorityClass {
	var lowest *PriorityClass
	for _, p := range c.PriorityClasses {
		if p.Default && (lowest == nil || cmp.Or(cmp.Compare(p.Value, lowest.Value), strings.Compare(p.Name, lowest.Name)) < 0) {
			lowest = p
		}
	}
	return lowest
}

// readClasses updates the fields of jobs and tasks that depend on PriorityClasses.
func (c *Cluster) readClasses() {
	for _, j := range c.JobsByKey() {
		changed := false
		if v := c.ClassValue(j.PriorityClassName); v != j.Priority {
			j.Priority, changed = v, true
			c.Slots.Jobs.Change(j.Slot)
		}
		for _, t := range j.Tasks {
			if t.gone || t.Job != j {
				continue // the list of the job may still contain tasks that left
			}
			if v := c.preemptionPolicy(t.Object); v != t.PreemptionPolicy {
				t.PreemptionPolicy, changed = v, true
				c.Slots.Tasks.Change(t.Slot)
			}
		}
		if changed {
			c.touchJob(j)
		}
	}
}
