package eval

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
)

// columner compiles the checked syntax tree of an expression to columns over the table's rows. Every part also has a closure. If the part
// does not read the row, the closure is called once. If it reads one facet with few values, the closure is called once per value. It is
// called for each row if the part has no column form.
type columner struct {
	*kerneler
	table string
}

// columnsOf compiles an expression whose closures exist.
func columnsOf(s *rules.Scope, a *ast.AST, counted bool) (column, error) {
	c := &columner{&kerneler{scope: s, ast: a, metered: counted}, s.Row()}
	return c.column(a.Expr())
}

// facet is a member of the row's object, or one element of it if the member is a map.
type facet struct {
	member *rules.Member
	key    string
}

// facets are the facets that an expression reads of the row. beyond states that it also reads something else of the row.
type facets struct {
	parts  []facet
	beyond bool
}

func (f *facets) add(part facet) {
	if part.member.Codes == nil || (part.member.Type.Kind() == types.MapKind) != (part.key != "") {
		f.beyond = true
		return
	}
	if !slices.Contains(f.parts, part) {
		f.parts = append(f.parts, part)
	}
}

// none reports whether the expression does not read the row.
func (f *facets) none() bool { return len(f.parts) == 0 && !f.beyond }

func (c *columner) facetsOf(e ast.Expr) *facets {
	f := &facets{}
	c.gather(e, f)
	return f
}

// gather collects what an expression reads of the row. A loop variable with the root's name counts as the root.
func (c *columner) gather(e ast.Expr, f *facets) {
	if part, ok := c.facet(e); ok {
		f.add(part)
		return
	}
	switch e.Kind() {
	case ast.IdentKind:
		f.beyond = f.beyond || e.AsIdent() == c.table
	case ast.SelectKind:
		c.gatherMember(e.AsSelect(), f)
	case ast.CallKind:
		c.gatherCall(e, f)
	case ast.ListKind:
		c.gatherAll(e.AsList().Elements(), f)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			c.gatherAll([]ast.Expr{entry.AsMapEntry().Key(), entry.AsMapEntry().Value()}, f)
		}
	case ast.ComprehensionKind:
		l := e.AsComprehension()
		c.gatherAll([]ast.Expr{l.IterRange(), l.AccuInit(), l.LoopCondition(), l.LoopStep(), l.Result()}, f)
	case ast.LiteralKind:
	default:
		f.beyond = true
	}
}

func (c *columner) gatherAll(list []ast.Expr, f *facets) {
	for _, e := range list {
		c.gather(e, f)
	}
}

// gatherMember also follows computed members, which may read the row.
func (c *columner) gatherMember(sel ast.SelectExpr, f *facets) {
	c.gather(sel.Operand(), f)
	o := c.scope.ObjectOf(c.typeOf(sel.Operand()))
	if o == nil {
		return
	}
	if m := o.Find(sel.FieldName()); m != nil && m.Reads != nil {
		for _, read := range m.Reads.All {
			switch {
			case read.Root != c.table:
			case len(read.Steps) == 1 && !read.Steps[0].Each:
				f.add(facet{read.Steps[0].Member, read.Key})
			default:
				f.beyond = true
			}
		}
	}
}

// gatherCall uses the declared reads if a function of the vocabulary gets the row as an argument.
func (c *columner) gatherCall(e ast.Expr, f *facets) {
	args := rules.ArgumentsOf(e.AsCall())
	o := c.overload(e)
	for i, a := range args {
		if !c.isRow(a) || o == nil || o.Reads == nil {
			c.gather(a, f)
			continue
		}
		of := c.scope.ObjectOf(c.typeOf(a))
		for _, read := range o.Reads {
			path, ok := strings.CutPrefix(read, "{"+string(rune('0'+i))+"}.")
			if !ok {
				continue
			}
			name, _, _ := strings.Cut(path, ".")
			m := of.Find(name)
			if m == nil || name != path {
				f.beyond = true
				continue
			}
			f.add(facet{member: m})
		}
	}
	if o == nil {
		return
	}
	for _, read := range o.Reads {
		f.beyond = f.beyond || strings.HasPrefix(read, c.table+".")
	}
}

// overload returns the overload of the vocabulary that a call uses. It returns nil if the call has several overloads or none of the
// vocabulary.
func (c *columner) overload(e ast.Expr) *rules.Overload {
	return c.scope.Overload(c.ast.ReferenceMap()[e.ID()])
}

func (c *columner) isRow(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == c.table && c.scope.Root(c.table) != nil
}

// rowMember returns the member of the row's object that an expression reads, or nil.
func (c *columner) rowMember(e ast.Expr) *rules.Member {
	if e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly() || !c.isRow(e.AsSelect().Operand()) {
		return nil
	}
	return c.scope.ObjectOf(c.typeOf(e.AsSelect().Operand())).Find(e.AsSelect().FieldName())
}

