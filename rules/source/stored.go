package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
)

// ParseStored reads one object from an API server, in JSON. The author's file is not available. Therefore positions in the document have no
// use for the author: see Within.
func ParseStored(data []byte) (*Document, Issues) {
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	var object any
	err := in.Decode(&object)
	if err == nil && in.More() {
		err = errors.New("something stands behind it")
	}
	if err != nil {
		return nil, Issues{{Message: fmt.Sprintf("the object is not JSON: %v", err)}}
	}
	dropMetadata(object)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", " ") // One field per line keeps the source line of each issue short.
	if err := enc.Encode(object); err != nil {
		return nil, Issues{{Message: fmt.Sprintf("write the object again: %v", err)}}
	}
	docs, issues := Parse("", escaped(out.Bytes()))
	if len(docs) != 1 {
		return nil, append(issues, Issue{Message: "the object is empty", Hint: "an object with apiVersion and kind is wanted"})
	}
	return docs[0], issues
}

// dropMetadata removes the parts of metadata that the API server and its clients write and that no reader of a document uses. They can be
// larger than the rest of the object: for example, the annotation of kubectl apply. Parsing takes about 100 bytes of memory per byte.
func dropMetadata(object any) {
	fields, _ := object.(map[string]any)
	metadata, _ := fields["metadata"].(map[string]any)
	for _, key := range []string{"annotations", "labels", "managedFields", "ownerReferences", "finalizers"} {
		delete(metadata, key)
	}
}

// escaped escapes characters that a JSON string can contain but a YAML string cannot.
func escaped(data []byte) []byte {
	other := func(r rune) bool { return r == 0x85 || notAllowed(r) != "" }
	if !bytes.ContainsFunc(data, other) {
		return data
	}
	var out bytes.Buffer
	for _, r := range string(data) {
		if other(r) {
			fmt.Fprintf(&out, `\u%04X`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

// Within returns the issues of the document with positions inside the text of the field Path, whose first character is at line 1, column 1.
// An issue of a whole field, or of its key, has no position then, because its path is sufficient.
func (d *Document) Within(issues Issues) Issues {
	out := make(Issues, 0, len(issues))
	for _, i := range issues {
		i.File = ""
		offset, ok := d.textOffset(i)
		if !ok {
			i.Line, i.Column, i.Source, i.Skipped = 0, 0, "", 0
			out = append(out, i)
			continue
		}
		v, _ := d.Find(i.Path)
		text := []rune(v.node.Value)
		before := string(text[:min(offset, len(text))])
		start := strings.LastIndexByte(before, '\n') + 1
		i.Line = strings.Count(before, "\n") + 1
		i.Column = len([]rune(before[start:])) + 1
		line, _, _ := strings.Cut(string(text)[start:], "\n")
		i.Source, i.Skipped = line, 0
		out = append(out, i)
	}
	return out
}

// textOffset returns the character of a string field at which an issue is placed.
func (d *Document) textOffset(i Issue) (int, bool) {
	v, found := d.Find(i.Path)
	if !found || i.Line <= 0 || v.node != v.at || v.Kind() != Scalar || v.node.ShortTag() != "!!str" {
		return 0, false
	}
	var quiet Issues
	text := v.Text(&quiet)
	if line, column := v.Pos(); i.Line < line || i.Line == line && i.Column <= column {
		return 0, false // the issue applies to the key or to the whole value
	}
	n := len([]rune(text.Value))
	offset := sort.Search(n, func(k int) bool {
		line, column := text.Place(k)
		return line > i.Line || line == i.Line && column >= i.Column
	})
	return offset, true
}

// Placed returns the issue as one line without file and path, for callers that show these separately: "line 1, column 5: message; hint".
func (i Issue) Placed() string {
	var b strings.Builder
	if i.Line > 0 {
		fmt.Fprintf(&b, "line %d, column %d: ", i.Line, i.Column)
	}
	b.WriteString(oneLine(i.Message))
	if i.Hint != "" {
		b.WriteString("; " + oneLine(i.Hint))
	}
	return b.String()
}
