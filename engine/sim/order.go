package sim

import (
	"cmp"
	"maps"
	"slices"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// sortedKeys returns the keys of a map in order, so that results do not vary.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// nearest is source.Nearest with names in any order.
func nearest(word string, names []string) string {
	slices.Sort(names)
	return source.Nearest(word, names)
}
