package cluster

import (
	"bytes"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wordsOfShell splits a command in the same way as a shell, and removes quotes. It does not expand variables or similar syntax: these
// belong to the container, not to the user who submits the job, and reach the container as they are written.
func wordsOfShell(command string) (words []string, err error) {
	for w, err := range syntax.NewParser().WordsSeq(strings.NewReader(command)) {
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		if err := unquote(&b, w.Parts, false); err != nil {
			return nil, err
		}
		words = append(words, b.String())
	}
	return words, nil
}

// unquote writes the parts of a word without their quotes.
func unquote(b *strings.Builder, parts []syntax.WordPart, quoted bool) error {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value, quoted))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if err := unquote(b, p.Parts, true); err != nil {
				return err
			}
		default:
			var text bytes.Buffer
			if err := syntax.NewPrinter().Print(&text, &syntax.Word{Parts: []syntax.WordPart{part}}); err != nil {
				return err
			}
			b.Write(text.Bytes())
		}
	}
	return nil
}

// unescape removes backslashes. Outside quotes it removes all of them, and in double quotes only those before special characters.
func unescape(text string, quoted bool) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (!quoted || strings.IndexByte("$`\"\\\n", text[i+1]) >= 0) {
			i++
			if text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
