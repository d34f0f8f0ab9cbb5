package rules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// issues converts CEL's errors into issues with the position in the author's file and a hint. It omits errors that only follow from another
// error: the parser guesses after a syntax error, and the checker has no type after an unknown name.
func (s *Scope) issues(text source.Text, iss *cel.Issues) source.Issues {
	errs := slices.Clone(iss.Errors())
	if i := slices.IndexFunc(errs, isSyntax); i >= 0 {
		errs = errs[i : i+1]
	}
	follows := func(e *common.Error) bool { return strings.Contains(e.Message, "!error!") }
	if slices.ContainsFunc(errs, func(e *common.Error) bool { return !follows(e) }) {
		errs = slices.DeleteFunc(errs, follows)
	}
	x := &explainer{scope: s, runes: []rune(text.Value), owners: s.missing(text.Value)}
	starts := lineStarts(text.Value)
	var out source.Issues
	for _, e := range errs {
		x.at, x.width, x.hint = 0, 1, ""
		if line := e.Location.Line(); line >= 1 && line <= len(starts) {
			x.at = starts[line-1] + max(e.Location.Column(), 0)
		}
		message := x.explain(e.Message)
		out = append(out, text.Issue(x.at, x.width, message, x.hint))
	}
	return out
}

const syntaxError = "Syntax error: "

func isSyntax(e *common.Error) bool { return strings.HasPrefix(e.Message, syntaxError) }

func lineStarts(text string) []int {
	starts, n := []int{0}, 0
	for _, c := range text {
		n++
		if c == '\n' {
			starts = append(starts, n)
		}
	}
	return starts
}

// explainer rewords CEL's errors.
type explainer struct {
	scope *Scope
	runes []rune
	// owners maps the name of a missing field to the objects that lack it, in the order in which the checker looked it up.
	owners map[string][]*Object
	// at, width and hint belong to the error that is being reworded.
	at, width int
	hint      string
}

// explain returns the reworded message, and moves the caret to the mistake.
func (x *explainer) explain(message string) string {
	if syntax, ok := strings.CutPrefix(message, syntaxError); ok {
		return x.syntax(syntax)
	}
	for _, known := range []struct {
		pattern string
		reword  func(m []string) string
	}{
		{`^undefined field '(.*)'$`, x.undefinedField},
		{`^undeclared reference to '(.*)' \(in container '.*'\)$`, x.undeclared},
		{`^found no matching overload for '(.*)' applied to '(.*)'$`, x.noOverload},
		{`^expected type '(.*)' but found '(.*)'$`, x.wrongType},
		{`^type '(.*)' does not support field selection$`, x.noFields},
		{`^expression of type '(.*)' cannot be range of a comprehension`, func(m []string) string {
			return "cannot loop over " + m[1] + ", only over lists and maps"
		}},
		{`^invalid (duration|timestamp|matches) argument$`, x.badLiteral},
		{`^reserved identifier: (.*)$`, func(m []string) string { return x.word(m[1], "%q is a reserved word") }},
		{`^invalid argument to has\(\) macro$`, func([]string) string {
			x.hint = "it takes a field: has(x.field)"
			return "has() asks whether a field is there"
		}},
		{`^argument must be a simple name$`, func([]string) string {
			x.hint = "it stands for the element: all(x, x > 0)"
			return "the first argument must be a name"
		}},
	} {
		if m := regexp.MustCompile(known.pattern).FindStringSubmatch(message); m != nil {
			return known.reword(m)
		}
	}
	return message
}

// word moves the caret to name and formats the message with it.
func (x *explainer) word(name, format string) string {
	x.at, x.width = wordAt(x.runes, x.at, name)
	return fmt.Sprintf(format, name)
}

func (x *explainer) undefinedField(m []string) string {
	message := x.word(m[1], "unknown field %q")
	if owners := x.owners[m[1]]; len(owners) > 0 {
		x.owners[m[1]] = owners[1:]
		message = fmt.Sprintf("%s has no field %q", owners[0].Name, m[1])
		x.hint = didYouMean(source.Nearest(m[1], owners[0].names()), owners[0].names())
	}
	return message
}

