package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// allHold returns the sites at which all rows must be true.
func allHold() []string {
	return []string{
		policy.Predicates, policy.DevicePredicates, policy.JobValid, policy.JobReady, policy.Allocatable, policy.Bindable,
		policy.Preemptive, policy.TaskFeasible,
	}
}

// orders returns the sites whose rows are sort keys.
func orders() []string {
	return []string{policy.QueueOrder, policy.JobOrder, policy.TaskOrder, policy.VictimOrder}
}

// scored returns the sites whose rows return numbers to compare.
func scored() []string { return []string{policy.Scores, policy.DeviceScores} }

// rows finds rows without effect.
func (l *linter) rows() {
	for i, r := range l.policy.All {
		if !l.own(r.Expression) {
			continue
		}
		for _, e := range []*eval.Expr{r.When, r.Expression} {
			if e != nil {
				l.expression(e)
			}
		}
		l.constant(r)
		l.guarded(r)
		l.before(r, l.policy.All[:i])
	}
	for _, e := range l.policy.Expressions() {
		if l.own(e) && !slices.ContainsFunc(l.policy.All, func(r *policy.Rule) bool { return e == r.When || e == r.Expression }) {
			l.expression(e)
		}
	}
}

// own reports whether an expression is in the policy's file.
func (l *linter) own(e *eval.Expr) bool {
	return e.Text.Written() && e.Text.Issue(0, 1, "", "").File == l.doc.File
}

// at adds a warning about a whole expression.
func (l *linter) at(e *eval.Expr, hint, format string, args ...any) {
	l.warn(e.Text.Issue(0, len([]rune(strings.TrimRight(e.Text.Value, " \n"))), fmt.Sprintf(format, args...), hint))
}

// constant warns about a row with the same value for all objects. It ignores values that depend on params, because params may change.
func (l *linter) constant(r *policy.Rule) {
	e := r.Expression
	if r.Site.Name == policy.Scores && r.Weight == 0 && l.literalWeight(r) {
		l.at(e, "give it a weight, or remove it", "the score counts nothing: its weight is 0")
		return
	}
	if !e.Constant() || r.When != nil || local(e) {
		return
	}
	if inVain := saysInVain(r, e.Eval(&language.Frame{})); inVain != "" {
		l.at(e, "remove the row, or have it read what it is asked about", "%s", inVain)
	}
}

// saysInVain returns what is wrong with a row that has the same value for all objects; "": nothing.
func saysInVain(r *policy.Rule, v ref.Val) string {
	refuses := slices.Contains(allHold(), r.Site.Name) || r.Veto
	switch {
	case slices.Contains(orders(), r.Site.Name):
		return "puts nothing in order: it is the same for all"
	case slices.Contains(scored(), r.Site.Name):
		return "is the same score for all"
	case v == types.True && refuses:
		return "is always true, and so says nothing"
	case v == types.False:
		return "is always false"
	}
	return ""
}

// literalWeight reports whether the author wrote the weight as a literal.
func (l *linter) literalWeight(r *policy.Rule) bool {
	at, ok := l.doc.Find(strings.TrimSuffix(r.Expression.Text.Path(), "expression") + "weight")
	return ok && !strings.Contains(fmt.Sprint(at.Any()), "params.")
}

// expression finds chains of conditions that are always false or always true, and repeated conditions.
func (l *linter) expression(e *eval.Expr) {
	t := teller{e.Checked()}
	var walk func(part ast.Expr, under string)
	walk = func(part ast.Expr, under string) {
		operator := ""
		if part.Kind() == ast.CallKind {
			switch operator = part.AsCall().FunctionName(); operator {
			case operators.LogicalAnd, operators.LogicalOr:
				if operator != under {
					l.chain(e, t, part, operator)
				}
			case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
				l.itself(e, t, part)
			}
		}
		for _, p := range t.written(part) {
			walk(p, operator)
		}
	}
	walk(t.Expr(), "")
}

