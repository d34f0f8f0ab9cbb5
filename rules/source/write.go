package source

import (
	"bytes"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// Entry is one field of a mapping to write. Its value is a Value (written as the author wrote it), a string, a bool or a number. It can
// also be a list of strings, []Entry for a mapping, or [][]Entry for a list of mappings.
type Entry struct {
	Name  string
	Value any
}

// Write returns the YAML of a mapping.
func Write(entries []Entry) ([]byte, error) {
	node, err := toNode(entries)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(node); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return b.Bytes(), nil
}

func toNode(v any) (*yaml.Node, error) {
	switch x := v.(type) {
	case Value:
		return inline(x.node), nil
	case []Entry:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, e := range x {
			value, err := toNode(e.Value)
			if err != nil {
				return nil, err
			}
			key := &yaml.Node{}
			key.SetString(e.Name)
			n.Content = append(n.Content, key, value)
		}
		return n, nil
	case [][]Entry:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range x {
			value, err := toNode(item)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, value)
		}
		return n, nil
	}
	n := &yaml.Node{}
	if err := n.Encode(v); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return n, nil
}

// inline copies a node with its aliases expanded, so that it can be used in another document.
func inline(n *yaml.Node) *yaml.Node {
	if n == nil {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	}
	n = resolved(n)
	out := *n
	out.Anchor, out.Content = "", nil
	if out.Style&(yaml.FoldedStyle|yaml.LiteralStyle) != 0 {
		out.Style = blockStyle(out.Value)
	}
	for _, c := range n.Content {
		out.Content = append(out.Content, inline(c))
	}
	return &out
}

// blockStyle returns a style in which a text of several lines reads the same. The encoder adds a line to each break that folding would
// keep. It also drops empty lines at the start of a literal text, and indents tabs as if they were spaces.
func blockStyle(text string) yaml.Style {
	if strings.HasPrefix(text, "\n") || strings.HasPrefix(text, " ") || strings.Contains(text, "\t") {
		return yaml.DoubleQuotedStyle
	}
	return yaml.LiteralStyle
}
