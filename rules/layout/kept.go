package layout

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// kept returns an error that states what a file lost during formatting. It returns nil if content and comments are the same.
func kept(data, out []byte, before, after []*yaml.Node) error {
	if len(before) != len(after) {
		return fmt.Errorf("it has %d documents and would have %d", len(before), len(after))
	}
	for i := range before {
		if err := same(before[i], after[i]); err != nil {
			return err
		}
	}
	have := comments(string(out), after)
	for _, text := range comments(string(data), before) {
		if !slices.Contains(have, text) {
			return fmt.Errorf("the comment %q would be lost", text)
		}
	}
	return nil
}

// same compares the content of two nodes.
func same(a, b *yaml.Node) error {
	switch {
	case a.Kind != b.Kind || a.Tag != b.Tag || a.Anchor != b.Anchor || len(a.Content) != len(b.Content):
		return fmt.Errorf("line %d: it would read otherwise", a.Line)
	case a.Value != b.Value && a.Tag != "!!null" && !sameExpression(a.Value, b.Value):
		return fmt.Errorf("line %d: %q would become %q", a.Line, a.Value, b.Value)
	}
	for i := range a.Content {
		if err := same(a.Content[i], b.Content[i]); err != nil {
			return err
		}
	}
	return nil
}

// sameExpression reports whether b is the formatted form of the expression a.
func sameExpression(a, b string) bool {
	before, ok := unparsed(a)
	now, also := unparsed(b)
	return ok && also && now == before && expression(a) == b
}

// comments returns the comments of a file: those of the nodes, and those on separate lines outside of strings.
func comments(data string, docs []*yaml.Node) []string {
	var out []string
	add := func(text string) {
		for line := range strings.SplitSeq(text, "\n") {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
	}
	inText := map[int]bool{}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		add(n.HeadComment)
		add(n.LineComment)
		add(n.FootComment)
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle|yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			for i := range strings.Count(n.Value, "\n") + 1 {
				inText[n.Line+i] = true
			}
		}
		for _, c := range n.Content {
			walk(c)
		}
	}
	for _, d := range docs {
		walk(d)
	}
	number := 0
	for line := range strings.Lines(data) {
		number++
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") && !inText[number] && !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}
