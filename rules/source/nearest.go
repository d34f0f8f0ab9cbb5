package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Nearest returns the word of among that the author most likely meant by word, or "" if none is near. A word that differs only in case
// wins. Otherwise the word with the fewest edits wins. An edit inserts, removes or replaces a letter, or swaps two neighbors. At most a
// third of the word's length in edits is allowed, but always at least one. If several words are equally near, a word with the same letters
// wins. Then a word of the same length wins, and then the first in alphabetical order. A word with the opposite meaning is never returned:
// an author who writes disableJobOrder does not mean enableJobOrder.
func Nearest(word string, among []string) string {
	w := []rune(strings.ToLower(word))
	best, most, d := nearness{}, max(1, len(w)/3), distances{}
	for _, candidate := range among {
		c := []rune(strings.ToLower(candidate))
		if max(len(c)-len(w), len(w)-len(c)) > most || len(w) > longestWord && !slices.Equal(w, c) {
			continue
		}
		away := d.edits(w, c, most)
		// A word without any common letter was not meant, and neither was the opposite.
		if away > most || away >= max(len(w), len(c)) && away > 0 {
			continue
		}
		n := nearness{candidate, away, !sameLetters(w, c), max(len(c)-len(w), len(w)-len(c))}
		if (best.word == "" || n.compare(best) < 0) && !d.opposite(string(w), string(c), away) {
			best, most = n, away // a word with more edits is not nearer
		}
	}
	return best.word
}

// longestWord is the maximum length of words that are compared letter by letter. The time for this grows with the square of their length.
const longestWord = 100

// Suggest returns a hint for a word that is not among the known words.
func Suggest(word string, among []string) string {
	if len(among) == 0 {
		return "there are none"
	}
	all := "known: " + strings.Join(among, ", ")
	if near := Nearest(word, among); near != "" {
		return fmt.Sprintf("did you mean %q? (%s)", near, all)
	}
	return all
}

// nearness defines the order of candidates.
type nearness struct {
	word    string
	edits   int
	differs bool // whether its letters differ, in any order
	longer  int  // difference in length
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

// distances computes distances between words. It keeps the memory of one computation for the next one.
type distances struct{ before, last, row []int }

// edits returns the Damerau-Levenshtein distance in which no part is edited twice. If the distance is above most, the result is any number
// above most: the computation ends as soon as this is certain.
func (d *distances) edits(a, b []rune, most int) int {
	if n := len(b) + 1; cap(d.row) < n {
		d.before, d.last, d.row = make([]int, n), make([]int, n), make([]int, n)
	}
	before, last, row := d.before[:len(b)+1], d.last[:len(b)+1], d.row[:len(b)+1]
	for j := range row {
		row[j] = j
	}
	leastBefore, least := 0, 0
	for i := range a {
		before, last, row = last, row, before
		row[0] = i + 1
		leastBefore, least = least, row[0]
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
			least = min(least, row[j+1])
		}
		if least > most && leastBefore >= most { // a swap adds one edit to the row before
			return most + 1
		}
	}
	return row[len(b)]
}

// opposites returns pairs of word parts with opposite meanings.
func opposites() [][2]string {
	return [][2]string{
		{"enable", "disable"},
		{"allow", "deny"},
		{"include", "exclude"},
		{"with", "without"},
		{"only", "without"},
		{"min", "max"},
		{"least", "most"},
		{"before", "after"},
		{"open", "close"},
		{"start", "end"},
		{"first", "last"},
		{"always", "never"},
		{"prefer", "avoid"},
		{"required", "preferred"},
	}
}

// negations returns the prefixes that turn a word into its opposite.
func negations() []string { return []string{"un", "in", "non", "not", "no", "anti", "dis", "de"} }

// opposite reports whether turning a word into its opposite brings it nearer to a candidate. away is the present distance.
func (d *distances) opposite(word, candidate string, away int) bool {
	nearer := func(turned string) bool {
		return turned != word && away > 0 && d.edits([]rune(turned), []rune(candidate), away-1) < away
	}
	for _, o := range opposites() {
		if nearer(strings.Replace(word, o[0], o[1], 1)) || nearer(strings.Replace(word, o[1], o[0], 1)) {
			return true
		}
	}
	for _, no := range negations() {
		if nearer(no+word) || nearer(strings.TrimPrefix(word, no)) {
			return true
		}
	}
	return false
}
