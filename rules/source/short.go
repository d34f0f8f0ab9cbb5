package source

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The maximum number of characters of a text for people, and of a word in it. No name, label key or resource name of Kubernetes is longer
// than 317 characters, and neither is namespace/name.
const (
	longestText  = 4000
	longestShown = 320
)

// Short shortens a text for people: it omits the middle of long words and of a long text. Messages quote values of users, and such a value
// can have any length.
func Short(text string) string {
	return cutMiddle(ShortWords(text), longestText)
}

// ShortWords is Short for a text of any length: it cuts words only.
func ShortWords(text string) string {
	if len(text) <= longestShown {
		return text
	}
	var out strings.Builder
	for text != "" {
		end := strings.IndexFunc(text, unicode.IsSpace)
		if end < 0 {
			end = len(text)
		}
		out.WriteString(cutMiddle(text[:end], longestShown))
		_, size := utf8.DecodeRuneInString(text[end:])
		out.WriteString(text[end : end+size])
		text = text[end+size:]
	}
	return out.String()
}

// cutMiddle omits the middle of a text that has more than most characters. It keeps three quarters of them at the start, because messages
// begin with the cause.
func cutMiddle(text string, most int) string {
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return text
	}
	runes := []rune(text)
	last := most / 4
	return string(runes[:most-last-1]) + "…" + string(runes[len(runes)-last:])
}

// Escape writes control characters in the form of a Go string literal. Texts of users can contain characters that a terminal would
// interpret, or that make it look like another text.
func Escape(text string) string {
	if !strings.ContainsFunc(text, isControl) {
		return text
	}
	var out strings.Builder
	for _, c := range text {
		if isControl(c) {
			out.WriteString(visible(c))
		} else {
			out.WriteRune(c)
		}
	}
	return out.String()
}

// Line is Escape for a text that is part of one line, such as a cell of a table. It also escapes line breaks. Otherwise, a text of a user
// could look like other lines of the output.
func Line(text string) string {
	if !strings.ContainsFunc(text, breaksLine) {
		return Escape(text)
	}
	var out strings.Builder
	for _, c := range text {
		if breaksLine(c) {
			out.WriteString(visible(c))
		} else {
			out.WriteRune(c)
		}
	}
	return Escape(out.String())
}

// breaksLine reports whether a character ends a line, for a terminal or for a reader of Unicode text.
func breaksLine(c rune) bool { return c == '\n' || c == '\u2028' || c == '\u2029' }

// EscapeJSON is Escape for all strings of a compact JSON text.
func EscapeJSON(text []byte) []byte {
	var out bytes.Buffer
	for len(text) > 0 {
		c, size := utf8.DecodeRune(text)
		if c == '\\' {
			c, size = escapedRune(text)
		}
		if isControl(c) {
			out.WriteString(strings.ReplaceAll(visible(c), `\`, `\\`))
		} else {
			out.Write(text[:size])
		}
		text = text[size:]
	}
	return out.Bytes()
}

// escapedRune returns the control character that an escape sequence of JSON stands for, or a letter, and the length of the sequence.
func escapedRune(text []byte) (c rune, size int) {
	if len(text) < 2 {
		return 'x', len(text)
	}
	switch text[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		const whole = len(`\u0000`)
		if n, err := strconv.ParseUint(string(text[2:min(whole, len(text))]), 16, 16); err == nil && len(text) >= whole {
			return rune(n), whole
		}
	}
	return 'x', 2
}

// visible returns a control character as a Go string literal writes it.
func visible(c rune) string { return strings.Trim(strconv.QuoteRune(c), "'") }

// isControl reports whether a character moves the cursor, or changes the direction of text. A line feed does not count, because the layout
// handles it.
func isControl(c rune) bool {
	return c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c))
}
