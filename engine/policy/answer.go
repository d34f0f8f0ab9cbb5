package policy

import (
	"strings"

	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Answer is the answer of a site, with the row that decided. Rule is nil if no row decided.
type Answer struct {
	Yes  bool
	Rule *Rule
	Text string
}

// Reason returns the reason of the answer for the plan.
func (a Answer) Reason() model.Reason {
	if a.Rule == nil {
		return model.Reason{Text: a.Text}
	}
	return a.Rule.reason(a.Text)
}

// Denial returns the opinion of a row that denies at a site.
func Denial(site *Site) language.Opinion {
	if site.DenyIs {
		return language.Yes
	}
	return language.No
}

// Words returns the text of the message. eval evaluates its expressions.
func (m *Message) Words(eval func(*eval.Expr) ref.Val) string {
	var b strings.Builder
	for _, p := range m.parts {
		if p.expr == nil {
			b.WriteString(p.text)
			continue
		}
		b.WriteString(language.Text(eval(p.expr)))
	}
	return b.String()
}

// Expressions returns the expressions of the message.
func (m *Message) Expressions() []*eval.Expr {
	var out []*eval.Expr
	for _, p := range m.parts {
		if p.expr != nil {
			out = append(out, p.expr)
		}
	}
	return out
}
