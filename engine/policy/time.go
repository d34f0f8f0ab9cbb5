package policy

import "slices"

// ReadsTime says whether some row of the policy, or what it computes, reads the time:
// then another decision may come of nothing but waiting. What an action's filters read is left out.
func (p *Policy) ReadsTime() bool {
	return slices.ContainsFunc(p.Facts(), func(f Fact) bool { return slices.Contains(f.Reads, "now") })
}
