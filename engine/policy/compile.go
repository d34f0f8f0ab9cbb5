package policy

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/policy/params"
	"github.com/celsius-scheduler/celsius/engine/policy/parts"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// compiler compiles tables to rules, attributes and variables of one Policy.
type compiler struct {
	*loader
	p *Policy
	// objects contains the types with the attributes that are visible so far, by name.
	objects map[string]*rules.Object
	// owners maps visible attributes to their table: "queue.deserved" -> table.
	owners map[string]string
}

func newCompiler(l *loader, p *Policy) *compiler {
	c := &compiler{loader: l, p: p, objects: map[string]*rules.Object{}, owners: map[string]string{}}
	for _, o := range l.lang.Objects() {
		dup := *o
		dup.Members = slices.Clone(o.Members)
		c.objects[o.Name] = &dup
	}
	return c
}

// TableScope contains everything that the rows of one table see.
type TableScope struct {
	*compiler
	entry   *entry
	objects map[string]*rules.Object // with the table's private attributes
	params  *rules.Object
	vars    []*Variable
	scopes  map[string]*rules.Scope
	// expressions contains the expressions that compiled without an issue.
	expressions map[expression]*eval.Expr

	probe   *language.Frame // provides params for constants
	cyclic  []string
	filters bool // the expressions are conditions of an action's steps
	// failed contains variables and attributes with their own mistake. Expressions that read them are not reported.
	failed map[string]bool
	// clashed contains the fields that other tables compute as well.
	clashed []*sameFields
}

// scopeOf returns what the rows of an entry see before its attributes and variables.
func (c *compiler) scopeOf(e *entry) *TableScope {
	s := &TableScope{
		compiler: c, entry: e, objects: map[string]*rules.Object{}, scopes: map[string]*rules.Scope{}, probe: &language.Frame{},
		failed: map[string]bool{},
	}
	maps.Copy(s.objects, c.objects)
	s.params = s.paramObject()
	return s
}

// table compiles one entry.
func (c *compiler) table(e *entry) {
	s := c.scopeOf(e)
	s.checkCycles()
	if !e.off["attributes"] {
		for _, a := range e.table.Attributes {
			s.attribute(a)
		}
		s.reportClashes()
	}
	for _, v := range e.table.Variables {
		s.variable(v)
	}
	s.conditions()
	for _, site := range e.asked() {
		for _, row := range e.table.Sections[site.Name] {
			if !c.sight.misses(row.At) {
				s.row(&site, row)
			}
		}
	}
}

// paramObject declares the table's params and sets their values.
func (s *TableScope) paramObject() *rules.Object {
	o := &rules.Object{Name: "Params", Type: language.Object("Params")}
	given := map[string]source.Value{}
	names := []string{}
	for _, p := range s.entry.table.Params {
		names = append(names, p.Name)
	}
	if s.entry.params.Exists() {
		for _, f := range s.entry.params.Fields(names, &s.issues) {
			given[f.Name] = f.Value
		}
	}
	for _, p := range s.entry.table.Params {
		t := params.Type(p)
		if t == nil {
			continue
		}
		v := params.Value(p, given[p.Name], &s.issues)
		constant := v
		if v == nil {
			v = types.NewErr("param %q has no value", p.Name)
		}
		o.Members = append(o.Members, &rules.Member{
			Name: p.Name, Type: t, Doc: p.Description, Reads: &rules.Reads{}, Constant: constant,
			Get: func(any) ref.Val { return v },
		})
	}
	return o
}

// scope returns the scope of an expression that sees these roots.
func (s *TableScope) scope(roots []string) *rules.Scope {
	key := strings.Join(roots, " ")
	if sc, ok := s.scopes[key]; ok {
		return sc
	}
	all := map[string]*cel.Type{"params": s.params.Type, "variables": language.Object("Variables")}
	known := RootTypes()
	for _, r := range append(everywhere(), roots...) {
		all[r] = known[r]
	}
	extra := []*rules.Object{s.params, s.variableObject(roots)}
	for _, name := range []string{"Task", "Job", "Queue", "Node", "Cluster", "Namespace"} {
		extra = append(extra, s.objects[name])
	}
	sc, err := s.lang.Scope(all, extra...)
	if err != nil {
		s.report(s.entry.at.Issuef("", "%v", err))
		return nil
	}
	s.scopes[key] = sc
	return sc
}

