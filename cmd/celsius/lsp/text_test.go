package lsp

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func TestPositions(t *testing.T) {
	text := NewText("a\nüß日本😀x\r\nlast\rend")
	for _, c := range []struct {
		at     Position
		offset int
	}{
		{Position{0, 0}, 0},
		{Position{0, 1}, 1},
		{Position{0, 9}, 1}, // after the end of its line
		{Position{1, 0}, 2},
		{Position{1, 1}, 4},
		{Position{1, 2}, 6},
		{Position{1, 4}, 12},
		{Position{1, 5}, 12}, // between the two halves of a surrogate pair
		{Position{1, 6}, 16},
		{Position{1, 7}, 17},
		{Position{1, 8}, 17}, // before \r\n
		{Position{2, 4}, 23},
		{Position{3, 0}, 24},
		{Position{4, 0}, 27},
		{Position{-1, -1}, 0},
		{Position{1, -5}, 2},
	} {
		if got := text.offset(c.at); got != c.offset {
			t.Errorf("offset of %v is %d, want %d", c.at, got, c.offset)
		}
	}
	if got := text.spread(2, 5, 2); got != (Range{Position{1, 4}, Position{1, 7}}) {
		t.Errorf("two characters from the fifth of line 2 on are %v", got)
	}
	marked := NewText("\ufeffkind: x")
	if got := marked.spread(1, 7, 1); got != (Range{Position{0, 7}, Position{0, 8}}) {
		t.Errorf("with a byte order mark: %v", got)
	}
}

func TestChanges(t *testing.T) {
	text := NewText("kind: 😀\nname: x\n")
	for _, c := range []struct {
		change Change
		want   string
	}{
		{Change{Range: &Range{Position{0, 8}, Position{0, 8}}, Text: "é"}, "kind: 😀é\nname: x\n"},
		{Change{Range: &Range{Position{0, 6}, Position{0, 8}}, Text: ""}, "kind: \nname: x\n"},
		{Change{Range: &Range{Position{0, 6}, Position{1, 6}}, Text: "1"}, "kind: 1x\n"},
		{Change{Range: &Range{Position{1, 6}, Position{0, 6}}, Text: "1"}, "kind: 😀\nname: 1x\n"}, // the end is before the start
		{Change{Range: &Range{Position{9, 9}, Position{9, 9}}, Text: "z"}, "kind: 😀\nname: x\nz"},
		{Change{Text: "new"}, "new"},
	} {
		if got := text.With(c.change).String(); got != c.want {
			t.Errorf("%+v gives %q, want %q", c.change, got, c.want)
		}
	}
}

// FuzzPositions checks that a place stays the same after it is converted to a position and back. Positions must count in UTF-16. A change
// outside of the text must do no harm.
func FuzzPositions(f *testing.F) {
	f.Add("a\nüß日本😀x\r\nlast", 1, 3, 7)
	f.Add("", 0, 0, 0)
	f.Fuzz(func(t *testing.T, text string, line, character, offset int) {
		text = strings.ToValidUTF8(text, "?")
		x := NewText(text)
		at := x.offset(Position{line, character})
		if at < 0 || at > len(text) || !utf8.ValidString(text[:at]) {
			t.Fatalf("offset %d of %q is inside a character", at, text)
		}
		if again := x.offset(x.position(at)); again != at {
			t.Fatalf("%d becomes %v and then %d in %q", at, x.position(at), again, text)
		}
		p := x.position(at)
		if want := len(utf16.Encode([]rune(text[x.lines[p.Line]:at]))); p.Character != want {
			t.Fatalf("%d is at %v in %q, want character %d", at, p, text, want)
		}
		x.With(Change{Range: &Range{x.position(offset), Position{line, character}}, Text: "y"})
	})
}
