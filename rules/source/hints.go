package source

// MostHints is the maximum number of wrong names of one text that are compared with all known names. There can be thousands of both.
const MostHints = 100

// Hints suggests known names for the wrong names of one text. The zero value is ready for use. It compares each wrong name once, and at
// most MostHints of them. The known names of a kind are those of the first comparison.
type Hints struct {
	known map[string][]string
	hints map[[2]string]string
}

// DidYouMean suggests the nearest of the names of a kind, which are sorted. It returns "" if no name is near, or after too many wrong
// names.
func (h *Hints) DidYouMean(kind, word string, names func() []string) (hint string) {
	if h.hints == nil {
		h.known, h.hints = map[string][]string{}, map[[2]string]string{}
	}
	id := [2]string{kind, word}
	hint, compared := h.hints[id]
	if compared || len(h.hints) == MostHints {
		return hint
	}
	if h.known[kind] == nil {
		h.known[kind] = names()
	}
	if near := Nearest(word, h.known[kind]); near != "" {
		hint = "did you mean " + near + "?"
	}
	h.hints[id] = hint
	return hint
}
