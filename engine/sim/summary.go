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

// Summary is the state of a world after its last cycle.
type Summary struct {
	Queues  []QueueSummary `json:"queues"`
	Nodes   []NodeSummary  `json:"nodes"`
	Cluster ClusterSummary `json:"cluster"`
	// RefusedPods lists the jobs whose pods the API server refuses.
	RefusedPods []RefusedPods `json:"refusedPods,omitempty"`
}

// QueueSummary contains the usage and the demand of a queue.
type QueueSummary struct {
	Queue string `json:"queue"`
	State string `json:"state"`
	// Allocated is the usage of its pods, as Kubernetes quantities.
	Allocated map[string]string `json:"allocated"`
	// Jobs counts its jobs by phase of their PodGroups.
	Jobs map[string]int64 `json:"jobs"`
	// Placed is the number of pods that use resources. Pending is the number of pods that wait for them.
	Placed  int64 `json:"placed"`
	Pending int64 `json:"pending"`
	// Computed contains the fields that the policy's tables compute for the queue, such as deserved and share, as text.
	Computed map[string]string `json:"computed,omitempty"`

	text   string // Allocated as text
	parent string
}

// NodeSummary contains the usage of a node.
type NodeSummary struct {
	Node  string `json:"node"`
	State string `json:"state"`
	Pods  int    `json:"pods"`
	// Use of its resources, except pods.
	Use []Use `json:"use"`
	// GPUs are its devices by index.
	GPUs []DeviceUse `json:"gpus,omitempty"`
}

// DeviceUse is the usage of a GPU.
type DeviceUse struct {
	Index   int     `json:"index"`
	Percent float64 `json:"percent"`
}

// ClusterSummary contains the usage of a cluster.
type ClusterSummary struct {
	Nodes      int   `json:"nodes"`
	ReadyNodes int   `json:"readyNodes"`
	Use        []Use `json:"use"`
	// Bound and Evicted are the numbers of pods that the last cycle bound and evicted. Waiting is the number of our pods that still wait.
	Bound   int `json:"bound"`
	Evicted int `json:"evicted,omitempty"`
	Waiting int `json:"waiting"`
	// WaitingJobs is the number of jobs with pods to be placed.
	WaitingJobs int `json:"waitingJobs"`
	// RefusedJobs is the number of jobs whose pods the API server refuses.
	RefusedJobs int `json:"refusedJobs,omitempty"`
}

// Use is the usage of a resource on the ready nodes, with amounts as text.
type Use struct {
	Resource string  `json:"resource"`
	Used     string  `json:"used"`
	Total    string  `json:"total"`
	Percent  float64 `json:"percent"` // rounded to one decimal
}

// summarise returns the current state of the world. plan is the plan of the last cycle. Resources for which known is true are listed even
// if they are not in use.
func (w *World) summarise(plan *model.Plan, known func(resource string) bool) Summary {
	c := w.cluster
	s := Summary{RefusedPods: w.refusedPods()}
	session := w.decider.Session() // the session of the last cycle
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
		if !(total > 0) { // NaN if the node has none
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

// shown removes amounts that are 0.
func shown(r model.Resources) model.Resources { return r.Positive() }

// useOf returns the usage of each resource of a cluster.
func useOf(c *model.Cluster, known func(resource string) bool) []Use {
	var out []Use
	for _, a := range amountsOf(c, known) {
		out = append(out, Use{a.resource, a.text(a.used), a.text(a.total), percent(a.used, a.total)})
	}
	return out
}

// percent returns a percentage to one decimal; 0 if the total is 0.
func percent(used, total float64) float64 {
	if total == 0 {
		return 0
	}
	return math.Round(1000*used/total) / 10
}

// text returns the summary as text, with the usage over time if time has passed.
func (s Summary) text(over []UseOverTime) string {
	rows := [][]string{{"QUEUE", "STATE", "JOBS", "PLACED", "PENDING", "ALLOCATED"}}
	for _, q := range s.Queues {
		rows = append(rows, []string{q.Queue, q.State, phaseCounts(q.Jobs), fmt.Sprint(q.Placed), fmt.Sprint(q.Pending), q.text})
	}
	return explain.Columns("", rows) + "\n" + s.Cluster.text(over)
}

// phaseCounts returns "2 Running, 1 Pending", in the order of a PodGroup's life.
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
