package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// Summary is how a world stands after its last cycle.
type Summary struct {
	Queues  []QueueSummary `json:"queues"`
	Nodes   []NodeSummary  `json:"nodes"`
	Cluster ClusterSummary `json:"cluster"`
	// RefusedPods are the jobs of which the API server refuses pods.
	RefusedPods []RefusedPods `json:"refusedPods,omitempty"`
}

// QueueSummary is what a queue has and wants.
type QueueSummary struct {
	Queue string `json:"queue"`
	State string `json:"state"`
	// Allocated is what its pods hold, as Kubernetes quantities.
	Allocated map[string]string `json:"allocated"`
	// Jobs counts its jobs by phase of their PodGroups.
	Jobs map[string]int64 `json:"jobs"`
	// Placed and Pending count the pods that hold resources, and those that wait for them.
	Placed  int64 `json:"placed"`
	Pending int64 `json:"pending"`
	// Computed are the fields that the policy's tables compute for the queue, such as deserved and share, for people.
	Computed map[string]string `json:"computed,omitempty"`

	text   string // Allocated, for people
	parent string
}

// NodeSummary is how much of a node is in use.
type NodeSummary struct {
	Node  string `json:"node"`
	State string `json:"state"`
	Pods  int    `json:"pods"`
	// Use of its resources, pods left out.
	Use []Use `json:"use"`
	// GPUs are its devices by index.
	GPUs []DeviceUse `json:"gpus,omitempty"`
}

// DeviceUse is how much of a GPU is in use.
type DeviceUse struct {
	Index   int     `json:"index"`
	Percent float64 `json:"percent"`
}

// ClusterSummary is how much of a cluster is in use.
type ClusterSummary struct {
	Nodes      int   `json:"nodes"`
	ReadyNodes int   `json:"readyNodes"`
	Use        []Use `json:"use"`
	// Bound, Evicted and Waiting count the pods that the last cycle bound and evicted, and those of ours that still wait.
	Bound   int `json:"bound"`
	Evicted int `json:"evicted,omitempty"`
	Waiting int `json:"waiting"`
	// WaitingJobs counts the jobs that still want pods placed.
	WaitingJobs int `json:"waitingJobs"`
	// RefusedJobs counts the jobs of which the API server refuses pods.
	RefusedJobs int `json:"refusedJobs,omitempty"`
}

// Use is how much of a resource of the ready nodes is in use, in amounts for people.
type Use struct {
	Resource string  `json:"resource"`
	Used     string  `json:"used"`
	Total    string  `json:"total"`
	Percent  float64 `json:"percent"` // to one digit
}

// summarise tells how the world stands. plan is that of the last cycle. Resources that are known are told of though nothing of them is in
// use.
func (w *World) summarise(plan *model.Plan, known func(resource string) bool) Summary {
	c := w.cluster
	s := Summary{RefusedPods: w.refusedPods()}
	session := w.decider.Session() // of the last cycle
	for _, name := range sortedKeys(c.Queues) {
		q := summariseQueue(c, c.Queues[name])
		if session != nil {
			q.Computed = session.Computed(c.Queues[name])
		}
		s.Queues = append(s.Queues, q)
	}
	names := sortedKeys(c.Nodes.Index)
	slices.SortStableFunc(names, naturalNode)
	for _, name := range names {
		s.Nodes = append(s.Nodes, summariseNode(c, c.Nodes.Index[name]))
	}
	for _, row := range c.Nodes.Rows {
		if row != nil {
			s.Cluster.Nodes++
		}
	}
	s.Cluster.ReadyNodes = c.ReadyNodes
	s.Cluster.RefusedJobs = len(s.RefusedPods)
	s.Cluster.Use = useOf(c, known)
	s.Cluster.Bound, s.Cluster.Evicted = len(plan.Binds), len(plan.Evicts)
	for _, job := range c.Jobs {
		pending := int64(0)
		for _, t := range job.Tasks {
			if !t.Foreign && (t.Status == model.Pending || t.Status == model.Pipelined || t.Status == model.Allocated) {
				pending++
			}
		}
		if pending > 0 || len(job.Expected) > 0 {
			s.Cluster.WaitingJobs++
			s.Cluster.Waiting += int(pending)
		}
	}
	return s
}