// chain finds conditions in a chain that exclude each other or are repeated.
func (l *linter) chain(e *eval.Expr, t teller, part ast.Expr, operator string) {
	or := operator == operators.LogicalOr
	if a, b, found := clash(t.atoms(part, or)); found {
		how := map[bool]string{false: "%s and %s never hold together", true: "%s or %s always holds"}[or]
		l.at(e, map[bool]string{false: "write || between them, or remove one", true: "write && between them, or remove one"}[or],
			how, a.text, b.text)
		return
	}
	seen := map[string]bool{}
	for _, x := range operands(part, operator) {
		text := t.text(x)
		if seen[text] && text != "" {
			l.at(e, "remove it once", "%s stands twice in the same condition", text)
		}
		seen[text] = true
	}
}

// itself warns about a value that is compared with itself.
func (l *linter) itself(e *eval.Expr, t teller, part ast.Expr) {
	args := part.AsCall().Args()
	if text := t.text(args[0]); text != "" && text == t.text(args[1]) && args[0].Kind() != ast.LiteralKind {
		l.at(e, "compare it with something else", "%s is compared with itself", text)
	}
}

// guarded warns about a row whose expression is always or never true when its when is true.
func (l *linter) guarded(r *policy.Rule) {
	if r.When == nil || !l.own(r.When) {
		return
	}
	when := teller{r.When.Checked()}.atoms(r.When.Checked().Expr(), false)
	if _, _, clashes := clash(when); clashes {
		return // already reported
	}
	for _, negated := range []bool{false, true} {
		expression := teller{r.Expression.Checked()}.atoms(r.Expression.Checked().Expr(), negated)
		if _, _, clashes := clash(expression); clashes {
			return
		}
		a, b, found := clash(slices.Concat(when, expression))
		switch {
		case !found:
		case negated && slices.Contains(allHold(), r.Site.Name):
			l.at(r.Expression, "compare another value, or remove the row", "%s always holds where when holds: %s; the row says nothing", b.text,
				a.text)
		case !negated:
			l.at(r.Expression, "compare another value, or write expression: \"false\" if that is meant", "%s never holds where when holds: %s",
				b.text, a.text)
		}
	}
}

// before warns about a row that repeats an earlier row, or that contradicts an earlier row where both must be true.
func (l *linter) before(r *policy.Rule, rows []*policy.Rule) {
	mine := l.summary(r)
	for _, other := range rows {
		if other.Site.Name != r.Site.Name || !comparable(r, other) {
			continue
		}
		others := l.summary(other)
		sameGuard := mine.guard == others.guard
		same := sameGuard && mine.text == others.text
		switch {
		case same && (slices.Contains(orders(), r.Site.Name) || r.Tier == other.Tier || slices.Contains(allHold(), r.Site.Name)):
			l.at(r.Expression, "remove one of the two rows", "the row %q of the table %s says the same, and is asked before", other.Name,
				other.Table)
			return
		case sameGuard && !mine.clashes && !others.clashes && slices.Contains(allHold(), r.Site.Name):
			if a, b, found := clash(slices.Concat(others.atoms, mine.atoms)); found {
				l.at(r.Expression, "join what may hold with || in one row, or give the rows a when", "%s never holds together with %s of the row %q, "+
					"and both must", b.text, a.text, other.Name)
			}
		}
	}
}

// summary contains the data of a row that a comparison with another row reads. It is computed once per row, because every row is compared
// with all earlier rows of its section.
type summary struct {
	guard, text string // the expressions with uniform spaces
	atoms       []atom
	clashes     bool // the atoms contradict each other
}

func (l *linter) summary(r *policy.Rule) *summary {
	if known := l.summaries[r]; known != nil {
		return known
	}
	t := teller{r.Expression.Checked()}
	out := &summary{guard: guardText(r), text: plain(r.Expression), atoms: t.atoms(t.Expr(), false)}
	_, _, out.clashes = clash(out.atoms)
	l.summaries[r] = out
	return out
}

// comparable reports whether equal texts of two rows have the same meaning. Params and variables belong to one table.
func comparable(r, other *policy.Rule) bool {
	return r.Table == other.Table || !local(r.Expression) && !local(r.When)
}

// local reports whether an expression reads names of its own table.
func local(e *eval.Expr) bool {
	return e != nil && (strings.Contains(e.Text.Value, "params.") || strings.Contains(e.Text.Value, "variables."))
}

func guardText(r *policy.Rule) string {
	if r.When == nil {
		return ""
	}
	return plain(r.When)
}

// plain returns an expression with uniform spaces.
func plain(e *eval.Expr) string { return teller{e.Checked()}.text(e.Checked().Expr()) }
