package rules

import (
	"regexp"
	"slices"
)

// Cycle finds variables that need each other: one of them, and the way by names from it back to itself. None: nil.
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

// findCycle gives a way from at back to start along uses, nil if there is none.
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
