package typed

import (
	"fmt"
	"iter"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Text is a text with {{CEL}} parts.
type Text struct{ parts []part }

type part struct {
	text string
	expr *eval.Expr
}

// ParseText compiles the {{CEL}} parts of a text. It returns nil if a part is never closed, which it reports. The function compile reports
// mistakes in a part.
func ParseText(t source.Text, compile func(source.Text) *eval.Expr, report func(source.Issue)) *Text {
	out := &Text{}
	runes := []rune(t.Value)
	for at := 0; at < len(runes); {
		rest := string(runes[at:])
		before, inside, found := strings.Cut(rest, "{{")
		if before != "" {
			out.parts = append(out.parts, part{text: before})
		}
		if !found {
			break
		}
		from := at + len([]rune(before)) + 2
		expression, closed := expressionIn(inside)
		if !closed {
			report(t.Issue(from-2, 2, "{{ is never closed", "write }} after the expression"))
			return nil
		}
		to := from + len([]rune(expression))
		out.parts = append(out.parts, part{expr: compile(t.Slice(from, to))})
		at = to + 2
	}
	return out
}

// expressionIn returns the text before the }} that ends an expression. It skips }} in strings and maps of the expression.
func expressionIn(text string) (expression string, closed bool) {
	depth, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case strings.HasPrefix(text[i:], "}}"):
			return text[:i], true
		}
	}
	return "", false
}

// Parts returns the fixed parts and the CEL parts, in their order. For fixed parts the expression is nil.
func (t *Text) Parts() iter.Seq2[string, *eval.Expr] {
	return func(yield func(string, *eval.Expr) bool) {
		for _, p := range t.parts {
			if !yield(p.text, p.expr) {
				return
			}
		}
	}
}

// Render evaluates the parts and returns the text. An error is that of a part.
func (t *Text) Render(in cel.Activation) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		if p.expr == nil {
			b.WriteString(p.text)
			continue
		}
		got := p.expr.Eval(in)
		if err, ok := got.(*types.Err); ok {
			return "", fmt.Errorf("{{%s}}: %w", strings.TrimSpace(p.expr.Text.Value), err)
		}
		b.WriteString(Say(got))
	}
	return b.String(), nil
}

// Whole returns the expression if the text consists of only one CEL part, or nil.
func (t *Text) Whole() *eval.Expr {
	if len(t.parts) == 1 {
		return t.parts[0].expr
	}
	return nil
}

// Outline returns the text with mark in place of each CEL part.
func (t *Text) Outline(mark string) string {
	var b strings.Builder
	for _, p := range t.parts {
		if p.expr != nil {
			p.text = mark
		}
		b.WriteString(p.text)
	}
	return b.String()
}

// Fixed reports whether the text has no CEL parts.
func (t *Text) Fixed() bool { return len(t.parts) == 0 || len(t.parts) == 1 && t.parts[0].expr == nil }

// Sample returns a path of this form with 0 for each index. It returns false if CEL parts are more than indexes.
func (t *Text) Sample() (string, bool) {
	var path strings.Builder
	for i, p := range t.parts {
		if p.expr == nil && p.text != "" {
			path.WriteString(p.text)
			continue
		}
		if i == 0 || !strings.HasSuffix(t.parts[i-1].text, "[") {
			return "", false
		}
		path.WriteString("0")
	}
	return path.String(), true
}
