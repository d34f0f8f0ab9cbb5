package lsp

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/rules"
)

// token is a word, a literal or a sign in an expression.
type token struct {
	text       string
	start, end int // in bytes
	kind       tokenKind
}

type tokenKind uint8

const (
	sign tokenKind = iota
	word
	literal
	unclosed // a string without its end
)

var tokens = regexp.MustCompile(
	`(?s)^(?:(//[^\n]*|\s+)|([A-Za-z_]\w*)|` +
		`(\d[\w.]*|[rRbB]?(?:'''.*?'''|""".*?"""|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))|` +
		`([rRbB]?['"].*)|(&&|\|\||[=!<>]=|\.\?|\[\?|.))`)

// tokenize splits an expression into tokens, as far as possible.
func tokenize(text string) []token {
	var out []token
	for at := 0; at < len(text); {
		m := tokens.FindStringSubmatchIndex(text[at:])
		if m == nil || m[1] == 0 {
			_, size := utf8.DecodeRuneInString(text[at:])
			at += size
			continue
		}
		for group, kind := range map[int]tokenKind{2: word, 3: literal, 4: unclosed, 5: sign} {
			if m[2*group] >= 0 {
				out = append(out, token{text[at : at+m[1]], at, at + m[1], kind})
			}
		}
		at += m[1]
	}
	return out
}

// writing describes what the author is writing at the end of a part of an expression.
type writing struct {
	scope *rules.Scope // with the variables of the open loops
	// word is the part of the word before the cursor. receiver is the expression before the dot.
	word, receiver string
	dot            bool
	// of is, within a string, the expression that the string is compared with.
	of       string
	inString bool
}

// writingAt examines an expression from its beginning to the cursor.
func writingAt(scope *rules.Scope, before string) writing {
	list := tokenize(before)
	w := writing{scope: scope}
	last := len(list) - 1
	if last >= 0 && list[last].kind == unclosed {
		w.inString = true
		w.word = list[last].text[strings.IndexAny(list[last].text, `'"`)+1:]
		w.of = comparedWith(before, list[:last])
		list = list[:last]
	} else if last >= 0 && list[last].kind == word && list[last].end == len(before) {
		w.word = list[last].text
		list = list[:last]
	}
	if n := len(list) - 1; !w.inString && n >= 0 && list[n].isDot() {
		w.dot = true
		w.receiver = chain(before, list[:n])
	}
	w.scope = inLoops(scope, before, list)
	return w
}

// chain returns the longest value that ends with the last token: names, calls and indexes joined by dots.
func chain(text string, list []token) string {
	for at := len(list); ; at-- { // step over the dot
		if at = valueStart(list[:at]); at < 0 {
			return ""
		}
		if at == 0 || !list[at-1].isDot() {
			return text[list[at].start:list[len(list)-1].end]
		}
	}
}

func (t token) isDot() bool { return t.text == "." || t.text == ".?" }

// valueStart returns the token at which the value begins that ends with the last token, back to a dot. The value is a name with its
// arguments and indexes, a literal, or an expression in brackets. It returns -1 if there is none.
func valueStart(list []token) int {
	last := len(list) - 1
	switch {
	case last < 0:
		return -1
	case list[last].kind == word || list[last].kind == literal:
		return last
	case !slices.Contains([]string{")", "]", "}"}, list[last].text):
		return -1
	}
	open := opener(list)
	if open > 0 && callable(list[last].text, list[open-1]) {
		return valueStart(list[:open])
	}
	return open
}

// callable reports whether a closing bracket belongs to the token before its opening bracket: the arguments of a call, or an index.
func callable(bracket string, before token) bool {
	if bracket != "]" {
		return bracket == ")" && before.kind == word
	}
	return before.kind == word || before.kind == literal || before.text == ")" || before.text == "]"
}

// opener returns the opening bracket of the last token, or -1.
func opener(list []token) int {
	depth := 0
	for i, l := range slices.Backward(list) {
		switch l.text {
		case ")", "]", "}":
			depth++
		case "(", "[", "{", "[?":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// comparedWith returns the expression on the left of the comparison before a string.
func comparedWith(text string, list []token) string {
	n := len(list)
	for n > 0 && list[n-1].kind == literal || n > 0 && list[n-1].text == "," {
		n-- // skip earlier elements of a list
	}
	switch {
	case n > 0 && (list[n-1].text == "==" || list[n-1].text == "!="):
		return chain(text, list[:n-1])
	case n > 1 && list[n-1].text == "[" && list[n-2].text == "in":
		return chain(text, list[:n-2])
	}
	return ""
}

// inLoops declares the variables of the macros whose parentheses are open.
func inLoops(scope *rules.Scope, text string, list []token) *rules.Scope {
	var open []int
	for i, t := range list {
		switch t.text {
		case "(", "[", "{", "[?":
			open = append(open, i)
		case ")", "]", "}":
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		}
	}
	for _, i := range open {
		if i < 2 || list[i].text != "(" || list[i-1].kind != word || !list[i-2].isDot() {
			continue
		}
		more := loopVariables(scope.TypeOf(chain(text, list[:i-2])), list[i-1].text, list[i+1:])
		if len(more) == 0 {
			continue
		}
		if with, err := scope.With(more); err == nil {
			scope = with
		}
	}
	return scope
}

// loopVariables returns the variables that a macro on a value of a type declares in its first arguments.
func loopVariables(over *cel.Type, macro string, args []token) map[string]*cel.Type {
	if over == nil || len(args) < 2 || args[0].kind != word || args[1].text != "," ||
		!slices.Contains(append(loopsOfTwo(), "map", "filter", "exists_one", "sortBy", "optMap", "optFlatMap"), macro) {
		return nil
	}
	var one, first, second *cel.Type
	switch {
	case over.Kind() == types.ListKind:
		one, first, second = over.Parameters()[0], cel.IntType, over.Parameters()[0]
	case over.Kind() == types.MapKind:
		one, first, second = over.Parameters()[0], over.Parameters()[0], over.Parameters()[1]
	case over.TypeName() == "optional_type":
		one = over.Parameters()[0]
	default:
		return nil
	}
	if len(args) > 3 && args[2].kind == word && args[3].text == "," && slices.Contains(loopsOfTwo(), macro) {
		return map[string]*cel.Type{args[0].text: first, args[2].text: second}
	}
	return map[string]*cel.Type{args[0].text: one}
}

// loopsOfTwo returns the macros that may have a second variable, for an index or a key.
func loopsOfTwo() []string {
	return []string{"all", "exists", "existsOne", "transformList", "transformMap", "transformMapEntry"}
}

// inMessage returns the part of a message's expression that is before the cursor, or false if the cursor is in the text.
func inMessage(before string) (string, bool) {
	open := strings.LastIndex(before, "{{")
	if open < 0 || strings.Contains(before[open:], "}}") {
		return "", false
	}
	return before[open+len("{{"):], true
}
