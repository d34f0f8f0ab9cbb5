package openb

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
)

// Percents is the number of columns of a curve: 0 to 130 percent of arrived load.
const Percents = 131

// Tolerance is the maximum difference in points between a curve and the published one, in any column, that counts as equal.
const Tolerance = 0.02

// MeanTolerance is the same for the mean over ten seeds of a policy with random choices. The standard deviation of a run is 0.33 points.
const MeanTolerance = 0.4

// AheadTolerance is the maximum number of points by which a better policy may be behind in a column. It equals three pods with eight GPUs
// that arrived too early, out of 6212 GPUs.
const AheadTolerance = 0.4

// aheadFrom is the first column of this comparison. Before it, both policies place almost all pods that arrive.
const aheadFrom = 80

// Curve is the allocated share of all GPUs, in percent, by percent of arrived load. Column b is the mean over all arrivals after which the
// arrived load rounded to b; NaN if there is none.
type Curve [Percents]float64

// curve computes the curve from the arrivals and their outcomes.
func (t *Trace) curve(pods []Pod, placed []bool) Curve {
	var sum, count Curve
	arrived, allocated := int64(0), int64(0)
	for i, p := range pods {
		arrived += p.Demand()
		if placed[i] {
			allocated += p.Demand()
		}
		b := int(math.RoundToEven(100 * float64(arrived) / float64(t.devices)))
		if b < Percents {
			sum[b] += math.RoundToEven(100*100*float64(allocated)/float64(t.devices)) / 100
			count[b]++
		}
	}
	for b := range sum {
		sum[b] /= count[b]
	}
	return sum
}

// Difference is the largest difference of two curves.
type Difference struct {
	Percent int     // the column
	Points  float64 // our value minus the other value; NaN if ours lacks the column
}

// Beyond reports whether the difference is larger than a tolerance, or could not be measured.
func (d Difference) Beyond(tolerance float64) bool { return !(math.Abs(d.Points) <= tolerance) }

// Compare returns the column in which c differs most from the other curve.
func (c Curve) Compare(other Curve) Difference {
	worst := Difference{}
	for b := range c {
		d := c[b] - other[b]
		if math.IsNaN(d) {
			return Difference{Percent: b, Points: d}
		}
		if math.Abs(d) > math.Abs(worst.Points) {
			worst = Difference{Percent: b, Points: d}
		}
	}
	return worst
}

// Lead returns by how many points a curve is ahead of another from aheadFrom on: the smallest lead with its column, and the mean lead.
func (c Curve) Lead(over Curve) (least Difference, mean float64) {
	least.Points = math.Inf(1)
	for b := aheadFrom; b < Percents; b++ {
		d := c[b] - over[b]
		if !(d >= least.Points) {
			least = Difference{Percent: b, Points: d}
		}
		mean += d / (Percents - aheadFrom)
	}
	return least, mean
}

// Mean returns the mean of curves by column; the zero Curve if there are none.
func Mean(curves []Curve) Curve {
	var mean Curve
	for b := range mean {
		for _, c := range curves {
			mean[b] += c[b] / float64(len(curves))
		}
	}
	return mean
}

// run identifies one published experiment.
type run struct {
	workload, name string
	seed           int64
}

// Published contains the published curves.
type Published struct {
	path   string
	curves map[run]Curve
	seeds  map[run][]int64 // seeds of each workload and name, in the file's order; keys have seed 0
}

// LoadPublished reads the published curves of a trace directory. Errors name file, line and column.
func LoadPublished(dir string) (*Published, error) {
	p := &Published{path: filepath.Join(dir, publishedFile), curves: map[run]Curve{}, seeds: map[run][]int64{}}
	needed := []string{"workload", "sc_policy", "seed"}
	for b := range Percents {
		needed = append(needed, fmt.Sprint(b))
	}
	err := readTable(p.path, needed, func(r *record) {
		all := run{workload: strings.TrimPrefix(r.text("workload"), podListPrefix), name: r.text("sc_policy")}
		one := all
		one.seed = r.count("seed")
		var c Curve
		for b, column := range needed[3:] {
			c[b] = r.number(column)
		}
		if _, twice := p.curves[one]; twice {
			r.fail("seed", "workload %s, policy %s has seed %d already", one.workload, one.name, one.seed)
		}
		p.curves[one] = c
		p.seeds[all] = append(p.seeds[all], one.seed)
	})
	return p, err
}

// Stand adds curves for workloads without published runs: those of policies that reproduce the published runs.
func (p *Published) Stand(results []*Result) {
	for _, r := range results {
		one := run{r.Workload, r.Heuristic.Published, r.Seed}
		if _, known := p.curves[one]; !known && r.Heuristic.Published != "" && r.Heuristic.Compared == SameRuns {
			p.curves[one] = r.Curve
		}
	}
}

// Curve returns the curve of one published run. The error contains the seeds in the file.
func (p *Published) Curve(workload, name string, seed int64) (Curve, error) {
	c, ok := p.curves[run{workload, name, seed}]
	if !ok {
		return c, fmt.Errorf("%s: no run of workload %s, policy %s, seed %d; seeds of that policy there: %v",
			p.path, workload, name, seed, p.seeds[run{workload: workload, name: name}])
	}
	return c, nil
}
