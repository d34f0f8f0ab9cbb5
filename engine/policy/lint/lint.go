// Package lint finds legal constructs in a policy that are most likely mistakes, in addition to the warnings of policy.Load. These are
// rows, tables and names without effect, and conditions that contradict each other. It only reports parts of the policy's own file.
//
//	lint.go    a policy: what is never evaluated or read
//	rows.go    rows: constants, repetitions, two that are never true together
//	clash.go   conditions: which parts of a chain exclude each other
//	evictions.go  actions that evict: which rows protect no pod, and which actions evict none
package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Policy returns the findings in a policy as warnings with their places, in order. If the policy does not compile, it only returns the
// mistakes.
func Policy(doc *source.Document) (found, mistakes source.Issues) {
	p, issues := policy.Load(doc)
	if issues.Err() != nil {
		return nil, issues.Errors()
	}
	l := &linter{policy: p, doc: doc, spec: doc.Root.Get("spec"), summaries: map[*policy.Rule]*summary{}}
	for _, tier := range l.items(l.spec.Get("tiers")) {
		never := l.never(tier, "tier")
		for _, entry := range l.items(tier.Get("tables")) {
			never := l.never(entry, "table") || never
			if inline := entry.Get("inline"); inline.Exists() {
				l.table(entry, rules.ReadTable(inline, entry.Get("name").String(&l.quiet), policy.Shape(), nil, &l.quiet), never)
			}
		}
	}
	l.actions()
	l.rows()
	l.evictions()
	l.found.Sort()
	return l.found, nil
}

// linter is the state of checking one policy.
type linter struct {
	policy *policy.Policy
	doc    *source.Document
	spec   source.Value
	found  source.Issues
	quiet  source.Issues // stays empty, because the policy compiled

	summaries map[*policy.Rule]*summary
}

// warn adds a warning once, although each row after a table's when finds it again.
func (l *linter) warn(i source.Issue) {
	i.Severity = source.Warning
	if !slices.Contains(l.found, i) {
		l.found = append(l.found, i)
	}
}

// never warns about a when of a table or a tier that is always false, and reports whether it is.
func (l *linter) never(v source.Value, what string) bool {
	text := v.Get("when").Text(&l.quiet)
	if text.Value == "" {
		return false
	}
	lang, err := rules.NewLanguage(policy.Vocabulary())
	if err != nil {
		return false
	}
	scope, err := lang.Scope(nil)
	if err != nil {
		return false
	}
	e, issues := eval.Compile(scope, text, rules.Bool())
	if issues.Err() != nil || e.Eval(&language.Frame{}) != types.False {
		return false
	}
	l.at(e, "remove the "+what+", or its when", "no row of the %s is ever asked: its when is always false", what)
	return true
}

// items returns the items of a list that may be missing.
func (l *linter) items(v source.Value) []source.Value {
	if !v.Exists() {
		return nil
	}
	return v.Items(&l.quiet)
}

// table finds parts of an inline table without effect. If never is true, none of its rows is evaluated, which was already reported.
func (l *linter) table(entry source.Value, t *rules.Table, never bool) {
	inline := entry.Get("inline")
	for _, p := range t.Params {
		if p.Deprecated == "" && !l.reads([]source.Value{inline}, "params."+p.Name) {
			l.warn(p.At.Issuef("remove it, or read it as params."+p.Name, "nothing reads the param %q", p.Name))
		}
	}
	for _, v := range t.Variables {
		if !l.reads([]source.Value{inline}, "variables."+v.Name) {
			l.warn(v.At.Get("name").Issuef("remove it, or read it as variables."+v.Name, "nothing reads the variable %q", v.Name))
		}
	}
	where := []source.Value{l.spec}
	for _, a := range t.Attributes {
		given := slices.ContainsFunc(l.policy.Attributes(), func(x *policy.Attribute) bool { return x.Table == t.Name && x.Name == a.Name })
		if given && !l.reads(where, "."+a.Name) && !shippedReads(a.Name) { // the name of an attribute with several fields is not a field
			l.warn(a.At.Get("name").Issuef("remove it, or read it as "+a.On+"."+a.Name, "nothing reads the attribute %q", a.Name))
		}
	}
	for _, site := range policy.Sites() {
		for _, row := range t.Sections[site.Name] {
			if !never {
				l.dropped(entry, t.Name, &site, row)
			}
		}
	}
}

// dropped warns about a row that the compiler left out, unless params caused this, because they may change.
func (l *linter) dropped(entry source.Value, table string, site *policy.Site, row *rules.Row) {
	if slices.ContainsFunc(l.policy.Rules(site.Name), func(r *policy.Rule) bool { return r.Table == table && r.Name == row.Name }) {
		return
	}
	name := row.At.Get("name")
	switch only, without := entry.Get("only"), entry.Get("without"); {
	case only.Exists() && !slices.Contains(only.Strings(&l.quiet), site.Name):
		l.warn(name.Issuef("add "+site.Name+" to only, or remove the row", "the row %q is never asked: only leaves out %s", row.Name, site.Name))
	case without.Exists() && slices.Contains(without.Strings(&l.quiet), site.Name):
		l.warn(name.Issuef("take "+site.Name+" out of without, or remove the row", "the row %q is never asked: without names %s", row.Name,
			site.Name))
	case row.When.Value != "" && !strings.Contains(row.When.Value, "params."):
		l.warn(row.When.Issue(0, len([]rune(row.When.Value)), fmt.Sprintf("the row %q is never asked: its when is always false", row.Name),
			"remove the row, or its when"))
	}
}

// actions warns about actions that the pipeline does not name.
func (l *linter) actions() {
	for _, a := range l.items(l.spec.Get("actions")) {
		name := a.Get("name")
		if text := name.String(&l.quiet); !slices.Contains(l.policy.Pipeline, text) {
			l.warn(name.Issuef("add it to pipeline, or remove it", "the action %q never runs: the pipeline does not name it", text))
		}
	}
}

// reads reports whether an expression below some values contains a path, such as params.factor or .share.
func (l *linter) reads(below []source.Value, path string) bool {
	pattern := regexp.MustCompile(regexp.QuoteMeta(path) + `\b`)
	return slices.ContainsFunc(below, func(v source.Value) bool { return l.matches(v, pattern) })
}

func (l *linter) matches(v source.Value, pattern *regexp.Regexp) bool {
	switch v.Kind() {
	case source.Map:
		return slices.ContainsFunc(v.Fields(nil, &l.quiet), func(f source.Field) bool {
			return f.Name != "description" && l.matches(f.Value, pattern)
		})
	case source.List:
		return slices.ContainsFunc(l.items(v), func(item source.Value) bool { return l.matches(item, pattern) })
	default:
		text, ok := v.Any().(string)
		return ok && pattern.MatchString(text)
	}
}

// shippedReads reports whether a built-in table reads a field with this name, which the policy may provide.
func shippedReads(name string) bool {
	l := &linter{}
	return slices.ContainsFunc(policy.ShippedNames(), func(table string) bool {
		doc, _ := policy.Embedded(table)
		return doc != nil && l.reads([]source.Value{doc.Root}, "."+name)
	})
}
