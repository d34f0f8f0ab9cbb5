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

// version is the version of the lines. A reader accepts no other version.
const version = 1

// line is one line of a recording, in JSON. Exactly one of its fields is set.
type line struct {
	Begin   *begin  `json:"begin,omitempty"`
	Put     *change `json:"put,omitempty"` // an object of a checkpoint
	Own     *own    `json:"own,omitempty"` // the end of a checkpoint
	Policy  *served `json:"policy,omitempty"`
	Apply   changes `json:"apply,omitempty"`
	Spare   *spare  `json:"spare,omitempty"`
	Release string  `json:"release,omitempty"` // the key of a job for which no resources are kept any more
	Cycle   *Cycle  `json:"cycle,omitempty"`
}

// begin is the first line of a file.
type begin struct {
	Version        int       `json:"version"`
	SchedulerNames []string  `json:"schedulerNames"`
	Time           time.Time `json:"time"`
	// Number is the number of the last cycle before, 0 if there was none.
	Number uint64 `json:"number"`
}

// served is the policy of the following cycles.
type served struct {
	Generation int64           `json:"generation"`
	Mode       string          `json:"mode"` // may be that of a newer version of the object, which otherwise has no effect
	Object     json.RawMessage `json:"object"`
}

// spare states until when a task is not evicted.
type spare struct {
	Task  string    `json:"task"`
	Until time.Time `json:"until"`
}

// Cycle contains the recorded data of a cycle.
type Cycle struct {
	Number uint64    `json:"number"`
	Now    time.Time `json:"now"`
	// Sum is the sum of the plan, see SumOf.
	Sum    string   `json:"sum"`
	Admits []string `json:"admits,omitempty"` // keys of jobs
	Binds  []Placed `json:"binds,omitempty"`
	Evicts []Placed `json:"evicts,omitempty"`
}

// Placed is a task and the node that it is bound to, or evicted from.
type Placed struct {
	Task string `json:"task"`
	Node string `json:"node"`
	For  string `json:"for,omitempty"` // the task for which it is evicted
}

// cycleOf returns the recorded data of a plan whose sum is known.
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

// SumOf returns a sum of everything in a plan, except its time, how often rows failed, and which rows with a pause were evaluated.
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
	Op     string          `json:"op,omitempty"` // "": an update
	Kind   string          `json:"kind"`
	Object json.RawMessage `json:"object"`
	// Moment is the time of momentOf, because the JSON of the object contains whole seconds only.
	Moment time.Time `json:"moment,omitzero"`
}

type changes []change

// Values of change.Op.
const (
	opDelete = "delete"
	opForget = "forget"
)

// kinds returns the object types of a cluster, by their names here.
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

// nameOf returns the name of an object's type in kinds.
func nameOf(object any) string { return reflect.TypeOf(object).Elem().Name() }

// momentOf returns the time of an object that Celsius creates; nil: it has none. Objects of the API server have times in whole seconds.
func momentOf(object any) *metav1.Time {
	switch o := object.(type) {
	case *extender.Answer:
		return &o.At
	case *metricsv1beta1.NodeMetrics:
		return &o.Timestamp
	}
	return nil
}

// written returns a delta as it is written.
func written(d model.Delta) (change, error) {
	c := change{Kind: nameOf(d.Object)}
	object := d.Object
	switch d.Op {
	case model.Upsert:
	case model.Forget:
		c.Op = opForget
	case model.Delete:
		c.Op = opDelete
		if o, ok := object.(metav1.Object); ok { // for a deleted object, only what Delete reads
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

// read returns the delta that was written.
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