// variableObject declares the variables so far that can be computed with these roots.
func (s *TableScope) variableObject(roots []string) *rules.Object {
	o := &rules.Object{Name: "Variables", Type: language.Object("Variables")}
	for _, v := range s.vars {
		if v.On == "" || v.On == "cluster" || slices.Contains(roots, v.On) {
			o.Members = append(o.Members, &rules.Member{
				Name: v.Name, Type: v.Expr.Type, Size: v.Expr.Size, Cost: costAnew(v.ByTime, v.Expr),
				Reads: v.Expr.Reads, Ends: v.Expr.Ends, Get: func(o any) ref.Val {
					f, ok := o.(*language.Frame)
					if !ok {
						return types.NewErr("variable %q has no value here", v.Name)
					}
					if f.World == nil {
						return v.Expr.Eval(f) // computes constants
					}
					return f.World.Values.(Values).Variable(v, f)
				},
			})
		}
	}
	return o
}

// compile compiles an expression that is evaluated only if the guards are true.
func (s *TableScope) compile(text source.Text, roots []string, want rules.Kind, guards ...*eval.Expr) *eval.Expr {
	if !text.Written() {
		return nil // reported where it is missing
	}
	sc := s.scope(roots)
	s.sight.sees(text, sc)
	if sc == nil {
		return nil
	}
	e, issues := compileOnce(s, sc, text, want)
	doubts := e.Doubts(guards...)
	if doubts.Err() != nil {
		e = nil
	}
	issues = append(issues, doubts...)
	for _, i := range issues {
		if s.sight != nil {
			break // issues are not reported
		}
		if i, ok := s.better(i, roots); ok {
			s.report(i)
		}
	}
	if e != nil && !s.filters {
		// A row that reads the outcome of its own section would evaluate itself forever.
		if i := slices.IndexFunc(e.Reads.All, OfAnswers); i >= 0 {
			path := e.Reads.All[i].String()
			field := path[strings.LastIndex(path, ".")+1:]
			at := 0
			if found := regexp.MustCompile(`\.` + field + `\b`).FindStringIndex(text.Value); found != nil {
				at = len([]rune(text.Value[:found[0]+1]))
			}
			s.report(text.Issue(at, len(field), fmt.Sprintf("job.%s is what %s says: only the conditions of an action's steps may read it",
				field, answering(e.Reads.All[i])), "read the job's counts instead"))
			return nil
		}
	}
	return e
}

// compileOnce compiles an expression, or copies an equal expression of the same scope. Many rows repeat an expression, for example
// {{node.name}} in their messages.
func compileOnce(s *TableScope, sc *rules.Scope, text source.Text, want rules.Kind) (*eval.Expr, source.Issues) {
	key := expression{sc, want.Name, text.Value}
	if known := s.expressions[key]; known != nil {
		return known.At(text), nil
	}
	e, issues := eval.Compile(sc, text, want)
	if len(issues) == 0 {
		if s.expressions == nil {
			s.expressions = map[expression]*eval.Expr{}
		}
		s.expressions[key] = e
	}
	return e, issues
}

// expression identifies expressions that compile to the same result.
type expression struct {
	scope      *rules.Scope
	kind, text string
}

// report reports an issue in the author's own file. An issue inside a built-in table is caused by the settings of its entry.
func (s *TableScope) report(i source.Issue) {
	if i.File != "" && i.File != s.entry.at.Document().File {
		i = s.entry.at.Get("name").Issuef(i.Hint, "%s (%s:%d)", i.Message, i.File, i.Line)
	}
	s.compiler.report(i)
}

// better adds information to an issue: which table computes a field, or why a variable is not available. It returns false if the issue is
// only a consequence of another one.
func (s *TableScope) better(i source.Issue, roots []string) (source.Issue, bool) {
	m := regexp.MustCompile(`^(\w+) has no field "(\w+)"$`).FindStringSubmatch(i.Message)
	if m == nil {
		return i, true
	}
	if s.failed[m[1]+"."+m[2]] {
		return i, false
	}
	switch m[1] {
	case "Variables":
		return s.noVariable(i, m[2], roots), true
	case "Params":
		var names []string
		for _, p := range s.entry.table.Params {
			names = append(names, p.Name)
		}
		i.Message, i.Hint = fmt.Sprintf("the table has no param %q", m[2]), source.Suggest(m[2], names)
		return i, true
	}
	var by []string
	for _, name := range ShippedNames() {
		var quiet source.Issues
		doc, _ := Embedded(name)
		if doc == nil {
			continue
		}
		for _, a := range rules.ReadTable(doc.Root, name, s.shape, nil, &quiet).Attributes {
			if a.Name == m[2] && strings.EqualFold(a.On, m[1]) && !a.Private {
				by = append(by, name)
			}
		}
	}
	own := func(a *rules.Attribute) bool { return a.Name == m[2] && strings.EqualFold(a.On, m[1]) }
	switch {
	case slices.ContainsFunc(s.entry.table.Attributes, own):
		i.Hint = "this table computes it, but further down"
	case by != nil:
		i.Hint = "it is computed by table " + strings.Join(by, " or ") + ", which must stand before this one"
	}
	return i, true
}

