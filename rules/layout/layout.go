package layout

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// Width is the maximum length of a line with an expression, or of a mapping on one line.
const Width = 100

// Keys states which values of a file are expressions.
type Keys struct {
	// Expressions are the keys whose value is an expression.
	Expressions []string
	// Of are the keys of mappings whose values are all expressions.
	Of []string
}

// Format formats a file of YAML. An error states what is wrong with the file, or what formatting would lose. In that case the caller must
// not replace the file.
func Format(data []byte, keys Keys) ([]byte, error) {
	data = []byte(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data)))
	before, err := source.Nodes(data)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	w := &writer{keys: keys, lines: strings.Split(string(data), "\n")}
	for i, doc := range before {
		if i > 0 {
			w.line(0, "---")
		}
		w.document(doc)
	}
	out := []byte(strings.TrimLeft(w.out.String(), "\n"))
	after, err := source.Nodes(out)
	if err != nil {
		return nil, fmt.Errorf("it cannot be written in one form: %w", err)
	}
	return out, kept(data, out, before, after)
}

// writer writes nodes.
type writer struct {
	keys  Keys
	lines []string // of the source
	of    bool     // all values of the present mapping are expressions
	out   strings.Builder
}

func (w *writer) line(indent int, text string) {
	if text = strings.TrimRight(text, " "); text != "" {
		text = strings.Repeat(" ", indent) + text
	}
	w.out.WriteString(text + "\n")
}

// comment writes the lines of a comment.
func (w *writer) comment(indent int, text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		w.line(indent, strings.TrimSpace(line))
	}
}

func (w *writer) document(doc *yaml.Node) {
	if doc.HeadComment != "" {
		w.comment(0, doc.HeadComment)
		if at := doc.Content[0].Line - 2; at >= 0 && at < len(w.lines) && strings.TrimSpace(w.lines[at]) == "" {
			w.line(0, "")
		}
	}
	w.node(doc.Content[0], 0, true)
	if doc.FootComment != "" {
		w.line(0, "")
		w.comment(0, doc.FootComment)
	}
}

// node writes a node. If first is false, it follows a dash that is already written.
func (w *writer) node(n *yaml.Node, indent int, first bool) {
	if len(n.Content) > 0 && !w.flows(n, indent) {
		w.block(n, indent, first)
		return
	}
	before := 0
	if first {
		before = indent
	}
	w.line(before, w.flow(n)+lineComment(n))
}

// block writes a mapping or a list on separate lines.
func (w *writer) block(n *yaml.Node, indent int, first bool) {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			w.entry(n.Content[i], n.Content[i+1], indent, i == 0 && !first)
		}
	} else {
		for i, item := range n.Content {
			w.item(item, indent, i == 0 && !first)
		}
	}
	w.comment(indent, n.FootComment)
}

// blank keeps an empty line before a node.
func (w *writer) blank(first, head *yaml.Node) {
	at := first.Line - 2 // index of the line before it, from 0
	if head.HeadComment != "" {
		at -= strings.Count(head.HeadComment, "\n") + 1
	}
	if at > 0 && at < len(w.lines) && strings.TrimSpace(w.lines[at]) == "" && w.out.Len() > 0 && !strings.HasSuffix(w.out.String(), "\n\n") {
		w.line(0, "")
	}
}

// entry writes a key with its value. within states that it follows a dash that is already written.
func (w *writer) entry(key, value *yaml.Node, indent int, within bool) {
	if !within {
		w.blank(key, key)
		w.comment(indent, key.HeadComment)
		w.out.WriteString(strings.Repeat(" ", indent))
	}
	head := w.flow(key) + ":" + properties(value)
	comment := lineComment(key) + lineComment(value)
	switch {
	case w.nested(value, indent+utf8.RuneCountInString(head)+1):
		w.line(0, head+comment)
		deeper := indent + 2
		if value.Kind == yaml.SequenceNode {
			deeper = indent
		}
		w.comment(deeper, value.HeadComment)
		of := w.of
		w.of = slices.Contains(w.keys.Of, key.Value)
		w.block(value, deeper, true)
		w.of = of
	case value.Kind == yaml.ScalarNode:
		w.scalar(key, value, head, indent, comment)
	default:
		w.line(0, head+" "+w.inFlow(value, key, false, w.of)+comment)
	}
	w.comment(indent, key.FootComment)
}

// nested reports whether a value is written on separate lines. on is the column at which it would begin.
func (w *writer) nested(value *yaml.Node, on int) bool {
	return (value.Kind == yaml.MappingNode || value.Kind == yaml.SequenceNode) && len(value.Content) > 0 && !w.flows(value, on)
}

// item writes one item of a sequence.
func (w *writer) item(n *yaml.Node, indent int, within bool) {
	first := &yaml.Node{}
	if n.Kind == yaml.MappingNode && len(n.Content) > 0 && !w.flows(n, indent+2) {
		first = n.Content[0]
	}
	if !within {
		head := strings.Trim(n.HeadComment+"\n"+first.HeadComment, "\n")
		if len(n.Content) > 0 && !w.flows(n, indent+2) { // the comment of a mapping that was on one line
			head = strings.Trim(head+"\n"+n.LineComment, "\n")
		}
		w.blank(n, &yaml.Node{HeadComment: head})
		w.comment(indent, head)
		w.out.WriteString(strings.Repeat(" ", indent))
	}
	w.out.WriteString("-" + properties(n) + " ")
	if n.Kind == yaml.ScalarNode {
		w.scalar(&yaml.Node{}, n, "", indent, lineComment(n))
	} else {
		w.node(n, indent+2, false)
	}
	if n.Kind == yaml.ScalarNode || w.flows(n, indent+2) {
		w.comment(indent, n.FootComment)
	}
}

