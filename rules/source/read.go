package source

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"
	kubeyaml "sigs.k8s.io/yaml"
)

// Raw is one document of a file as JSON.
type Raw struct {
	// Number counts the documents of the file from 1, including empty ones.
	Number int
	JSON   []byte
}

// ToJSON reads the documents of a file for programs that send them to an API server. It reads JSON as JSON, and all other text as kubectl
// reads YAML. It leaves out empty documents, and refuses duplicate keys. The error does not name the file.
func ToJSON(data []byte) ([]Raw, error) {
	s, notUTF8 := newSource("", data)
	parts, _ := s.jsonParts()
	if issues := s.vetText(notUTF8, parts); len(issues) > 0 {
		return nil, errors.New(issues[0].Placed())
	}
	var out []Raw
	number, start := 0, 0
	for _, p := range append(parts, jsonPart{start: len(s.runes), end: len(s.runes)}) {
		for _, text := range s.yamlDocuments(start, p.start) {
			number++
			object, err := s.yamlToJSON(text)
			if err != nil {
				return nil, fmt.Errorf("document %d: %w", number, err)
			}
			if string(object) != "null" {
				out = append(out, Raw{number, object})
			}
		}
		for i, root := range p.values {
			number++
			r := &stream{source: s}
			if r.document(root, 0, true); len(r.issues) > 0 {
				return nil, fmt.Errorf("document %d: %s", number, r.issues[0].Placed())
			}
			out = append(out, Raw{number, []byte(string(s.runes[p.texts[i].start:p.texts[i].end]))})
		}
		start = p.end
	}
	return out, nil
}

// yamlDocuments returns the positions of the documents in a part of the file, [start, end) in characters. It omits empty ones.
func (s *source) yamlDocuments(start, end int) (texts []span) {
	for start < end {
		next := min(s.nextMark(start), end)
		for next < end && s.afterDirective(next) {
			next = min(s.nextMark(next), end)
		}
		if strings.TrimSpace(string(s.runes[s.afterMark(start):next])) != "" {
			texts = append(texts, span{start, next})
		}
		start = next
	}
	return texts
}

// yamlToJSON converts one document. If its author wrote JSON, the error is the mistake of JSON.
func (s *source) yamlToJSON(text span) ([]byte, error) {
	runes := s.runes[text.start:text.end]
	object, err := kubeyaml.YAMLToJSONStrict([]byte(string(runes)))
	if err == nil {
		return object, nil
	}
	_, issues := Parse("", []byte(string(runes)))
	if i := slices.IndexFunc(issues, func(i Issue) bool { return strings.HasPrefix(i.Message, notJSON) }); i >= 0 {
		line, _ := s.place(text.start)
		issues[i].Line += line - 1
		return nil, errors.New(issues[i].Placed())
	}
	return nil, err //nolint:wrapcheck // the caller names the document
}

// FirstToJSON returns the JSON of the first document. It returns null if there is none, and ignores further documents.
func FirstToJSON(data []byte) ([]byte, error) {
	docs, err := ToJSON(data)
	if err != nil || len(docs) == 0 {
		return []byte("null"), err
	}
	return docs[0].JSON, nil
}

// Nodes reads the documents of a file with their comments, for programs that write the file again. Line numbers of nodes count in the file.
func Nodes(data []byte) (out []*yaml.Node, err error) {
	s, _ := newSource("", data)
	parts, _ := s.jsonParts()
	start := 0
	for _, p := range append(parts, jsonPart{start: len(s.runes), end: len(s.runes)}) {
		docs, err := s.yamlNodes(start, p.start)
		if err != nil {
			return nil, err
		}
		out = append(out, docs...)
		for i, root := range p.values {
			n := &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{root}, Line: root.Line, Column: root.Column}
			if i == 0 {
				n.HeadComment = p.comment
			}
			out = append(out, n)
		}
		start = p.end
	}
	return out, nil
}

// yamlNodes reads the YAML documents in a part of the file, [start, end) in characters.
func (s *source) yamlNodes(start, end int) (out []*yaml.Node, err error) {
	if start >= end {
		return nil, nil
	}
	base := sort.SearchInts(s.parserLines, start+1) - 1
	decoder := yaml.NewDecoder(&runeReader{s.runes[start:end]})
	for {
		n, err := nextNode(decoder)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		shift(n, base)
		out = append(out, n)
	}
}

// shift adds lines to the position of a node and of all nodes in it.
func shift(n *yaml.Node, lines int) {
	n.Line += lines
	for _, c := range n.Content {
		shift(c, lines)
	}
}

// Parses reports whether a text is JSON or YAML. It is faster than Parse, because it does not search for the positions of mistakes.
func Parses(data []byte) bool {
	_, err := Nodes(data)
	return err == nil
}