// noVariable reports why a variable is not available at a place.
func (s *TableScope) noVariable(i source.Issue, name string, roots []string) source.Issue {
	for _, v := range s.vars {
		if v.Name == name {
			i.Message = fmt.Sprintf("variable %q is on %s, which is not known here", name, v.On)
			i.Hint = "known here: " + strings.Join(roots, ", ")
			return i
		}
	}
	var names []string
	for _, v := range s.entry.table.Variables {
		if v.Name == name {
			i.Message, i.Hint = fmt.Sprintf("variable %q is not known yet", name), "a variable may use only those before it; move up "+name
			return i
		}
		names = append(names, v.Name)
	}
	i.Message, i.Hint = fmt.Sprintf("the table has no variable %q", name), source.Suggest(name, names)
	return i
}

// checkCycles reports variables that depend on each other.
func (s *TableScope) checkCycles() {
	at, path := s.entry.table.Cycle()
	if path == nil {
		return
	}
	s.report(at.Expression.Issue(0, len([]rune(at.Expression.Value)), "a cycle among variables: "+strings.Join(path, " -> "),
		"a variable may use only those before it"))
	s.cyclic = path
	for _, name := range path {
		s.failed["Variables."+name] = true
	}
}

func (s *TableScope) variable(v *rules.Variable) {
	if slices.Contains(s.cyclic, v.Name) {
		return
	}
	if v.On == "namespace" {
		s.report(v.At.Issuef("leave on out, or write on: job", "a variable cannot be on a namespace"))
		s.failed["Variables."+v.Name] = true
		return
	}
	var roots []string
	if v.On != "" && v.On != "cluster" {
		roots = []string{v.On}
	}
	e := s.compile(v.Expression, roots, rules.Anything())
	if e == nil {
		s.failed["Variables."+v.Name] = true
		return
	}
	x := &Variable{
		Name: v.Name, Table: s.entry.name, On: v.On, Slot: len(s.p.Variables), Expr: e, ByAction: readsAction(e.Reads),
		ByTime: ReadsNow(e.Reads),
	}
	s.p.Variables = append(s.p.Variables, x)
	s.vars = append(s.vars, x)
	clear(s.scopes)
}

// row compiles one row. In a joined policy, it compiles the row once for each of its shares.
func (s *TableScope) row(site *Site, row *rules.Row) {
	if !s.joined {
		s.rowWhere(site, row, nil)
		return
	}
	veto, _ := s.constant(row.Veto, rules.Bool())
	for _, share := range parts.Shares(site.Name, s.entry.part, veto == types.True) {
		s.rowWhere(site, row, &share)
	}
}

// rowWhere compiles one row for a share; nil: for all objects. It drops a row whose guard is always false.
func (s *TableScope) rowWhere(site *Site, row *rules.Row, share *parts.Share) {
	r := &Rule{
		Site: site, Table: s.entry.name, Name: row.Name, Reason: row.Reason, Tier: s.entry.tier,
		Curable: row.Curable, Share: row.Share, Descending: row.Descending, OnError: row.OnError, Reading: Reading{Reads: &rules.Reads{}},
		Scaling: Scaling{Weight: 1, Normalize: row.Normalize, RoundMode: row.RoundMode, RoundStep: 1, Fold: cmp.Or(row.Fold, rules.FoldSum)},
	}
	if r.OnError == "" {
		r.OnError = site.OnError
	}
	if s.entry.denies {
		r.OnError = "deny"
	}
	when, ok := s.when(row, site.Roots, share)
	r.When = when
	r.Expression = s.compile(row.Expression, site.Roots, site.Want, r.When)
	r.Message = s.message(row.Message, site.Roots, r.When, r.Expression)
	s.settings(r, row)
	if r.Expression == nil || !ok || s.guard(r) || share != nil && !s.shared(r, share) {
		return
	}
	r.Reads.Add(r.Expression.Reads)
	r.Rests = DependencyOf(r.Reads)
	r.Number = len(s.p.All) + 1
	s.p.All = append(s.p.All, r)
	s.p.rules[site.Name] = append(s.p.rules[site.Name], r)
	if !r.Share {
		beyond := beyondShare(site.Name)
		s.p.rules[beyond] = append(s.p.rules[beyond], r)
	}
}

