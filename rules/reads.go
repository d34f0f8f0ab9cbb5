package rules

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Step is one step of a path through declared members.
type Step struct {
	Member *Member
	// Each states that the path continues with every element of the list.
	Each bool
}

// Read is one input of an expression: a path from a root through declared members.
type Read struct {
	Root  string
	Steps []Step
	// Key is set if only one constant key of a map, or one resource dimension, is read.
	Key     string
	Changes Changes
	// Type is the type of the value at the end of the path.
	Type *cel.Type
	// Through states that the value is read only on the way to a computed member, which is itself in the set.
	Through bool
	// Told is true for a read of the time if only computed members read it that report when time changes them (Member.Tells).
	Told bool
}

// String formats the path as an author writes it: node.labels["zone"], job.roles[].min.
func (r Read) String() string {
	var b strings.Builder
	b.WriteString(r.Root)
	for _, s := range r.Steps {
		b.WriteString("." + s.Member.Name)
		if s.Each {
			b.WriteString("[]")
		}
	}
	if r.Key != "" {
		b.WriteString("[" + strconv.Quote(r.Key) + "]")
	}
	return b.String()
}

// Reads is a set of reads, sorted by their text form.
type Reads struct {
	All []Read
	// Counted states that the evaluation counts its cost (Expr.Metered), for the expression itself or for a variable that it reads.
	Counted bool
}

func (r *Reads) add(read Read) {
	text := read.String()
	i, found := slices.BinarySearchFunc(r.All, text, func(a Read, t string) int { return cmp.Compare(a.String(), t) })
	if !found {
		r.All = slices.Insert(r.All, i, read)
		return
	}
	r.All[i].Through = r.All[i].Through && read.Through
	r.All[i].Told = r.All[i].Told && read.Told
	r.All[i].Changes = max(r.All[i].Changes, read.Changes)
}

// Add adds all reads of other to r.
func (r *Reads) Add(other *Reads) {
	if other == nil {
		return
	}
	for _, read := range other.All {
		r.add(read)
	}
	r.Counted = r.Counted || other.Counted
}

// Changes returns how often the most volatile of the inputs changes.
func (r *Reads) Changes() Changes {
	c := Static
	for _, read := range r.All {
		c = max(c, read.Changes)
	}
	return c
}

// Roots lists the roots that are read, sorted.
func (r *Reads) Roots() []string {
	var out []string
	for _, read := range r.All {
		if !slices.Contains(out, read.Root) {
			out = append(out, read.Root)
		}
	}
	slices.Sort(out)
	return out
}

// Only reports whether the set reads no roots other than the named ones.
func (r *Reads) Only(roots ...string) bool {
	for _, read := range r.All {
		if !slices.Contains(roots, read.Root) {
			return false
		}
	}
	return true
}

// Strings returns the reads in text form.
func (r *Reads) Strings() []string {
	var out []string
	for _, read := range r.All {
		out = append(out, read.String())
	}
	return out
}

// reader traverses a checked expression and collects its reads.
type reader struct {
	scope *Scope
	ast   *ast.AST
	reads Reads
}

// Reads derives what a part of a checked expression reads. Ends are the paths that can be the value of the part, for callers that read on
// from the value.
func (s *Scope) Reads(a *ast.AST, e ast.Expr) (reads *Reads, ends []Read) {
	r := &reader{scope: s, ast: a}
	ends = r.open(e, nil)
	r.close(ends)
	return &r.reads, ends
}

// ReadsNow reports whether a part reads the time.
func (s *Scope) ReadsNow(a *ast.AST, e ast.Expr) bool {
	reads, _ := s.Reads(a, e)
	return reads.now()
}

func (r *Reads) now() bool {
	return slices.ContainsFunc(r.All, func(read Read) bool { return read.Root == "now" && !read.Told })
}

// Declared lists the declared reads of all overloads that a call may use.
func (s *Scope) Declared(a *ast.AST, call ast.Expr) []string {
	r := &reader{scope: s, ast: a}
	return r.declared(call.ID())
}

func (r *reader) close(paths []Read) {
	for _, p := range paths {
		r.reads.add(p)
	}
}