func (x *explainer) undeclared(m []string) string {
	name := m[1]
	message := x.word(name, "%q is not known here")
	known := slices.Sorted(maps.Keys(x.scope.roots))
	called := x.at+x.width < len(x.runes) && x.runes[x.at+x.width] == '('
	if called {
		message = fmt.Sprintf("there is no function %q", name)
		known = slices.Sorted(maps.Keys(x.scope.env.Functions()))
	}
	switch near := source.Nearest(name, known); {
	case near != "":
		x.hint = fmt.Sprintf("did you mean %q?", near)
	case called:
		x.hint = "see the language's reference for its functions"
	default:
		x.hint = "known here: " + strings.Join(known, ", ")
	}
	return message
}

func (x *explainer) noOverload(m []string) string {
	name, given := m[1], m[2]
	if sign, ok := operators.FindReverse(name); ok && sign != "" {
		x.at, x.width = wordAt(x.runes, x.at, sign)
		x.hint = x.signatures(name, "it takes ")
		return fmt.Sprintf("the operator %s does not take %s", sign, given)
	}
	if strings.HasPrefix(name, "_") || strings.HasPrefix(name, "@") {
		return fmt.Sprintf("the operator %s does not take %s", strings.Trim(name, "_@"), given)
	}
	x.at, x.width = wordAt(x.runes, x.at, name)
	x.hint = x.signatures(name, "there is ")
	if on, args, ok := strings.Cut(given, ".("); ok {
		return fmt.Sprintf("there is no %s.%s(%s", on, name, args)
	}
	return fmt.Sprintf("there is no %s%s", name, given)
}

func (x *explainer) wrongType(m []string) string {
	return fmt.Sprintf("must be %s, found %s", withArticle(m[1]), withArticle(m[2]))
}

func (x *explainer) noFields(m []string) string {
	if strings.HasPrefix(m[1], "list(") {
		x.hint = "for a field of its elements write .map(x, x.FIELD)"
	}
	return m[1] + " has no fields"
}

func (x *explainer) badLiteral(m []string) string {
	switch m[1] {
	case "duration":
		x.hint = "write it with its units: duration('1h30m')"
		return "is not a duration"
	case "timestamp":
		x.hint = "write it as timestamp('2026-01-31T12:00:00Z')"
		return "is not a time"
	}
	return "is not a regular expression"
}

// syntax rewords a message of the parser.
func (x *explainer) syntax(message string) string {
	if m := regexp.MustCompile(`(?s)^token recognition error at: '(.*)'$`).FindStringSubmatch(message); m != nil {
		return x.unreadable(m[1])
	}
	if m := regexp.MustCompile(`(?s)^missing (.*) at '(.*)'$`).FindStringSubmatch(message); m != nil {
		return strings.ReplaceAll(m[1], "'", `"`) + " is missing here"
	}
	m := regexp.MustCompile(`(?s)^(?:mismatched|extraneous|no viable alternative at) input '(.*?)'(?: expecting (.*))?$`).FindStringSubmatch(
		message)
	if m == nil {
		return message
	}
	found, wanted := m[1], m[2]
	if found == "<EOF>" {
		if strings.HasPrefix(wanted, "'") {
			return strings.ReplaceAll(wanted, "'", `"`) + " is missing at the end of the expression"
		}
		return "the expression ends where a value should follow"
	}
	x.width = max(len([]rune(found)), 1)
	switch found {
	case "and", "or", "not":
		x.hint = "write " + map[string]string{"and": "&&", "or": "||", "not": "!"}[found]
	case "..":
		return "a name is missing between two dots"
	default:
		if wanted == "<EOF>" {
			x.hint = "the expression is complete before it; is an operator missing?"
			if found == ")" || found == "]" || found == "}" {
				x.hint = "nothing is open that it closes"
			}
		}
	}
	return fmt.Sprintf("unexpected %q", found)
}

