package asks

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Objects in a request, with the names that Volcano's extenders use.
type (
	amounts struct {
		MilliCPU        float64
		Memory          float64
		ScalarResources map[string]float64 `json:",omitempty"` // amounts in thousandths
		MaxTaskNum      int                `json:",omitempty"`
	}
	taskInfo struct {
		UID         string
		Job         string
		Name        string
		Namespace   string
		TaskRole    string
		Resreq      amounts
		InitResreq  amounts
		Priority    int64
		Preemptable bool
		BestEffort  bool
		Pod         *corev1.Pod
	}
	nodeInfo struct {
		Name        string
		Node        *corev1.Node
		Allocatable amounts
		Capacity    amounts
		Used        amounts
		Idle        amounts
		Releasing   amounts
		Pipelined   amounts
	}
	jobInfo struct {
		UID               string
		Name              string
		Namespace         string
		Queue             string
		Priority          int64
		MinAvailable      int64
		TaskMinAvailable  map[string]int64
		Allocated         amounts
		TotalRequest      amounts
		Tasks             map[string]int64 // number of tasks in each status
		CreationTimestamp metav1.Time
		PodGroup          any
	}
	queueInfo struct {
		UID       string
		Name      string
		Weight    int64
		Allocated amounts
		Request   amounts
		Queue     any
	}
)

// question is an ask with the contents of its requests.
type question struct {
	extender.Ask
	line     *line
	posts    []post
	versions map[string]string // the versions of nodes
	later    map[string]bool   // nodes that were left out because there are too many
}

// post is one request: for one node, for all nodes, or for none. Its text is built when it is sent, because many may wait.
type post struct {
	node  string
	task  []byte
	nodes []*nodeInfo
	whole []byte // used instead of the other fields if set
}

// write prepares the requests of a question; nil: its subject no longer exists. nodes caches nodes that were already prepared.
func write(c *model.Cluster, ask extender.Ask, nodes map[string]*nodeInfo) *question {
	q := &question{Ask: ask, versions: map[string]string{}, later: map[string]bool{}}
	switch ask.Of.Kind {
	case extender.Queue:
		queue := c.Queues[ask.Of.Queue]
		if queue == nil {
			return nil
		}
		q.posts = []post{{whole: text(map[string]any{"queue": queueInfo{
			UID: queue.UID, Name: queue.Name, Weight: queue.Weight, Allocated: amountsOf(c, queue.Allocated), Request: amountsOf(c, queue.Request),
			Queue: queue.Object,
		}})}}
	case extender.Job:
		j := c.Jobs[ask.Of.Job]
		if j == nil {
			return nil
		}
		q.posts = []post{{whole: text(map[string]any{"job": jobOf(c, j)})}}
	default:
		t := c.Tasks[ask.Task]
		if t == nil {
			return nil
		}
		q.aboutNodes(c, text(taskOf(c, t)), nodes)
		if len(q.posts) == 0 {
			return nil
		}
	}
	return q
}

// aboutNodes adds a request for each node, or one request for all.
func (q *question) aboutNodes(c *model.Cluster, task []byte, noted map[string]*nodeInfo) {
	var all []*nodeInfo
	names := []string{}
	for _, name := range q.Nodes {
		row, ok := c.Nodes.Index[name]
		if !ok {
			continue
		}
		if len(names) == mostNodes {
			q.later[name] = true
			continue
		}
		if noted[name] == nil {
			noted[name] = nodeOf(c, row)
		}
		q.versions[name] = c.Nodes.Rows[row].Object.ResourceVersion
		names = append(names, name)
		all = append(all, noted[name])
	}
	q.Nodes = names
	switch {
	case q.As == extender.Prioritize && len(all) > 0:
		q.posts = []post{{task: task, nodes: all}}
	case q.As != extender.Prioritize:
		for i, name := range names {
			q.posts = append(q.posts, post{node: name, task: task, nodes: all[i : i+1]})
		}
	}
}