// open returns the paths that can be the value of e, and records what e reads on the way to other values. The caller must continue along
// the paths or close them.
func (r *reader) open(e ast.Expr, bound map[string][]Read) []Read {
	switch e.Kind() {
	case ast.IdentKind:
		name := e.AsIdent()
		if paths, ok := bound[name]; ok {
			return paths
		}
		if t, ok := r.scope.roots[name]; ok {
			return []Read{{Root: name, Type: t}}
		}
	case ast.SelectKind:
		s := e.AsSelect()
		return r.extend(r.open(s.Operand(), bound), r.ast.GetType(s.Operand().ID()), s.FieldName())
	case ast.CallKind:
		return r.call(e, bound)
	case ast.ComprehensionKind:
		return r.comprehension(e, bound)
	case ast.ListKind:
		var elements []Read
		for _, x := range e.AsList().Elements() {
			elements = append(elements, r.open(x, bound)...)
		}
		r.close(elements)
		if r.scope.elementOf(r.ast.GetType(e.ID())) != nil {
			return elements
		}
	case ast.MapKind:
		for _, x := range e.AsMap().Entries() {
			r.close(r.open(x.AsMapEntry().Key(), bound))
			r.close(r.open(x.AsMapEntry().Value(), bound))
		}
	case ast.StructKind:
		for _, x := range e.AsStruct().Fields() {
			r.close(r.open(x.AsStructField().Value(), bound))
		}
	case ast.LiteralKind, ast.UnspecifiedExprKind:
	}
	return nil
}

// extend follows a path by one more member. It replaces a computed member with what the member reads. Reads of the member's value continue
// from there.
func (r *reader) extend(paths []Read, t *cel.Type, field string) []Read {
	object := r.scope.ObjectOf(t)
	if object == nil || object.Leaf {
		return keyed(paths, field)
	}
	m := object.Find(field)
	if m == nil {
		return paths
	}
	var out []Read
	for _, p := range paths {
		next := p
		next.Steps = append(slices.Clone(p.Steps), Step{Member: m})
		next.Changes, next.Type = max(p.Changes, m.Changes), m.Type
		if m.Reads == nil {
			out = append(out, next)
			continue
		}
		r.expand(p, m, next)
		if m.Own != "" {
			out = append(out, next)
		}
	}
	if m.Reads != nil && len(paths) == 0 {
		r.reads.Add(m.Reads)
	}
	out = append(out, m.Ends...)
	return out
}

// expand records what a computed member reads, as paths that start at the owner.
func (r *reader) expand(owner Read, m *Member, self Read) {
	for _, read := range m.Reads.All {
		if read.Root == m.Own {
			read.Root = owner.Root
			read.Steps = append(slices.Clone(owner.Steps), read.Steps...)
			read.Changes = max(read.Changes, owner.Changes)
		}
		self.Changes = max(self.Changes, read.Changes)
		read.Through, read.Told = m.Own != "", read.Told || m.Tells
		r.reads.add(read)
	}
	if m.Own != "" {
		r.reads.add(self)
		return // its value is memoized
	}
	r.reads.Counted = r.reads.Counted || m.Reads.Counted
}

func keyed(paths []Read, key string) []Read {
	out := slices.Clone(paths)
	for i := range out {
		if out[i].Key == "" {
			out[i].Key = key
		}
	}
	return out
}

func (r *reader) call(e ast.Expr, bound map[string][]Read) []Read {
	c := e.AsCall()
	args := c.Args()
	if c.IsMemberFunction() {
		args = append([]ast.Expr{c.Target()}, args...)
	}
	switch c.FunctionName() {
	case operators.Conditional:
		r.close(r.open(args[0], bound))
		return append(r.open(args[1], bound), r.open(args[2], bound)...)
	case operators.OptSelect:
		return r.extend(r.open(args[0], bound), r.ast.GetType(args[0].ID()), constant(args[1]))
	case operators.Index, operators.OptIndex:
		return r.index(args, bound)
	}
	open := make([][]Read, len(args))
	for i, a := range args {
		open[i] = r.open(a, bound)
	}
	declared := r.declared(e.ID())
	if declared == nil {
		for _, paths := range open {
			r.close(paths)
		}
		return r.passed(r.ast.GetType(e.ID()), args, open)
	}
	r.through(declared, args, open)
	return nil
}

// passed returns the paths of the objects that a general function returns from its arguments. For example, reverse and slice return
// elements of their list.
func (r *reader) passed(result *cel.Type, args []ast.Expr, open [][]Read) []Read {
	of := r.scope.elementOf(result)
	if of == nil {
		return nil
	}
	var out []Read
	for i, a := range args {
		t := r.ast.GetType(a.ID())
		if r.scope.elementOf(t) != of {
			continue
		}
		if t.Kind() == types.ListKind && result.Kind() != types.ListKind {
			out = append(out, each(open[i], t)...)
			continue
		}
		out = append(out, open[i]...)
	}
	return out
}

// declared returns the declared reads of the overloads of a call, or nil if they declare none.
func (r *reader) declared(id int64) []string {
	var out []string
	for _, overload := range r.ast.GetOverloadIDs(id) {
		if o := r.scope.lang.overloads[overload]; o != nil && o.Reads != nil && !slices.Contains(o.Reads, Arguments) {
			out = append(out, o.Reads...)
		}
	}
	return out
}