// guard evaluates a constant guard and reports whether it is always false. Only params may decide this: any other read is an error here,
// and an error is not false.
func (s *TableScope) guard(r *Rule) (never bool) {
	if r.When == nil {
		return false
	}
	if !r.When.Constant() {
		if r.When.Eval(s.probe) == types.False {
			return true
		}
		r.Reads.Add(r.When.Reads)
		return false
	}
	holds := r.When.Eval(s.probe) == types.True
	r.When = nil
	return !holds
}

// settings evaluates the keys of a row that may read params.
func (s *TableScope) settings(r *Rule, row *rules.Row) {
	if v, ok := s.constant(row.Weight, rules.Number()); ok {
		if r.Weight, _ = language.Number(v); !(math.Abs(r.Weight) <= mostWeight) { // also true for NaN
			s.report(row.Weight.Issue(0, 1, fmt.Sprintf("the weight is %v, but a weight must be a number from %v to %v", r.Weight,
				-mostWeight, mostWeight), ""))
		}
	}
	if v, ok := s.constant(row.RoundStep, rules.Number()); ok {
		if r.RoundStep, _ = language.Number(v); !(r.RoundStep >= leastStep && r.RoundStep <= mostStep) {
			s.report(row.RoundStep.Issue(0, 1, fmt.Sprintf("the step is %v, but a step must be above 0, and from %v to %v", r.RoundStep,
				leastStep, mostStep), ""))
		}
	}
	if v, ok := s.constant(row.Veto, rules.Bool()); ok {
		r.Veto = v == types.True
	}
	every, err := time.ParseDuration(row.Every.Value)
	if err != nil {
		if v, ok := s.constant(row.Every, rules.Duration()); ok {
			d, _ := v.(types.Duration)
			every = d.Duration
		}
	}
	r.Every = every
}

// constant evaluates an expression that reads only params.
func (s *TableScope) constant(text source.Text, want rules.Kind) (ref.Val, bool) {
	if text.Value == "" {
		return nil, false
	}
	e := s.compile(text, nil, want)
	if e == nil {
		return nil, false
	}
	if !e.Constant() {
		s.report(text.Issue(0, 1, "may read params only, but reads "+strings.Join(e.Reads.Strings(), ", "), ""))
		return nil, false
	}
	v := e.Eval(s.probe)
	if types.IsError(v) {
		s.report(text.Issue(0, 1, fmt.Sprint(v), ""))
		return nil, false
	}
	return v, true
}

// message compiles the {{CEL}} parts of a text. guards are the expressions that were true before.
func (s *TableScope) message(t source.Text, roots []string, guards ...*eval.Expr) *Message {
	if t.Value == "" {
		return nil
	}
	if s.sight != nil {
		s.sight.sees(t, s.scope(roots))
	}
	m := &Message{}
	runes := []rune(t.Value)
	for at := 0; at < len(runes); {
		rest := string(runes[at:])
		open := strings.Index(rest, "{{")
		if open < 0 {
			m.parts = append(m.parts, part{text: rest})
			break
		}
		from := at + len([]rune(rest[:open]))
		size := strings.Index(rest[open:], "}}")
		if size < 0 {
			s.report(t.Issue(from, 2, "{{ is never closed", "write }} after the expression"))
			return nil
		}
		to := from + len([]rune(rest[open:open+size]))
		if open > 0 {
			m.parts = append(m.parts, part{text: rest[:open]})
		}
		expr := s.compile(t.Slice(from+2, to), roots, rules.Anything(), guards...)
		m.parts = append(m.parts, part{expr: expr})
		m.OfNode = m.OfNode || expr != nil && slices.ContainsFunc(expr.Reads.All, OfNodes)
		at = to + 2
	}
	return m
}

// costAnew returns the cost of reading a variable or an attribute that depends on time, because it is computed again at each read.
func costAnew(byTime bool, e *eval.Expr) uint64 {
	if !byTime || e == nil {
		return 0
	}
	return e.Cost.Max
}