// unreadable rewords the error for characters that are no token of the language.
func (x *explainer) unreadable(found string) string {
	first := []rune(found + " ")[0]
	switch first {
	case '=':
		x.hint = "write == to compare"
	case '&':
		x.hint = "write && for and"
	case '|':
		x.hint = "write || for or"
	case '\'', '"':
		if strings.Contains(found, `\`) {
			x.width = len([]rune(found))
			x.hint = `write a backslash as \\, or the string as r'…', in which it is none`
			return "the string has an unknown escape"
		}
		x.hint = fmt.Sprintf("end it with %c", first)
		return "the string is never closed"
	}
	return fmt.Sprintf("%q is no sign of the language", string(first))
}

func (o *Object) names() []string {
	var out []string
	for _, m := range o.Members {
		if !m.Hidden {
			out = append(out, m.Name)
		}
	}
	return out
}

func didYouMean(near string, all []string) string {
	if near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	slices.Sort(all)
	if len(all) > 12 {
		return "see the language's reference for its fields"
	}
	return "its fields: " + strings.Join(all, ", ")
}

// missing checks text again to find out which object lacks which field, because CEL's errors do not contain the object.
func (s *Scope) missing(text string) map[string][]*Object {
	out := map[string][]*Object{}
	registry, err := types.NewRegistry()
	if err != nil {
		return out
	}
	env, err := s.env.Extend(cel.CustomTypeProvider(&provider{Registry: registry, scope: s, missing: func(o *Object, field string) {
		out[field] = append(out[field], o)
	}}))
	if err != nil {
		return out
	}
	_, _ = env.Compile(text) // its errors are already known
	return out
}

// wordAt finds name at or near offset, because CEL points at the dot or at an opening parenthesis.
func wordAt(text []rune, offset int, name string) (at, width int) {
	word := []rune(name)
	for i := max(0, offset-len(word)); i+len(word) <= len(text); i++ {
		if string(text[i:i+len(word)]) == name && i+len(word) >= offset {
			return i, len(word)
		}
	}
	return offset, 1
}

// mostShown is the maximum number of overloads that a message lists.
const mostShown = 6

// overloadsOf returns the overloads of a function, except those that only accept ints for doubles. It returns nil if there are too many to
// list.
func (s *Scope) overloadsOf(name string) (out []Overload) {
	f := s.lang.functions[name]
	if f == nil {
		return nil
	}
	for _, o := range f.Overloads {
		if !o.Ints {
			out = append(out, o)
		}
	}
	if len(out) > mostShown {
		return nil
	}
	return out
}

func (x *explainer) signatures(name, lead string) string {
	var out []string
	for _, o := range x.scope.overloadsOf(name) {
		out = append(out, o.Signature(name))
	}
	if out == nil {
		return ""
	}
	return lead + strings.Join(out, "; ")
}

// Signature formats an overload as an author calls it: Task.toleratesAll(Node) -> bool, int + double -> double.
func (o *Overload) Signature(name string) string {
	var args []string
	for _, a := range o.Args {
		args = append(args, a.String())
	}
	if sign, ok := operators.FindReverse(name); ok && sign != "" && len(args) == 2 {
		return fmt.Sprintf("%s %s %s -> %s", args[0], sign, args[1], o.Result)
	}
	if o.Member {
		return fmt.Sprintf("%s.%s(%s) -> %s", args[0], name, strings.Join(args[1:], ", "), o.Result)
	}
	return fmt.Sprintf("%s(%s) -> %s", name, strings.Join(args, ", "), o.Result)
}

// TypeName formats a type for messages: true or false, an int, a Queue, list(string).
func TypeName(t *cel.Type) string { return withArticle(t.String()) }

func withArticle(name string) string {
	switch {
	case name == "bool":
		return "true or false"
	case name == "null" || strings.Contains(name, "(") || strings.HasSuffix(name, "s"):
		return name
	case strings.ContainsAny(name[:1], "aeiouAEIO"):
		return "an " + name
	}
	return "a " + name
}
