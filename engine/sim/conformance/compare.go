package conformance

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// differences lists the differences between an outcome and the recording, one line each: the subject, our value, Volcano's value.
func (c *Case) differences(dims *model.Dims, ours *Outcome) []string {
	d := &differ{}
	theirs := c.Observed
	if c.Loose() {
		d.loose(c, ours)
	} else {
		d.maps("bind", ours.Binds, theirs.Binds)
		d.maps("pipeline", ours.Pipelined, theirs.Pipelined)
		d.set("evict", ours.Evicts, theirs.Evicts)
		d.idle(dims, ours.Idle, theirs.Nodes)
	}
	phases := c.phasesBefore() // a group that Volcano left out, such as one without a queue, keeps its phase
	for job, phase := range theirs.PodGroupPhases {
		phases[job] = phaseOr(phase)
	}
	d.maps("phase", ours.Phases, phases)
	if same := theirs.Invariants; c.Loose() && same != nil && same.Evicts == nil && same.EvictCount != nil {
		d.counts(ours.Tasks, theirs.Jobs)
		return d.lines
	}
	for _, job := range slices.Sorted(maps.Keys(theirs.Jobs)) {
		d.tasks(c.Loose(), ours.Tasks[job], theirs.Jobs[job].Tasks)
	}
	return d.lines
}

// differ collects differences.
type differ struct{ lines []string }

func (d *differ) add(what, ours, theirs string) {
	d.lines = append(d.lines, fmt.Sprintf("%s: %s, Volcano %s", what, orNone(ours), orNone(theirs)))
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// maps compares values by key. A missing value is shown as "-".
func (d *differ) maps(what string, ours, theirs map[string]string) {
	keys := map[string]bool{}
	for k := range ours {
		keys[k] = true
	}
	for k := range theirs {
		keys[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if ours[k] != theirs[k] {
			d.add(what+" "+k, ours[k], theirs[k])
		}
	}
}

// set compares two lists as sets.
func (d *differ) set(what string, ours, theirs []string) {
	is := func(list []string) map[string]string {
		m := map[string]string{}
		for _, s := range list {
			m[s] = "yes"
		}
		return m
	}
	d.maps(what, is(ours), is(theirs))
}

// loose compares what was equal in all of Volcano's runs. If this was not recorded, it compares the sets.
func (d *differ) loose(c *Case, ours *Outcome) {
	same := c.Observed.Invariants
	bound, pipelined := slices.Sorted(maps.Keys(ours.Binds)), slices.Sorted(maps.Keys(ours.Pipelined))
	if same == nil {
		d.set("bind", bound, slices.Collect(maps.Keys(c.Observed.Binds)))
		d.set("pipeline", pipelined, slices.Collect(maps.Keys(c.Observed.Pipelined)))
		d.set("evict", ours.Evicts, c.Observed.Evicts)
		return
	}
	if same.BoundPods != nil {
		d.set("bind", bound, same.BoundPods)
	}
	if same.BindCount != nil && *same.BindCount != len(bound) {
		d.add("number of binds", strconv.Itoa(len(bound)), strconv.Itoa(*same.BindCount))
	}
	if same.PipelinedPods != nil {
		d.set("pipeline", pipelined, same.PipelinedPods)
	}
	if same.Evicts != nil {
		d.set("evict", ours.Evicts, same.Evicts)
	}
	if same.EvictCount != nil && *same.EvictCount != len(ours.Evicts) {
		d.add("number of evictions", strconv.Itoa(len(ours.Evicts)), strconv.Itoa(*same.EvictCount))
	}
	if spread := perNode(ours.Binds); same.BindsPerNodeSorted != nil && !slices.Equal(spread, same.BindsPerNodeSorted) {
		d.add("binds by node", fmt.Sprint(spread), fmt.Sprint(same.BindsPerNodeSorted))
	}
}

// perNode returns the numbers of binds of the nodes that have any, in ascending order.
func perNode(binds map[string]string) []int {
	count := map[string]int{}
	for _, node := range binds {
		count[node]++
	}
	return slices.Sorted(maps.Values(count))
}

// tasks compares the status of each pod of a job, and its node unless nodes may differ.
func (d *differ) tasks(loose bool, ours, theirs map[string]map[string]string) {
	flat := func(byStatus map[string]map[string]string) map[string]string {
		out := map[string]string{}
		for status, pods := range byStatus {
			for pod, node := range pods {
				out[pod] = status
				if node != "" && !loose {
					out[pod] += " on " + node
				}
			}
		}
		return out
	}
	d.maps("status", flat(ours), flat(theirs))
}

// counts compares the number of pods by status over all jobs. It is used if the evicted pods varied.
func (d *differ) counts(ours map[string]map[string]map[string]string, theirs map[string]Job) {
	x, y := map[string]int{}, map[string]int{}
	for job, there := range theirs {
		for status, pods := range ours[job] {
			x[status] += len(pods)
		}
		for status, pods := range there.Tasks {
			y[status] += len(pods)
		}
	}
	for _, status := range slices.Sorted(maps.Keys(y)) {
		if x[status] != y[status] {
			d.add("number of pods that are "+status, strconv.Itoa(x[status]), strconv.Itoa(y[status]))
		}
	}
}

// idle compares the idle amounts of the nodes, within Volcano's own rounding.
func (d *differ) idle(dims *model.Dims, ours map[string]model.Resources, theirs map[string]NodeUse) {
	for _, node := range slices.Sorted(maps.Keys(theirs)) {
		amounts, known := ours[node]
		if !known {
			continue
		}
		for part := range strings.SplitSeq(theirs[node].Idle, ", ") {
			name, text, _ := strings.Cut(part, " ")
			want, err := strconv.ParseFloat(text, 64)
			if err != nil {
				d.add("idle on "+node, "", part)
				continue
			}
			got := 0.0
			if i, ok := dims.Find(name); ok {
				got = amounts.Get(i)
				if name == "pods" { // the only countable resource that the recordings do not have in thousandths
					got /= dims.Unit(i)
				}
			}
			if math.Abs(got-want) > 0.01 {
				d.add("idle "+name+" on "+node, strconv.FormatFloat(got, 'f', 2, 64), text)
			}
		}
	}
}