// flows reports whether a mapping or a list stays on one line: its author wrote it so, it fits, and nothing in it has a comment.
func (w *writer) flows(n *yaml.Node, on int) bool {
	if len(n.Content) == 0 {
		return true
	}
	return n.Style&yaml.FlowStyle != 0 && !commented(n) && on+utf8.RuneCountInString(w.flow(n)) <= Width
}

// commented reports whether anything in a node has a comment.
func commented(n *yaml.Node) bool {
	return slices.ContainsFunc(n.Content, func(c *yaml.Node) bool {
		return c.HeadComment+c.LineComment+c.FootComment != "" || commented(c)
	})
}

// flow writes a node on one line.
func (w *writer) flow(n *yaml.Node) string { return w.inFlow(n, &yaml.Node{}, false, false) }

func (w *writer) inFlow(n, key *yaml.Node, nested, of bool) string {
	switch n.Kind {
	case yaml.AliasNode:
		return "*" + n.Value
	case yaml.MappingNode:
		var parts []string
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			parts = append(parts, w.inFlow(k, &yaml.Node{}, true, false)+":"+properties(v)+" "+
				w.inFlow(v, k, true, slices.Contains(w.keys.Of, key.Value)))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		var parts []string
		for _, item := range n.Content {
			parts = append(parts, strings.TrimSpace(properties(item)+" "+w.inFlow(item, key, true, false)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default:
		return quoted(n, w.text(key, n, of), nested)
	}
}

// text returns the value of a scalar. Expressions are formatted.
func (w *writer) text(key, n *yaml.Node, of bool) string {
	if n.Tag == "!!str" && (of || slices.Contains(w.keys.Expressions, key.Value)) {
		return expression(n.Value)
	}
	return n.Value
}

// scalar writes a scalar after its key. It uses several lines if the scalar is long or contains line breaks.
func (w *writer) scalar(key, n *yaml.Node, head string, indent int, comment string) {
	text := w.text(key, n, w.of)
	one := quoted(n, text, false)
	if head != "" {
		head += " "
	}
	lines := []string{text}
	if long := indent+utf8.RuneCountInString(head+one) > Width; long && n.Tag == "!!str" && foldable(text) {
		lines = w.folded(key, n, text, Width-indent-2)
	}
	block := n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 && n.Tag == "!!str" && strings.Contains(text, "\n") && literal(text)
	switch {
	case len(lines) > 1:
		one = ">-"
	case block:
		one = "|-"
		if strings.HasSuffix(text, "\n") {
			one = "|"
		}
		lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	default:
		lines = nil
	}
	w.line(0, head+one+comment)
	for _, line := range lines {
		w.line(indent+2, line)
	}
}

// folded cuts a long text into lines: an expression between its conditions, and a text that its author folded between its words.
func (w *writer) folded(key, n *yaml.Node, text string, width int) []string {
	switch {
	case w.of || slices.Contains(w.keys.Expressions, key.Value):
		return breaks(text, width)
	case n.Style&yaml.FoldedStyle != 0:
		return words(text, width)
	}
	return []string{text}
}

// foldable reports whether folding a text over several lines does not change it.
func foldable(text string) bool {
	return text == strings.TrimSpace(text) && !strings.ContainsAny(text, "\n\t") && !strings.Contains(text, "  ")
}

// literal reports whether a text can be written in the literal style, line by line.
func literal(text string) bool {
	return !strings.HasPrefix(text, " ") && !strings.HasPrefix(text, "\n") && !strings.HasSuffix(text, "\n\n") &&
		printable(strings.ReplaceAll(text, "\n", ""))
}

// properties returns a node's anchor and tag.
func properties(n *yaml.Node) string {
	out := ""
	if n.Anchor != "" {
		out += " &" + n.Anchor
	}
	if n.Style&yaml.TaggedStyle != 0 {
		out += " " + n.Tag
	}
	return out
}

func lineComment(n *yaml.Node) string {
	if n.LineComment == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(n.LineComment, "\n", " ")
}

// quoted returns a scalar without quotes if it reads the same. Otherwise it uses double quotes, or single quotes if the text contains
// double quotes or a backslash.
func quoted(n *yaml.Node, text string, nested bool) string {
	switch {
	case n.Tag == "!!null" && text == "" && nested:
		return "null"
	case n.Tag != "!!str":
		return text
	case plainReads(text, nested):
		return text
	case !strings.ContainsAny(text, "\"\\") && printable(text):
		return `"` + text + `"`
	case printable(text):
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	out, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: text})
	if err != nil {
		return fmt.Sprintf("%q", text)
	}
	return strings.TrimRight(string(out), "\n")
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff
	})
}

// plainReads reports whether a text reads the same without quotes.
func plainReads(text string, nested bool) bool {
	whole, entries := "k: "+text, 2
	if nested {
		whole, entries = "{k: "+text+", l: 1}", 4
	}
	var doc yaml.Node
	if text != strings.TrimSpace(text) || text == "" || !printable(text) || yaml.Unmarshal([]byte(whole+"\n"), &doc) != nil {
		return false
	}
	m := doc.Content[0]
	if m.Kind != yaml.MappingNode || len(m.Content) != entries || commented(&doc) {
		return false
	}
	v := m.Content[1]
	return v.Kind == yaml.ScalarNode && v.Tag == "!!str" && v.Value == text && doc.FootComment == ""
}