// facet returns the facet that an expression reads or tests with has(): a member, or an element of a map with a constant key.
func (c *columner) facet(e ast.Expr) (facet, bool) {
	if m := c.rowMember(e); m != nil && m.Type.Kind() != types.MapKind {
		return facet{member: m}, m.Codes != nil
	}
	of, key := ast.Expr(nil), ""
	switch e.Kind() {
	case ast.SelectKind:
		of, key = e.AsSelect().Operand(), e.AsSelect().FieldName()
	case ast.CallKind:
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Index, operators.OptIndex:
			of, key = args[0], rules.StringLiteral(args[1])
		case operators.In:
			of, key = args[1], rules.StringLiteral(args[0])
		}
	default:
	}
	if of == nil || key == "" {
		return facet{}, false
	}
	m := c.rowMember(of)
	if m == nil || m.Type.Kind() != types.MapKind {
		return facet{}, false
	}
	return facet{m, key}, true
}

// column compiles a part.
func (c *columner) column(e ast.Expr) (column, error) {
	k, err := c.compile(e)
	if err != nil {
		return column{}, err
	}
	read := c.facetsOf(e)
	if read.none() {
		return column{bools: filled(k.boolean), ints: filled(k.integer), doubles: filled(k.double), strings: filled(k.str)}, nil
	}
	own, ok := c.direct(e)
	if ok {
		return own, nil
	}
	if own, err = c.parts(e); err != nil {
		return column{}, err
	}
	if own.empty() {
		own = column{bools: byRows(k.boolean), ints: byRows(k.integer), doubles: byRows(k.double), strings: byRows(k.str), byRow: c.written(e)}
	}
	if len(read.parts) == 1 && !read.beyond {
		part := read.parts[0]
		return column{
			bools: lift(part, k.boolean, own.bools), ints: lift(part, k.integer, own.ints),
			doubles: lift(part, k.double, own.doubles), strings: lift(part, k.str, own.strings),
		}, nil
	}
	return own, nil
}

func (c column) empty() bool {
	return c.bools == nil && c.ints == nil && c.doubles == nil && c.strings == nil
}

// written returns a part in the form that its author wrote.
func (c *columner) written(e ast.Expr) string {
	text, err := cel.ExprToString(e, c.ast.SourceInfo())
	if err != nil {
		return "a part"
	}
	return text
}

// direct returns the column of a member for which the vocabulary provides one.
func (c *columner) direct(e ast.Expr) (column, bool) {
	m := c.rowMember(e)
	if m == nil {
		m = c.partOf(e)
	}
	if m == nil || m.Bools == nil && m.Ints == nil && m.Doubles == nil && m.Strings == nil {
		return column{}, false
	}
	return column{bools: given(m.Bools), ints: given(m.Ints), doubles: given(m.Doubles), strings: given(m.Strings)}, true
}

func given[T any](f func(t rules.Rows, rows []int32, out []T)) columnOf[T] {
	if f == nil {
		return nil
	}
	return func(b *Batch, rows []int32, out []T) { f(b.table, rows, out) }
}

// partOf returns a part of one of the row's members that can be read alone, or nil.
func (c *columner) partOf(e ast.Expr) *rules.Member {
	of, by, name := partRead(e)
	if of == nil {
		return nil
	}
	if m := c.rowMember(of); m != nil && m.Part != nil {
		return m.Part(by, name)
	}
	return nil
}

// partRead takes apart an expression that reads a field, or an element with a constant key, or calls a method with a constant key.
func partRead(e ast.Expr) (of ast.Expr, by, name string) {
	if e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() {
		return e.AsSelect().Operand(), "", e.AsSelect().FieldName()
	}
	if e.Kind() != ast.CallKind {
		return nil, "", ""
	}
	call := e.AsCall()
	switch args := rules.ArgumentsOf(call); {
	case len(args) != 2:
	case call.FunctionName() == operators.Index:
		of, name = args[0], rules.StringLiteral(args[1])
	case call.IsMemberFunction():
		of, by, name = args[0], call.FunctionName(), rules.StringLiteral(args[1])
	}
	if name == "" {
		return nil, "", ""
	}
	return of, by, name
}

// parts compiles an operator or a call from the columns of its arguments. The result is empty if this is not possible.
func (c *columner) parts(e ast.Expr) (column, error) {
	if e.Kind() != ast.CallKind {
		return column{}, nil
	}
	name := e.AsCall().FunctionName()
	args := rules.ArgumentsOf(e.AsCall())
	if !columnOperator(name) || len(args) == 0 {
		return c.native(e, args)
	}
	columns := make([]column, len(args))
	var err error
	for i, a := range args {
		if columns[i], err = c.column(a); err != nil {
			return column{}, err
		}
	}
	out := applyColumns(name, columns)
	for _, x := range columns {
		if out.byRow == "" {
			out.byRow = x.byRow
		}
	}
	if out.empty() {
		return c.native(e, args)
	}
	return out, nil
}

