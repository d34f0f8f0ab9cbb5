package recording

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/rivals"
	"github.com/celsius-scheduler/celsius/engine/unread"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// own contains the decisions of a cluster that its objects do not show.
type own struct {
	// Bound contains the tasks that are Binding, and Evicted the evicted tasks. A task may be in both. The pods show neither.
	Bound   []bound  `json:"bound,omitempty"`
	Evicted []string `json:"evicted,omitempty"`
	Spared  []spare  `json:"spared,omitempty"`
	// Nominated contains the nodes where resources are kept for tasks, by task.
	Nominated map[string]string `json:"nominated,omitempty"`
	Admitted  []admitted        `json:"admitted,omitempty"`
	// Fired, Stuck and Exceeded are those of model.Past. Rivals records which jobs evicted pods of which jobs.
	Fired  map[string]time.Time `json:"fired,omitempty"`
	Rivals rivals.Book          `json:"rivals"`
	Stuck  map[string]bool      `json:"stuck,omitempty"`

	Exceeded map[string]time.Time `json:"exceeded,omitempty"`

	// unread contains the mistakes of objects; a recording contains these objects instead.
	unread unread.Book
	// lenient means that restore leaves out tasks with objects that it can no longer read. For a recording, such a task is an error.
	lenient bool
}

type bound struct {
	Task    string             `json:"task"`
	Record  model.Record       `json:"record"`
	Volumes []model.VolumeBind `json:"volumes,omitempty"`
}

// admitted is a job that a cycle admitted.
type admitted struct {
	Job   string    `json:"job"`
	At    time.Time `json:"at"`
	Phase string    `json:"phase"`
}

// ownOf returns the own decisions of a cluster between two cycles.
func ownOf(c *model.Cluster) *own {
	o := &own{
		Nominated: map[string]string{}, Fired: map[string]time.Time{}, Rivals: c.Past.Rivals.Clone(), Stuck: maps.Clone(c.Past.Stuck),
		Exceeded: maps.Clone(c.Past.Exceeded),
		unread:   c.Past.Unread.Clone(),
	}
	maps.Copy(o.Fired, c.Past.Fired)
	seen := 0
	for key, t := range c.Tasks {
		if seen++; seen%copyStep == 0 {
			c.Breathe()
		}
		decided := t.NodeName != "" && (t.Status == model.Binding || t.Status == model.Releasing)
		if decided && t.Object.Spec.NodeName == "" && !t.Foreign { // reads the objects of few tasks, because each read waits for memory
			o.Bound = append(o.Bound, bound{key, t.Record(), t.Volumes})
		}
		if t.Status == model.Releasing && t.Object.DeletionTimestamp == nil {
			o.Evicted = append(o.Evicted, key)
		}
		if !t.Spared.IsZero() {
			o.Spared = append(o.Spared, spare{key, t.Spared})
		}
	}
	slices.SortFunc(o.Bound, func(a, b bound) int { return strings.Compare(a.Task, b.Task) })
	slices.Sort(o.Evicted)
	slices.SortFunc(o.Spared, func(a, b spare) int { return strings.Compare(a.Task, b.Task) })
	for _, t := range c.Nominated() {
		o.Nominated[t.Key] = t.NominatedNode
	}
	for i, j := range c.JobsByKey() {
		if i%copyStep == 0 {
			c.Breathe()
		}
		if !j.AdmittedAt.IsZero() {
			o.Admitted = append(o.Admitted, admitted{j.Key, j.AdmittedAt, j.Phase})
		}
	}
	return o
}

// restored returns the cluster of a checkpoint.
func restored(names []string, objects []model.Delta, o *own) (*model.Cluster, error) {
	c := model.NewCluster(model.Options{SchedulerNames: names, Volumes: volume.New})
	if err := restore(c, objects, o); err != nil {
		return nil, fmt.Errorf("make the cluster of a checkpoint: %w", err)
	}
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("make the cluster of a checkpoint: %w", err)
	}
	return c, nil
}

// restore fills an empty cluster with objects and with the decisions about them.
func restore(c *model.Cluster, objects []model.Delta, o *own) error {
	var first, again []model.Delta // as they were when the cycle decided, and as they are now
	for _, d := range objects {
		before, since := o.before(d.Object)
		first = append(first, model.Delta{Object: before})
		if since {
			again = append(again, d)
		}
	}
	c.Apply(first...) // objects that cannot be read could not be read then either
	if err := o.decide(c); err != nil {
		return err
	}
	c.Apply(again...)
	for _, s := range o.Spared {
		if t := c.Tasks[s.Task]; t != nil {
			t.Spare(s.Until)
		}
	}
	for task, node := range o.Nominated {
		if t := c.Tasks[task]; t != nil {
			c.Nominate(t, node)
		}
	}
	past := model.Past{Fired: o.Fired, Rivals: o.Rivals, Unread: o.unread, Stuck: o.Stuck, Exceeded: o.Exceeded}
	if past.Unread.Empty() {
		past.Unread = c.Past.Unread
	}
	c.Past = past
	return nil
}

// before returns an object as it was when a cycle admitted it, if one did. since reports that the object has changed.
func (o *own) before(object any) (before any, since bool) {
	group, ok := object.(*v1beta1.PodGroup)
	if !ok {
		return object, false
	}
	key := model.Key(group.Namespace, group.Name)
	at, letIn := slices.BinarySearchFunc(o.Admitted, key, func(a admitted, key string) int { return strings.Compare(a.Job, key) })
	if !letIn {
		return group, false
	}
	waiting := group.DeepCopy()
	waiting.Status.Phase = v1beta1.PodGroupPending
	phase := o.Admitted[at].Phase
	return waiting, phase != model.PhaseInqueue || string(group.Status.Phase) == phase
}

// decide repeats the decisions about jobs and tasks.
func (o *own) decide(c *model.Cluster) error {
	for i := range o.Bound {
		b := &o.Bound[i]
		t := c.Tasks[b.Task]
		if t == nil || t.Status != model.Pending {
			if o.lenient {
				continue
			}
			return fmt.Errorf("task %s was bound, and is not there, or does not wait", b.Task)
		}
		model.Resume(c, t, model.Binding, &b.Record, b.Volumes)
	}
	txn := c.Begin()
	for _, a := range o.Admitted {
		if j := c.Jobs[a.Job]; j != nil {
			txn.Admit(j, a.At)
		}
	}
	for _, key := range o.Evicted {
		t := c.Tasks[key]
		if t == nil {
			if o.lenient {
				continue
			}
			return fmt.Errorf("task %s was evicted, and is not there", key)
		}
		txn.Evict(t)
	}
	txn.Commit()
	c.CloseCycle()
	return nil
}
