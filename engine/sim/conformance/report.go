package conformance

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report contains the results of all cases.
type Report struct {
	Results []*Result
	// Stale contains the superfluous entries in the list of deliberate differences.
	Stale []string
}

// count is one line of a table.
type count struct{ effective, passed, deliberate, defects, failed, skipped int }

func (n *count) add(r *Result) {
	switch {
	case r.Skip != "":
		n.skipped++
		return
	case r.Failed():
		n.failed++
	case r.Deliberate != nil:
		n.deliberate++
		if r.Deliberate.Defect != "" {
			n.defects++
		}
	default:
		n.passed++
	}
	if r.Case.Effective() {
		n.effective++
	}
}

func (n *count) all() int { return n.passed + n.deliberate + n.failed + n.skipped }

// tally counts the results under each of a case's names.
func (p *Report) tally(names func(*Case) []string) map[string]*count {
	out := map[string]*count{}
	for _, r := range p.Results {
		for _, name := range names(r.Case) {
			if out[name] == nil {
				out[name] = &count{}
			}
			out[name].add(r)
		}
	}
	return out
}

func (p *Report) total() *count {
	n := &count{}
	for _, r := range p.Results {
		n.add(r)
	}
	return n
}

// OK reports whether no case failed, the list of deliberate differences is correct, and it is short enough in total and for each profile.
func (p *Report) OK() bool {
	n := p.total()
	return n.failed == 0 && len(p.Stale) == 0 && n.passed > 0 && !n.tooMany() &&
		!slices.ContainsFunc(slices.Collect(maps.Values(p.profiles())), (*count).tooMany)
}

// profiles counts the effective derived cases of each profile.
func (p *Report) profiles() map[string]*count {
	return p.tally(func(c *Case) []string {
		if c.Profile == "" || !c.Effective() {
			return nil
		}
		return []string{c.Profile}
	})
}

// tooMany reports whether more than MostDeliberate percent of the effective cases differ deliberately, without defects.
func (n *count) tooMany() bool {
	return 100*(n.deliberate-n.defects) > MostDeliberate*(n.effective-n.defects)
}

// Verdict returns the last line of the report.
func (p *Report) Verdict() string {
	n := p.total()
	return fmt.Sprintf("conformance: %d passed, %d failed, %d skipped of %d", n.passed+n.deliberate, n.failed+len(p.Stale), n.skipped,
		n.all()+len(p.Stale))
}

// Write writes the tables, the reasons for skipped cases and the assumptions. Then it writes the failed cases with both outcomes, the
// deliberate differences in the same form, and the verdict. With verbose, it adds a line for each case.
func (p *Report) Write(w io.Writer, verbose bool) error {
	var b strings.Builder
	p.table(&b, "PACKAGE", p.tally(func(c *Case) []string { return []string{c.Package()} }))
	b.WriteString("\n")
	p.table(&b, "PLUGIN", p.tally((*Case).plugins))
	b.WriteString("\n")
	p.skips(&b)
	if verbose {
		p.cases(&b)
	}
	p.failures(&b)
	p.deliberates(&b)
	fmt.Fprintln(&b, p.Verdict())
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Report) table(b *strings.Builder, title string, rows map[string]*count) {
	var text strings.Builder
	fmt.Fprintf(&text, "PASSED\tDELIBERATE\tFAILED\tSKIPPED\tOF\tEFFECTIVE\t  %s\n", title)
	line := func(name string, n *count) {
		fmt.Fprintf(&text, "%d\t%d\t%d\t%d\t%d\t%d\t  %s\n", n.passed, n.deliberate, n.failed, n.skipped, n.all(), n.effective, name)
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		line(name, rows[name])
	}
	if title == "PACKAGE" {
		line("all", p.total())
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	io.WriteString(t, text.String()) //nolint:errcheck // a strings.Builder takes everything
	t.Flush()                        //nolint:errcheck // likewise
}

func (p *Report) skips(b *strings.Builder) {
	p.reasons(b, "skipped", func(r *Result) string { return r.Skip })
	p.reasons(b, "assumed", func(r *Result) string { return r.Assumed })
}

// reasons counts the values of a text of each result, the most frequent first.
func (p *Report) reasons(b *strings.Builder, title string, of func(*Result) string) {
	why := map[string]int{}
	for _, r := range p.Results {
		if reason := of(r); reason != "" {
			why[reason]++
		}
	}
	if len(why) == 0 {
		return
	}
	b.WriteString(title + ":\n")
	reasons := slices.Collect(maps.Keys(why))
	slices.SortFunc(reasons, func(x, y string) int {
		if why[x] != why[y] {
			return why[y] - why[x]
		}
		return strings.Compare(x, y)
	})
	for _, reason := range reasons {
		fmt.Fprintf(b, "%6d  %s\n", why[reason], reason)
	}
	b.WriteString("\n")
}

func (p *Report) cases(b *strings.Builder) {
	for _, r := range p.Results {
		word := "passed"
		switch {
		case r.Skip != "":
			word = "skipped: " + r.Skip
		case r.Failed():
			word = "FAILED"
		case r.Deliberate != nil:
			word = "deliberate: " + r.Deliberate.Mark
		case !r.Case.Effective():
			word = "passed, nothing to see"
		}
		fmt.Fprintf(b, "%s: %s\n", r.Case.ID, word)
	}
	b.WriteString("\n")
}

func (p *Report) failures(b *strings.Builder) {
	for _, r := range p.Results {
		if !r.Failed() {
			continue
		}
		fmt.Fprintf(b, "FAILED %s\n", r.Case.ID)
		for _, d := range r.Differences {
			fmt.Fprintf(b, "    %s\n", d)
		}
	}
	for _, s := range p.Stale {
		fmt.Fprintf(b, "FAILED %s\n", s)
	}
}

func (p *Report) deliberates(b *strings.Builder) {
	for _, r := range p.Results {
		if r.Deliberate == nil {
			continue
		}
		fmt.Fprintf(b, "deliberate %s (%s)\n    %s\n", r.Case.ID, r.Deliberate.Mark, r.Deliberate.Why)
		if r.Deliberate.Defect != "" {
			fmt.Fprintf(b, "    a defect: %s\n", r.Deliberate.Defect)
		}
		for _, d := range r.Differences {
			fmt.Fprintf(b, "    %s\n", d)
		}
	}
	profiles := p.profiles()
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		n := profiles[name]
		fmt.Fprintf(b, "profile %s: %d of %d effective cases as recorded, %d record a defect, ", name, n.passed, n.effective, n.defects)
		n.writeDeliberate(b)
	}
	n := p.total()
	if n.defects > 0 {
		fmt.Fprintf(b, "%d of %d effective cases record a defect, which is not copied\n", n.defects, n.effective)
	}
	if n.deliberate > n.defects {
		n.writeDeliberate(b)
	}
}

func (n *count) writeDeliberate(b *strings.Builder) {
	left, of := n.deliberate-n.defects, n.effective-n.defects
	fmt.Fprintf(b, "%d of %d effective cases differ deliberately (%.1f %%, at most %d %%)", left, of,
		100*float64(left)/float64(max(of, 1)), MostDeliberate)
	if n.tooMany() {
		b.WriteString(": TOO MANY")
	}
	b.WriteString("\n")
}
