package openb

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// Summary contains the results of one policy on one workload.
type Summary struct {
	Heuristic *Heuristic
	Workload  string
	Results   []*Result
	Mean      Curve
	Published *Curve     // the mean of the published runs with the same seeds; nil if there is none
	Worst     Difference // the largest difference of any run from the published run with its seed
}

// Summarise groups results by policy and workload, in their order, and adds the published curves. It fails if a policy names a published
// run that does not exist.
func Summarise(results []*Result, published *Published) ([]*Summary, error) {
	var out []*Summary
	for _, r := range results {
		if len(out) == 0 || out[len(out)-1].Heuristic != r.Heuristic || out[len(out)-1].Workload != r.Workload {
			out = append(out, &Summary{Heuristic: r.Heuristic, Workload: r.Workload})
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
		if s.Heuristic.Published == "" {
			continue
		}
		want, err := published.Curve(r.Workload, s.Heuristic.Published, r.Seed)
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

// worse returns the larger difference. A difference that could not be measured is the largest.
func worse(a, b Difference) Difference {
	if math.IsNaN(a.Points) || !math.IsNaN(b.Points) && math.Abs(a.Points) >= math.Abs(b.Points) {
		return a
	}
	return b
}

// compared returns how the policy's runs compare with the published ones, and whether they are as required. Without published runs it does
// not fail.
func (s *Summary) compared() (text string, ok bool) {
	if s.Published == nil {
		return "-", true
	}
	switch s.Heuristic.Compared {
	case SameMean:
		d := s.Mean.Compare(*s.Published)
		return fmt.Sprintf("mean: %.3f points at %d %%", math.Abs(d.Points), d.Percent), !d.Beyond(MeanTolerance)
	case Ahead:
		least, mean := s.Mean.Lead(*s.Published)
		return fmt.Sprintf("from %d %%: %+.2f points, at %d %% %+.2f", aheadFrom, mean, least.Percent, least.Points), mean > 0 &&
			least.Points >= -AheadTolerance
	default:
		return fmt.Sprintf("any run: %.3f points at %d %%", math.Abs(s.Worst.Points), s.Worst.Percent), !s.Worst.Beyond(Tolerance)
	}
}

// WriteTable writes a line for each policy and workload: the mean of its runs, that of the published runs, and how they compare. If each is
// set, a line for each run comes first.
func WriteTable(w io.Writer, summaries []*Summary, published *Published, each bool) error {
	var text strings.Builder
	if each {
		if err := writeRuns(&text, summaries, published); err != nil {
			return err
		}
	}
	text.WriteString("WORKLOAD\tPOLICY\tRUNS\tAT 100 %\tPUBLISHED\tAT 130 %\tPUBLISHED\tOF\tDIFFERENCE\n")
	for _, s := range summaries {
		at100, at130, of := "-", "-", "-"
		if s.Published != nil {
			at100, at130, of = fmt.Sprintf("%.2f", s.Published[100]), fmt.Sprintf("%.2f", s.Published[Percents-1]), s.Heuristic.Published
		}
		difference, _ := s.compared()
		fmt.Fprintf(&text, "%s\t%s\t%d\t%.2f\t%s\t%.2f\t%s\t%s\t%s\n",
			s.Workload, s.Heuristic.Name, len(s.Results), s.Mean[100], at100, s.Mean[Percents-1], at130, of, difference)
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(out, text.String()); err != nil {
		return err
	}
	return out.Flush()
}

func writeRuns(text *strings.Builder, summaries []*Summary, published *Published) error {
	text.WriteString("WORKLOAD\tPOLICY\tSEED\tPLACED\tAT 100 %\tAT 130 %\tLARGEST DIFFERENCE\n")
	for _, s := range summaries {
		for _, r := range s.Results {
			difference := "-"
			if s.Published != nil {
				want, err := published.Curve(r.Workload, s.Heuristic.Published, r.Seed)
				if err != nil {
					return err
				}
				d := r.Curve.Compare(want)
				difference = fmt.Sprintf("%.3f points at %d %%", math.Abs(d.Points), d.Percent)
			}
			fmt.Fprintf(text, "%s\t%s\t%d\t%d/%d\t%.2f\t%.2f\t%s\n",
				r.Workload, s.Heuristic.Name, r.Seed, r.Placed, r.Arrived, r.Curve[100], r.Curve[Percents-1], difference)
		}
	}
	text.WriteString("\n")
	return nil
}

// Verdict returns the last line of a verified replay, and whether all policies compare as required. It fails if there is nothing to compare
// with.
func Verdict(summaries []*Summary) (line string, ok bool) {
	runs, worst := 0, Difference{}
	var wrong []string
	for _, s := range summaries {
		runs += len(s.Results)
		if s.Heuristic.Compared == SameRuns {
			worst = worse(worst, s.Worst)
		}
		if _, as := s.compared(); !as || s.Published == nil {
			wrong = append(wrong, s.Heuristic.Name+" on "+s.Workload)
		}
	}
	line = fmt.Sprintf("openb: %d runs, largest difference of one that must be the same %.3f points", runs, math.Abs(worst.Points))
	if runs == 0 || wrong != nil {
		return strings.TrimSuffix(line+", FAILED: "+strings.Join(wrong, ", "), ": "), false
	}
	return line + ", ok", true
}
