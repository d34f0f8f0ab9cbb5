package rules

import (
	"regexp"
	"slices"
)

// Cycle finds variables that depend on each other in a circle. It returns one of them and the path of names from it back to itself. It
// returns nil if there is no circle.
func (t *Table) Cycle() (at *Variable, path []string) {
	uses := map[string][]string{}
	word := regexp.MustCompile(`\bvariables\.(\w+)`)
	for _, v := range t.Variables {
		for _, m := range word.FindAllStringSubmatch(v.Expression.Value, -1) {
			uses[v.Name] = append(uses[v.Name], m[1])
		}
	}
	for _, v := range t.Variables {
		if path := findCycle(v.Name, v.Name, uses, nil); path != nil {
			return v, path
		}
	}
	return nil, nil
}

// findCycle returns a path along uses from at back to start, or nil if there is none.
func findCycle(start, at string, uses map[string][]string, path []string) []string {
	path = append(path, at)
	for _, next := range uses[at] {
		if next == start {
			return append(path, start)
		}
		if !slices.Contains(path, next) {
			if found := findCycle(start, next, uses, path); found != nil {
				return found
			}
		}
	}
	return nil
}