// through records what a function reads of its arguments. Arguments that the function does not name are read whole.
func (r *reader) through(declared []string, args []ast.Expr, open [][]Read) {
	named := make([]bool, len(args))
	for _, text := range declared {
		parts := strings.Split(text, ".")
		at, err := strconv.Atoi(strings.Trim(parts[0], "{}"))
		if err != nil {
			r.global(parts)
			continue
		}
		if at >= len(args) {
			continue
		}
		named[at] = true
		paths, t := open[at], r.ast.GetType(args[at].ID())
		for _, field := range parts[1:] {
			paths, t = r.along(paths, t, field)
		}
		r.close(paths)
	}
	for i := range args {
		if o := r.scope.ObjectOf(r.ast.GetType(args[i].ID())); !named[i] && (o == nil || o.Leaf) {
			r.close(open[i])
		}
	}
}

// along does the same as extend, and also goes through the elements of a list.
func (r *reader) along(paths []Read, t *cel.Type, field string) ([]Read, *cel.Type) {
	if t.Kind() == types.ListKind {
		paths, t = each(paths, t), t.Parameters()[0]
	}
	next := r.extend(paths, t, field)
	if o := r.scope.ObjectOf(t); o != nil {
		if m := o.Find(field); m != nil {
			t = m.Type
		}
	}
	return next, t
}

func (r *reader) global(parts []string) {
	t, ok := r.scope.roots[parts[0]]
	if !ok {
		return
	}
	paths := []Read{{Root: parts[0], Type: t}}
	for _, field := range parts[1:] {
		paths, t = r.along(paths, t, field)
	}
	r.close(paths)
}

func (r *reader) index(args []ast.Expr, bound map[string][]Read) []Read {
	paths := r.open(args[0], bound)
	r.close(r.open(args[1], bound))
	t := r.ast.GetType(args[0].ID())
	if t.Kind() == types.ListKind {
		r.close(paths)
		return each(paths, t)
	}
	return keyed(paths, constant(args[1]))
}

// each continues the paths with the elements of lists.
func each(paths []Read, t *cel.Type) []Read {
	out := slices.Clone(paths)
	for i := range out {
		if n := len(out[i].Steps); n > 0 {
			out[i].Steps = slices.Clone(out[i].Steps)
			out[i].Steps[n-1].Each = true
		}
		out[i].Type = t.Parameters()[0]
	}
	return out
}

func (r *reader) comprehension(e ast.Expr, bound map[string][]Read) []Read {
	c := e.AsComprehension()
	paths := r.open(c.IterRange(), bound)
	t := r.ast.GetType(c.IterRange().ID())
	r.close(paths)
	inner := map[string][]Read{}
	maps.Copy(inner, bound)
	inner[c.AccuVar()], inner[c.IterVar()] = nil, nil
	if r.scope.elementOf(r.ast.GetType(c.AccuInit().ID())) != nil {
		inner[c.AccuVar()] = r.open(c.AccuInit(), bound) // a value that a macro such as optMap binds to a name
	}
	if t.Kind() == types.ListKind {
		elements := c.IterVar()
		if c.HasIterVar2() {
			inner[c.IterVar2()] = nil
			elements = c.IterVar2()
		}
		if r.scope.ObjectOf(t.Parameters()[0]) != nil {
			inner[elements] = each(paths, t)
		}
	} else if c.HasIterVar2() {
		inner[c.IterVar2()] = nil
	}
	var made []Read
	of := r.scope.elementOf(r.ast.GetType(e.ID()))
	for _, x := range []ast.Expr{c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
		open := r.open(x, inner)
		if r.scope.ObjectOf(r.ast.GetType(x.ID())) == nil {
			r.close(open)
		}
		if of != nil && r.scope.elementOf(r.ast.GetType(x.ID())) == of {
			made = append(made, open...) // the objects that it selects, or finds through objects of the range
		}
	}
	return made
}

// NowParts returns the largest parts of an expression that read now and nothing else. moving reports whether now is also read together with
// the elements of a comprehension.
func (s *Scope) NowParts(a *ast.AST, e ast.Expr) (parts []ast.Expr, moving bool) {
	reads, _ := s.Reads(a, e)
	if !reads.now() {
		return nil, false
	}
	if reads.Only("now") {
		return []ast.Expr{e}, false
	}
	inside := Children(e)
	if inside == nil {
		return nil, true
	}
	for _, child := range inside {
		p, m := s.NowParts(a, child)
		parts, moving = append(parts, p...), moving || m
	}
	return parts, moving || len(parts) == 0 // a computed member reads the time
}