func summariseNode(c *model.Cluster, row int32) NodeSummary {
	n := c.Nodes.Rows[row]
	s := NodeSummary{Node: n.Name, State: explain.NodeState(n), Pods: int(c.Nodes.TaskCount[row])}
	gpus := c.Nodes.GPUs[row]
	for _, i := range c.Dims.Sorted() {
		if i == model.Pods || i >= len(c.Nodes.Allocatable) || c.Dims.Name(i) == model.GPUResource && len(gpus) > 0 {
			continue
		}
		total, used := c.Nodes.Allocatable[i][row], c.Nodes.Used[i][row]
		if !(total > 0) { // NaN where the node has none
			continue
		}
		s.Use = append(s.Use, Use{c.Dims.Name(i), c.Dims.AmountText(i, used), c.Dims.AmountText(i, total), percent(used, total)})
	}
	for i, g := range gpus {
		s.GPUs = append(s.GPUs, DeviceUse{i, percent(float64(g.Capacity-g.Free), float64(g.Capacity))})
	}
	return s
}

func summariseQueue(c *model.Cluster, q *model.Queue) QueueSummary {
	s := QueueSummary{
		Queue: q.Name, State: q.State, Allocated: map[string]string{}, Jobs: map[string]int64{},
		text: c.Dims.Text(shown(q.Allocated)), parent: q.Parent,
	}
	for i := range q.Allocated {
		if q.Allocated.Get(i) > 0 {
			s.Allocated[c.Dims.Name(i)] = c.Dims.Quantity(i, q.Allocated[i]).String()
		}
	}
	for _, job := range q.Jobs {
		if !job.Orphan {
			s.Jobs[job.Phase]++
		}
		s.Pending += job.Counts[model.Pending] + job.Counts[model.Pipelined] + job.Counts[model.Allocated]
		s.Placed += job.Counts[model.Binding] + job.Counts[model.Bound] + job.Counts[model.Running]
	}
	return s
}

// shown leaves out amounts that are 0.
func shown(r model.Resources) model.Resources { return r.Positive() }

// useOf a cluster is how much of each of its amounts is in use.
func useOf(c *model.Cluster, known func(resource string) bool) []Use {
	var out []Use
	for _, a := range amountsOf(c, known) {
		out = append(out, Use{a.resource, a.text(a.used), a.text(a.total), percent(a.used, a.total)})
	}
	return out
}

// percent of a total, to one digit; of nothing, 0.
func percent(used, total float64) float64 {
	if total == 0 {
		return 0
	}
	return math.Round(1000*used/total) / 10
}

// text is the summary for people, with what was in use over time, if any passed.
func (s Summary) text(over []UseOverTime) string {
	rows := [][]string{{"QUEUE", "STATE", "JOBS", "PLACED", "PENDING", "ALLOCATED"}}
	for _, q := range s.Queues {
		rows = append(rows, []string{q.Queue, q.State, phaseCounts(q.Jobs), fmt.Sprint(q.Placed), fmt.Sprint(q.Pending), q.text})
	}
	return explain.Columns("", rows) + "\n" + s.Cluster.text(over)
}

// phaseCounts is "2 Running, 1 Pending", in the order of a PodGroup's life.
func phaseCounts(n map[string]int64) string {
	var parts []string
	for _, phase := range manifest.GroupPhases() {
		if n[phase] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[phase], phase))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func (s ClusterSummary) text(over []UseOverTime) string {
	rows := [][]string{{"CLUSTER", "USED", "OF", "PERCENT"}}
	if len(over) > 0 {
		rows[0] = append(rows[0], "MEAN", "PEAK")
	}
	for _, u := range s.Use {
		row := []string{u.Resource, u.Used, u.Total, fmt.Sprintf("%g%%", u.Percent)}
		if len(over) > 0 {
			row = append(row, "-", "-")
		}
		for i := range over {
			if o := &over[i]; o.Queue == "" && o.Resource == u.Resource {
				row[4], row[5] = fmt.Sprintf("%g%%", o.MeanPercent), fmt.Sprintf("%g%%", o.PeakPercent)
			}
		}
		rows = append(rows, row)
	}
	ready := ""
	if s.ReadyNodes < s.Nodes {
		ready = fmt.Sprintf(" (%d ready)", s.ReadyNodes)
	}
	evicted := ""
	if s.Evicted > 0 {
		evicted = fmt.Sprintf(", %d evicted", s.Evicted)
	}
	refused := ""
	if s.RefusedJobs > 0 {
		refused = ", pods of " + explain.Count(s.RefusedJobs, "job") + " refused"
	}
	return explain.Columns("", rows) + fmt.Sprintf("\n%s%s; %s bound%s, %s of %s waiting%s\n",
		explain.Count(s.Nodes, "node"), ready, explain.Count(s.Bound, "pod"), evicted, explain.Count(s.Waiting, "pod"),
		explain.Count(s.WaitingJobs, "job"), refused)
}
