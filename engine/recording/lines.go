package recording

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// version is that of the lines; what reads them reads no other.
const version = 1

// line is one line of a recording, in JSON; one of its fields is set.
type line struct {
	Begin   *begin  `json:"begin,omitempty"`
	Put     *change `json:"put,omitempty"` // an object of a checkpoint
	Own     *own    `json:"own,omitempty"` // the end of a checkpoint
	Policy  *served `json:"policy,omitempty"`
	Apply   changes `json:"apply,omitempty"`
	Spare   *spare  `json:"spare,omitempty"`
	Release string  `json:"release,omitempty"` // the key of a job for which no room is kept any more
	Cycle   *Cycle  `json:"cycle,omitempty"`
}

// begin is the first line of a file.
type begin struct {
	Version        int       `json:"version"`
	SchedulerNames []string  `json:"schedulerNames"`
	Time           time.Time `json:"time"`
	// Number is that of the last cycle before, 0 where there was none.
	Number uint64 `json:"number"`
}

// served is the policy of the cycles that follow.
type served struct {
	Generation int64           `json:"generation"`
	Mode       string          `json:"mode"` // which may be that of a newer version, of which nothing else is obeyed
	Object     json.RawMessage `json:"object"`
}

// spare says until when a task is not evicted.
type spare struct {
	Task  string    `json:"task"`
	Until time.Time `json:"until"`
}

// Cycle is what a recording has of a cycle.
type Cycle struct {
	Number uint64    `json:"number"`
	Now    time.Time `json:"now"`
	// Sum is that of the plan, see SumOf.
	Sum    string   `json:"sum"`
	Admits []string `json:"admits,omitempty"` // keys of jobs
	Binds  []Placed `json:"binds,omitempty"`
	Evicts []Placed `json:"evicts,omitempty"`
}

// Placed is a task and the node that it is bound to, or evicted from.
type Placed struct {
	Task string `json:"task"`
	Node string `json:"node"`
	For  string `json:"for,omitempty"` // the task for which it goes
}

// cycleOf is what a recording has of a plan whose sum is known.
func cycleOf(number uint64, plan *model.Plan, sum string) *Cycle {
	c := &Cycle{Number: number, Now: plan.Now, Sum: sum}
	for i := range plan.Admits {
		c.Admits = append(c.Admits, plan.Admits[i].Job)
	}
	for i := range plan.Binds {
		c.Binds = append(c.Binds, Placed{Task: plan.Binds[i].Task, Node: plan.Binds[i].Node})
	}
	for i := range plan.Evicts {
		e := &plan.Evicts[i]
		c.Evicts = append(c.Evicts, Placed{Task: e.Task, Node: e.Node, For: e.For})
	}
	return c
}

// SumOf is a sum of all that a plan decides and tells, but for its time, how often rows erred, and which of those that rest were asked.
func SumOf(plan *model.Plan) (string, error) {
	p := *plan
	p.Now, p.Errors, p.Fired = time.Time{}, nil, nil
	text, err := json.Marshal(&p)
	if err != nil {
		return "", fmt.Errorf("write the plan: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// change is a delta.
type change struct {
	Op     string          `json:"op,omitempty"` // "": the object is as given
	Kind   string          `json:"kind"`
	Object json.RawMessage `json:"object"`
	// Moment is what momentOf gives of the object, which in JSON has whole seconds.
	Moment time.Time `json:"moment,omitzero"`
}

type changes []change

// Words for what happened to an object.
const (
	opDelete = "delete"
	opForget = "forget"
)

// kinds are the objects that a cluster is made of, by their names here.
func kinds() map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for _, o := range []any{
		corev1.Node{},
		corev1.Pod{},
		corev1.Namespace{},
		corev1.ResourceQuota{},
		corev1.PersistentVolume{},
		corev1.PersistentVolumeClaim{},
		policyv1.PodDisruptionBudget{},
		schedulingv1.PriorityClass{},
		metricsv1beta1.NodeMetrics{},
		nodeinfov1alpha1.Numatopology{},
		extender.Answer{},
		v1beta1.PodGroup{},
		v1beta1.Queue{},
		batchv1alpha1.Job{},
		storagev1.StorageClass{},
		storagev1.CSINode{},
		storagev1.CSIDriver{},
		storagev1.CSIStorageCapacity{},
		storagev1.VolumeAttachment{},
	} {
		t := reflect.TypeOf(o)
		out[t.Name()] = t
	}
	return out
}

// nameOf is the name that kinds has for an object.
func nameOf(object any) string { return reflect.TypeOf(object).Elem().Name() }

// momentOf is the time of an object that is made here, and not by the API server, whose times have whole seconds; nil: it has none.
func momentOf(object any) *metav1.Time {
	switch o := object.(type) {
	case *extender.Answer:
		return &o.At
	case *metricsv1beta1.NodeMetrics:
		return &o.Timestamp
	}
	return nil
}

// written is a delta as it is written.
func written(d model.Delta) (change, error) {
	c := change{Kind: nameOf(d.Object)}
	object := d.Object
	switch d.Op {
	case model.Upsert:
	case model.Forget:
		c.Op = opForget
	case model.Delete:
		c.Op = opDelete
		if o, ok := object.(metav1.Object); ok { // of what is gone only that is read
			object = map[string]any{"metadata": map[string]any{"namespace": o.GetNamespace(), "name": o.GetName(), "uid": o.GetUID()}}
		}
	}
	if at := momentOf(d.Object); at != nil {
		c.Moment = at.Time
	}
	var err error
	if c.Object, err = json.Marshal(object); err != nil {
		return c, fmt.Errorf("write a %s: %w", c.Kind, err)
	}
	return c, nil
}

// read is the delta that was written.
func (c *change) read(known map[string]reflect.Type) (d model.Delta, err error) {
	t, ok := known[c.Kind]
	if !ok {
		return d, fmt.Errorf("there is no kind %q", c.Kind)
	}
	d.Object = reflect.New(t).Interface()
	if err := json.Unmarshal(c.Object, d.Object); err != nil {
		return d, fmt.Errorf("read a %s: %w", c.Kind, err)
	}
	if at := momentOf(d.Object); at != nil && !c.Moment.IsZero() {
		at.Time = c.Moment
	}
	switch c.Op {
	case "":
	case opForget:
		d.Op = model.Forget
	case opDelete:
		d.Op = model.Delete
	default:
		return d, fmt.Errorf("nothing is known of op %q", c.Op)
	}
	return d, nil
}
