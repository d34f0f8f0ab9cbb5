package openb

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// Summary is the results of one policy.
type Summary struct {
	Name      string
	Workload  string
	Results   []*Result
	Mean      Curve
	Published *Curve // the mean of the published runs of the same seeds; nil where there is none
	Worst     Difference
}

// Summarise groups results by policy, in their order, and puts the published curves beside them. It
// fails where a policy names a published run that is not there.
func Summarise(results []*Result, published *Published) ([]*Summary, error) {
	var out []*Summary
	for _, r := range results {
		if len(out) == 0 || out[len(out)-1].Results[0].Heuristic != r.Heuristic {
			out = append(out, &Summary{Name: r.Heuristic.Name, Workload: r.Workload})
		}
		s := out[len(out)-1]
		s.Results = append(s.Results, r)
	}
	for _, s := range out {
		if err := s.compare(published); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Summary) compare(published *Published) error {
	var ours, theirs []Curve
	for _, r := range s.Results {
		ours = append(ours, r.Curve)
		if r.Heuristic.Published == "" {
			continue
		}
		want, err := published.Curve(r.Workload, r.Heuristic.Published, r.Seed)
		if err != nil {
			return err
		}
		theirs = append(theirs, want)
		s.Worst = worse(s.Worst, r.Curve.Compare(want))
	}
	s.Mean = Mean(ours)
	if len(theirs) == len(ours) {
		mean := Mean(theirs)
		s.Published = &mean
	}
	return nil
}

// worse is the larger difference; one that could not be compared is the largest.
func worse(a, b Difference) Difference {
	if math.IsNaN(a.Points) || !math.IsNaN(b.Points) && math.Abs(a.Points) >= math.Abs(b.Points) {
		return a
	}
	return b
}

// WriteTable writes a line a run, and for each policy the mean beside the published one.
func WriteTable(w io.Writer, summaries []*Summary, published *Published) error {
	var text strings.Builder
	text.WriteString("POLICY\tWORKLOAD\tSEED\tPLACED\tGPUS AT 100 %\tAT 130 %\tLARGEST DIFFERENCE\n")
	for _, s := range summaries {
		for _, r := range s.Results {
			difference := "-"
			if s.Published != nil {
				want, err := published.Curve(r.Workload, r.Heuristic.Published, r.Seed)
				if err != nil {
					return err
				}
				d := r.Curve.Compare(want)
				difference = fmt.Sprintf("%.3f points at %d %%", math.Abs(d.Points), d.Percent)
			}
			fmt.Fprintf(&text, "%s\t%s\t%d\t%d/%d\t%.2f\t%.2f\t%s\n",
				s.Name, r.Workload, r.Seed, r.Placed, r.Arrived, r.Curve[100], r.Curve[Percents-1], difference)
		}
		difference := "-"
		if s.Published != nil {
			difference = fmt.Sprintf("%.3f points in any run", math.Abs(s.Worst.Points))
		}
		fmt.Fprintf(&text, "%s\t%s\tmean\t\t%.2f\t%.2f\t%s\n", s.Name, s.Workload, s.Mean[100], s.Mean[Percents-1], difference)
		if s.Published != nil {
			fmt.Fprintf(&text, "%s\t%s\tmean\tpublished\t%.2f\t%.2f\t-\n",
				s.Results[0].Heuristic.Published, s.Workload, s.Published[100], s.Published[Percents-1])
		}
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(out, text.String()); err != nil {
		return err
	}
	return out.Flush()
}

// Verdict is the last line of a verified replay, and whether every run is the published one.
func Verdict(summaries []*Summary) (line string, ok bool) {
	runs, worst, compared := 0, Difference{}, true
	for _, s := range summaries {
		runs += len(s.Results)
		worst = worse(worst, s.Worst)
		compared = compared && s.Published != nil
	}
	ok = runs > 0 && compared && !worst.Large()
	word := "ok"
	if !ok {
		word = "FAILED"
	}
	return fmt.Sprintf("openb: %d runs, largest difference %.3f points, %s", runs, math.Abs(worst.Points), word), ok
}
