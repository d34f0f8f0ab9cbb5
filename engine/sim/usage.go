package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// UseOverTime is the usage of a resource during a run: on the ready nodes, or by the pods of Queue if it is set.
type UseOverTime struct {
	Queue    string `json:"queue,omitempty"`
	Resource string `json:"resource"`
	// Mean and Peak are the mean and the maximum over the run, as text.
	Mean string `json:"mean"`
	Peak string `json:"peak"`
	// MeanPercent and PeakPercent are percentages of the ready nodes' amounts at the time, to one decimal.
	MeanPercent float64 `json:"meanPercent"`
	PeakPercent float64 `json:"peakPercent"`
	// Points contains the usage after cycles. Each point is valid until the next one.
	Points []UsePoint `json:"points"`

	unit float64 // the unit of Points, in internal units
	text func(float64) string
}

// UsePoint is the usage from a time on, in cores, bytes or pieces.
type UsePoint struct {
	At   time.Time `json:"at"`
	Used float64   `json:"used"`
	// Total is the amount of the ready nodes.
	Total float64 `json:"total"`
	// Deserved is the queue's deserved amount; nil: no table computes it, or it is unlimited.
	Deserved *float64 `json:"deserved,omitempty"`
}

func (p UsePoint) equal(o UsePoint) bool {
	if (p.Deserved == nil) != (o.Deserved == nil) || p.Deserved != nil && *p.Deserved != *o.Deserved {
		return false
	}
	return p.Used == o.Used && p.Total == o.Total
}

// gauges collects the usage during a run, by queue ("" is the cluster) and resource.
type gauges struct {
	of    map[[2]string]*UseOverTime
	order []*UseOverTime // resources in the order of their first use
	from  time.Time      // the time of the first read
}

// gpuUse is the name of the usage of devices.
const gpuUse = "gpus"

// read records the usage after a cycle.
func (g *gauges) read(w *World) {
	c := w.cluster
	if g.from.IsZero() {
		g.from = w.now
	}
	for _, a := range amountsOf(c, g.known) {
		g.note("", a, nil, w.now)
	}
	session := w.decider.Session()
	for _, name := range sortedKeys(c.Queues) {
		q := c.Queues[name]
		var deserved model.Resources
		if session != nil {
			deserved, _ = session.QueueAmounts(q, "deserved")
		}
		for _, i := range c.Dims.Sorted() {
			if i == model.Pods || q.Allocated.Get(i) == 0 && g.of[[2]string{name, c.Dims.Name(i)}] == nil {
				continue
			}
			var d *float64
			if i < len(deserved) && deserved.Has(i) && deserved[i] < model.Most {
				d = &deserved[i]
			}
			g.note(name, amountOf(c, i, q.Allocated.Get(i)), d, w.now)
		}
	}
}

// known reports whether the cluster has used a resource before, so that it stays listed when it is no longer in use.
func (g *gauges) known(resource string) bool { return g.of[[2]string{"", resource}] != nil }

func (g *gauges) note(queue string, a amount, deserved *float64, now time.Time) {
	key := [2]string{queue, a.resource}
	u := g.of[key]
	if u == nil {
		u = &UseOverTime{Queue: queue, Resource: a.resource, unit: a.unit, text: a.text}
		g.of[key] = u
		g.order = append(g.order, u)
		if now.After(g.from) { // it was not in use before
			u.Points = append(u.Points, UsePoint{At: g.from, Total: a.total / a.unit})
		}
	}
	p := UsePoint{At: now, Used: a.used / a.unit, Total: a.total / a.unit}
	if deserved != nil {
		d := *deserved / a.unit
		p.Deserved = &d
	}
	if n := len(u.Points); n == 0 || !u.Points[n-1].equal(p) {
		u.Points = append(u.Points, p)
	}
}

// over returns the usage with means and peaks, the cluster's first.
func (g *gauges) over(from, to time.Time) []UseOverTime {
	var out []UseOverTime
	for _, u := range g.order {
		u.sum(from, to)
		out = append(out, *u)
	}
	slices.SortStableFunc(out, func(a, b UseOverTime) int { return strings.Compare(a.Queue, b.Queue) })
	return out
}

// sum computes the time-weighted mean and the peak.
func (u *UseOverTime) sum(from, to time.Time) {
	var used, total, peak, most float64
	for i, p := range u.Points {
		until := to
		if i+1 < len(u.Points) {
			until = u.Points[i+1].At
		}
		d := until.Sub(p.At).Seconds()
		used, total = used+p.Used*d, total+p.Total*d
		peak, most = max(peak, p.Used), max(most, percent(p.Used, p.Total))
	}
	u.MeanPercent, u.PeakPercent = percent(used, total), most
	u.Peak = u.text(peak * u.unit)
	u.Mean = u.Peak
	if span := to.Sub(from).Seconds(); span > 0 {
		u.Mean = u.text(used / span * u.unit)
	}
}

// amount is the usage of a resource of the ready nodes, in internal units.
type amount struct {
	resource          string
	used, total, unit float64
	text              func(float64) string
}

// amountOf returns the usage of a dimension.
func amountOf(c *model.Cluster, i int, used float64) amount {
	text := func(v float64) string { return c.Dims.AmountText(i, v) }
	return amount{c.Dims.Name(i), used, c.Total.Get(i), c.Dims.Unit(i), text}
}

// amountsOf returns the usage of cpu, memory and pods, then of other resources that are in use or known, then of devices.
func amountsOf(c *model.Cluster, known func(resource string) bool) []amount {
	var out []amount
	for _, i := range c.Dims.Sorted() {
		used := c.Used.Get(i)
		if i > model.Pods && used == 0 && !known(c.Dims.Name(i)) || c.Dims.Name(i) == model.GPUResource {
			continue
		}
		out = append(out, amountOf(c, i, used))
	}
	free, total := 0.0, 0.0
	for row, gpus := range c.Nodes.GPUs {
		if n := c.Nodes.Rows[row]; n == nil || !n.Ready {
			continue
		}
		for _, g := range gpus {
			free, total = free+float64(g.Free), total+float64(g.Capacity)
		}
	}
	if total > 0 || known(gpuUse) {
		text := func(v float64) string { return fmt.Sprintf("%g", round4(v/model.WholeGPU)) }
		out = append(out, amount{gpuUse, total - free, total, model.WholeGPU, text})
	}
	return out
}