// text returns the body of a request.
func (p *post) text() []byte {
	switch {
	case p.whole != nil:
		return p.whole
	case p.node != "":
		return text(map[string]any{"task": json.RawMessage(p.task), "node": p.nodes[0]})
	}
	return text(map[string]any{"task": json.RawMessage(p.task), "nodes": p.nodes})
}

// text returns a value as JSON. Objects of a cluster can always be encoded; for other values it returns null.
func text(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return out
}

func amountsOf(c *model.Cluster, r model.Resources) (out amounts) {
	for i := range r {
		if !r.Has(i) || r[i]-r[i] != 0 {
			continue
		}
		q := c.Dims.Quantity(i, r[i])
		switch c.Dims.Name(i) {
		case string(corev1.ResourceCPU):
			out.MilliCPU = float64(q.MilliValue())
		case string(corev1.ResourceMemory):
			out.Memory = float64(q.Value())
		case string(corev1.ResourcePods):
			out.MaxTaskNum = int(q.Value())
		default:
			if out.ScalarResources == nil {
				out.ScalarResources = map[string]float64{}
			}
			out.ScalarResources[c.Dims.Name(i)] = float64(q.MilliValue())
		}
	}
	return out
}

func taskOf(c *model.Cluster, t *model.Task) taskInfo {
	return taskInfo{
		UID: t.UID, Job: t.Job.Key, Name: t.Name, Namespace: t.Namespace, TaskRole: t.Role, Resreq: amountsOf(c, t.Request),
		InitResreq: amountsOf(c, t.Request), Priority: t.Priority, Preemptable: t.Preemptable, BestEffort: t.BestEffort, Pod: shown(t.Object),
	}
}

// shown returns a pod without commands, environment, probes and lifecycle of its containers. They do not matter for its placement, and may
// contain secrets.
func shown(o *corev1.Pod) *corev1.Pod {
	out := o.DeepCopy()
	out.ManagedFields = nil
	delete(out.Annotations, corev1.LastAppliedConfigAnnotation)
	for _, list := range [][]corev1.Container{out.Spec.Containers, out.Spec.InitContainers} {
		for i := range list {
			list[i].Env, list[i].EnvFrom, list[i].Command, list[i].Args = nil, nil, nil, nil
			list[i].Lifecycle, list[i].LivenessProbe, list[i].ReadinessProbe, list[i].StartupProbe = nil, nil, nil, nil
		}
	}
	out.Spec.EphemeralContainers = nil
	return out
}

// nodeOf returns the data of a node in a request. No one changes its object, so it can be encoded later.
func nodeOf(c *model.Cluster, row int32) *nodeInfo {
	n := &c.Nodes
	return &nodeInfo{
		Name: n.Rows[row].Name, Node: n.Rows[row].Object, Allocatable: amountsOf(c, n.AllocatableOf(row)),
		Capacity: amountsOf(c, n.CapacityOf(row)), Used: amountsOf(c, n.UsedOf(row)), Idle: amountsOf(c, n.IdleOf(row)),
		Releasing: amountsOf(c, n.ReleasingOf(row)), Pipelined: amountsOf(c, n.PipelinedOf(row)),
	}
}

func jobOf(c *model.Cluster, j *model.Job) jobInfo {
	out := jobInfo{
		UID: j.Key, Name: j.Name, Namespace: j.Namespace, Queue: j.QueueName, Priority: j.Priority, MinAvailable: j.MinMember,
		TaskMinAvailable: j.RoleMin, Allocated: amountsOf(c, j.Allocated), TotalRequest: amountsOf(c, j.Request),
		Tasks: map[string]int64{}, CreationTimestamp: metav1.NewTime(j.CreatedAt), PodGroup: j.Object,
	}
	for status, count := range j.Counts {
		if count > 0 {
			out.Tasks[model.Status(status).String()] = count
		}
	}
	return out
}