// native returns the column of a call of a function with a native column form.
func (c *columner) native(e ast.Expr, args []ast.Expr) (column, error) {
	parts, _, err := c.all(args)
	if err != nil {
		return column{}, err
	}
	n := c.nativeOf(e, parts)
	if n == nil || n.Bools == nil && n.Ints == nil && n.Doubles == nil {
		return column{}, nil
	}
	k, err := c.compile(e)
	if err != nil {
		return column{}, err
	}
	sources := make([]func(b *Batch, rows []int32) (rules.Source, bool), len(args))
	for i, a := range args {
		m := c.rowMember(a)
		switch {
		case c.isRow(a):
			sources[i] = func(*Batch, []int32) (rules.Source, bool) { return rules.Source{Row: true}, true }
		case m != nil:
			sources[i] = func(*Batch, []int32) (rules.Source, bool) { return rules.Source{Member: m}, true }
		case c.facetsOf(a).none():
			f := parts[i].value
			sources[i] = func(b *Batch, rows []int32) (rules.Source, bool) {
				v, ok := absorbed(b, f, rows)
				return rules.Source{Value: v}, ok
			}
		default:
			return column{}, nil
		}
	}
	return column{
		bools: called(sources, n.Bools, byRows(k.boolean)), ints: called(sources, n.Ints, byRows(k.integer)),
		doubles: called(sources, n.Doubles, byRows(k.double)),
	}, nil
}

// nativeOf returns the native forms of a call whose arguments are compiled, or nil.
func (k *kerneler) nativeOf(e ast.Expr, parts []kernel) *rules.Native {
	o := k.scope.Overload(k.ast.ReferenceMap()[e.ID()])
	if o == nil || o.Native == nil {
		return nil
	}
	constants := make([]ref.Val, len(parts))
	for i, p := range parts {
		constants[i] = p.constant
	}
	return o.Native(constants)
}

func called[T any](sources []func(*Batch, []int32) (rules.Source, bool), f func(rules.Rows, []rules.Source, []int32, []T) bool,
	otherwise columnOf[T],
) columnOf[T] {
	if f == nil || otherwise == nil {
		return nil
	}
	return func(b *Batch, rows []int32, out []T) {
		if len(rows) == 0 {
			return
		}
		from := len(b.sources)
		defer func() { b.sources = b.sources[:from] }()
		for _, source := range sources {
			s, ok := source(b, rows)
			if !ok {
				return
			}
			b.sources = append(b.sources, s)
		}
		if !f(b.table, b.sources[from:], rows, out) {
			otherwise(b, rows, out)
		}
	}
}

// columnOperator reports whether a call is computed from the columns of its arguments.
func columnOperator(name string) bool {
	switch name {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.Equals, operators.NotEquals,
		operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.Add, operators.Subtract, operators.Multiply,
		operators.Divide, operators.Modulo, operators.Negate, overloads.TypeConvertDouble, overloads.TypeConvertInt:
		return true
	}
	return false
}

// applyColumns returns an operator's column. It is empty if the operands have no columns of suitable types.
func applyColumns(name string, args []column) column {
	switch name {
	case operators.LogicalAnd, operators.LogicalOr:
		if args[0].bools == nil || args[1].bools == nil {
			return column{}
		}
		return column{bools: junction(args[0].bools, args[1].bools, name == operators.LogicalAnd)}
	case operators.LogicalNot:
		if args[0].bools == nil {
			return column{}
		}
		return column{bools: negation(args[0].bools)}
	case operators.Conditional:
		if args[0].bools == nil {
			return column{}
		}
		when, yes, no := args[0].bools, args[1], args[2]
		return column{
			bools:   choice(func(b *Batch) *vectors[bool] { return &b.bools }, when, yes.bools, no.bools),
			ints:    choice(func(b *Batch) *vectors[int64] { return &b.ints }, when, yes.ints, no.ints),
			doubles: choice(func(b *Batch) *vectors[float64] { return &b.doubles }, when, yes.doubles, no.doubles),
			strings: choice(func(b *Batch) *vectors[string] { return &b.strings }, when, yes.strings, no.strings),
		}
	case operators.Equals, operators.NotEquals:
		return equalColumns(args[0], args[1], name == operators.NotEquals)
	}
	switch len(args) {
	case 1:
		return unaryColumn(name, args[0])
	case 2:
		if f := comparison(name, args[0], args[1]); f != nil {
			return column{bools: f}
		}
		return arithmeticColumn(name, args[0], args[1])
	}
	return column{}
}
