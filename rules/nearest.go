package rules

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest gives the word of among that the author most likely meant by word, "" if none is near.
// A word that differs in case only wins; otherwise the one with the fewest edits (a letter put in,
// left out, replaced, or two neighbours swapped), of which at most a third of word's length, and
// always one, is allowed. Of equally near words one with the same letters goes first, then one of
// the same length, then the first in the alphabet.
func Nearest(word string, among []string) string {
	w := []rune(strings.ToLower(word))
	best, most := nearness{}, max(1, len(w)/3)
	for _, candidate := range among {
		c := []rune(strings.ToLower(candidate))
		d := edits(w, c)
		// A word of which no letter is left was not meant.
		if d > most || d >= max(len(w), len(c)) && d > 0 {
			continue
		}
		n := nearness{candidate, d, !sameLetters(w, c), max(len(c)-len(w), len(w)-len(c))}
		if best.word == "" || n.compare(best) < 0 {
			best = n
		}
	}
	return best.word
}

// nearness orders candidates.
type nearness struct {
	word    string
	edits   int
	differs bool // in letters, whatever their order
	longer  int  // or shorter
}

func (n nearness) compare(o nearness) int {
	letters := 0
	if n.differs != o.differs {
		letters = 1
		if o.differs {
			letters = -1
		}
	}
	return cmp.Or(cmp.Compare(n.edits, o.edits), letters, cmp.Compare(n.longer, o.longer), cmp.Compare(n.word, o.word))
}

func sameLetters(a, b []rune) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// edits is the Damerau-Levenshtein distance in which no part is edited twice.
func edits(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
