package rules

import (
	"math"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Size is the maximum size of a value: the length of a string or bytes, or the number of elements of a list or a map and their sizes. It is
// nil for a number, an object and similar values.
type Size struct {
	most     uint64
	of, keys *Size // of a list's elements; of a map's values and keys
}

// defaultBound is the assumed size of a value if nothing is known about it because no cluster exists yet.
const defaultBound = 64

// guess returns the assumed size of a value if only its type is known.
func guess(t *cel.Type) *Size {
	if t == nil {
		return nil
	}
	switch p := t.Parameters(); t.Kind() {
	case types.StringKind, types.BytesKind, types.DynKind:
		return &Size{most: defaultBound}
	case types.ListKind:
		return &Size{most: defaultBound, of: guess(p[0])}
	case types.MapKind:
		return &Size{most: defaultBound, keys: guess(p[0]), of: guess(p[1])}
	default:
		if t.TypeName() == "optional_type" && len(p) == 1 {
			return guess(p[0])
		}
	}
	return nil
}

// length returns the maximum number of elements or characters, or 0 for a value without a length.
func (z *Size) length() uint64 {
	if z == nil {
		return 0
	}
	return z.most
}

func (z *Size) element() *Size {
	if z == nil {
		return nil
	}
	return z.of
}

// charsPerStep is the number of characters that CEL counts as one operation.
const charsPerStep = 10

// walk returns how many steps a traversal of the whole value needs.
func (z *Size) walk() uint64 {
	switch {
	case z == nil:
		return 1
	case z.of == nil && z.keys == nil:
		return plusOf(1, z.most/charsPerStep)
	}
	each := z.of.walk()
	if z.keys != nil {
		each = plusOf(each, z.keys.walk())
	}
	return plusOf(1, timesOf(z.most, each))
}

// plusOf adds two numbers; timesOf multiplies them. On overflow both return the largest number.
func plusOf(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

func timesOf(a, b uint64) uint64 {
	if b != 0 && a > math.MaxUint64/b {
		return math.MaxUint64
	}
	return a * b
}

// larger returns a size that is sufficient for both values.
func larger(a, b *Size) *Size {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &Size{most: max(a.most, b.most), of: larger(a.of, b.of), keys: larger(a.keys, b.keys)}
}

// joined returns the size of two strings or lists after concatenation.
func joined(a, b *Size) *Size {
	out := larger(a, b)
	if out == nil {
		return nil
	}
	return &Size{most: plusOf(a.length(), b.length()), of: out.of, keys: out.keys}
}

// sizer computes the maximum size of every part of an expression.
type sizer struct {
	scope  *Scope
	ast    *ast.AST
	locals []map[string]*Size
	sizes  map[int64]*Size
}

func (s *Scope) sizesOf(a *ast.AST) map[int64]*Size {
	z := &sizer{scope: s, ast: a, sizes: map[int64]*Size{}}
	z.size(a.Expr())
	return z.sizes
}

func (z *sizer) size(e ast.Expr) *Size {
	out := z.computed(e)
	z.sizes[e.ID()] = out
	return out
}

func (z *sizer) computed(e ast.Expr) *Size {
	t := z.ast.GetType(e.ID())
	switch e.Kind() {
	case ast.LiteralKind:
		return sizeIn(e.AsLiteral())
	case ast.IdentKind:
		return z.ident(e.AsIdent(), t)
	case ast.SelectKind:
		return z.member(e.AsSelect(), t)
	case ast.ListKind:
		out := &Size{most: uint64(len(e.AsList().Elements()))}
		for _, x := range e.AsList().Elements() {
			out.of = larger(out.of, z.size(x))
		}
		return out
	case ast.MapKind:
		out := &Size{most: uint64(len(e.AsMap().Entries()))}
		for _, x := range e.AsMap().Entries() {
			out.keys = larger(out.keys, z.size(x.AsMapEntry().Key()))
			out.of = larger(out.of, z.size(x.AsMapEntry().Value()))
		}
		return out
	case ast.CallKind:
		var args []*Size
		for _, a := range ArgumentsOf(e.AsCall()) {
			args = append(args, z.size(a))
		}
		return callSize(e.AsCall(), args, t)
	case ast.ComprehensionKind:
		return z.loop(e.AsComprehension())
	case ast.StructKind:
		for _, f := range e.AsStruct().Fields() {
			z.size(f.AsStructField().Value())
		}
		return guess(t)
	default:
	}
	return nil
}

// ident returns the size of a loop variable or of a root.
func (z *sizer) ident(name string, t *cel.Type) *Size {
	for _, locals := range slices.Backward(z.locals) {
		if local, ok := locals[name]; ok {
			return local
		}
	}
	return guess(t)
}

func (z *sizer) member(sel ast.SelectExpr, t *cel.Type) *Size {
	of := z.size(sel.Operand())
	if sel.IsTestOnly() {
		return nil
	}
	o := z.scope.ObjectOf(z.ast.GetType(sel.Operand().ID()))
	if o == nil {
		return of.element()
	}
	out := guess(t)
	switch m := o.Find(sel.FieldName()); {
	case m == nil:
	case m.Constant != nil:
		return sizeIn(m.Constant)
	case m.Size != nil:
		return m.Size
	case m.Bound > 0 && out != nil:
		out.most = m.Bound
	}
	return out
}

// sizeIn returns the size of a known value.
func sizeIn(v ref.Val) *Size {
	switch v := v.(type) {
	case types.String:
		return &Size{most: uint64(len(v))}
	case types.Bytes:
		return &Size{most: uint64(len(v))}
	case traits.Mapper:
		out := &Size{most: uint64(SizeOf(v))} //nolint:gosec // not below 0
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			out.keys, out.of = larger(out.keys, sizeIn(key)), larger(out.of, sizeIn(v.Get(key)))
		}
		return out
	case traits.Lister:
		out := &Size{most: uint64(SizeOf(v))} //nolint:gosec // not below 0
		for it := v.Iterator(); it.HasNext() == types.True; {
			out.of = larger(out.of, sizeIn(it.Next()))
		}
		return out
	}
	return nil
}

// loop returns the size of the result of a loop. The result grows by the same amount in each turn, because macros create no other loops.
func (z *sizer) loop(c ast.ComprehensionExpr) *Size {
	over, start := z.size(c.IterRange()), z.size(c.AccuInit())
	locals := map[string]*Size{c.AccuVar(): start, c.IterVar(): over.element()}
	if over != nil && over.keys != nil {
		locals[c.IterVar()] = over.keys
	}
	if c.HasIterVar2() {
		locals[c.IterVar2()] = over.element()
		if over == nil || over.keys == nil {
			locals[c.IterVar()] = nil
		}
	}
	z.locals = append(z.locals, locals)
	z.size(c.LoopCondition())
	built := z.size(c.LoopStep())
	if more := built.length() - min(start.length(), built.length()); built != nil && more > 0 {
		whole := larger(start, built)
		built = &Size{most: plusOf(start.length(), timesOf(over.length(), more)), of: whole.of, keys: whole.keys}
	}
	clear(locals)
	locals[c.AccuVar()] = larger(start, built)
	out := z.size(c.Result())
	z.locals = z.locals[:len(z.locals)-1]
	return out
}

// callSize returns the size of a function's result. args contains all arguments, with the receiver of a method first.
func callSize(c ast.CallExpr, args []*Size, t *cel.Type) *Size {
	first, second := argument(args, 0), argument(args, 1)
	switch c.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
		return first.element()
	case operators.Conditional:
		return larger(second, argument(args, 2))
	case "or", "orValue":
		return larger(first, second)
	case operators.Add:
		return joined(first, second)
	case "dyn", "value", "optional.of", "optional.ofNonZeroValue", "lowerAscii", "upperAscii", "trim", "substring", "charAt", "slice", "sort",
		"@sortByAssociatedKeys", "distinct", "reverse", "find":
		if guess(t) != nil {
			return first
		}
		return nil
	case "min", "max", "first", "last":
		if guess(t) != nil {
			return first.element()
		}
		return nil
	case mapInsert:
		return &Size{
			most: plusOf(first.length(), max(1, insertedOf(args))), of: larger(first.element(), args[len(args)-1]),
			keys: larger(keysIn(first), second),
		}
	}
	if out := growing(c, first, second, argument(args, 2)); out != nil {
		return out
	}
	return guess(t)
}

func argument(args []*Size, i int) *Size {
	if i < len(args) {
		return args[i]
	}
	return nil
}

// growing returns the size of the result of a function whose result can be larger than its input. It returns nil for other functions.
func growing(c ast.CallExpr, first, second, third *Size) *Size {
	switch c.FunctionName() {
	case "string", "bytes":
		if first != nil {
			return &Size{most: timesOf(first.most, 4)}
		}
	case "strings.quote":
		return &Size{most: plusOf(2, timesOf(first.length(), 2))}
	case "split", "findAll":
		return &Size{most: plusOf(1, first.length()), of: &Size{most: first.length()}}
	case "join":
		return &Size{most: timesOf(first.length(), plusOf(first.element().length(), second.length()))}
	case "replace":
		return &Size{most: plusOf(first.length(), timesOf(replacements(c, first), third.length()))}
	case "format":
		return &Size{most: plusOf(timesOf(first.length(), mostPrecision/2), timesOf(charsPerStep, second.walk()))}
	case "flatten":
		return flattened(first, c)
	case listsRange:
		if n, ok := integerLiteral(c.Args()[0]); ok {
			return &Size{most: n}
		}
	}
	return nil
}

const mapInsert = "cel.@mapInsert"

func keysIn(z *Size) *Size {
	if z == nil {
		return nil
	}
	return z.keys
}

// insertedOf returns how many entries are inserted into a map: one, or all entries of another map.
func insertedOf(args []*Size) uint64 {
	if len(args) == 2 {
		return args[1].length()
	}
	return 1
}

// replacements returns the maximum number of replacements in a string.
func replacements(c ast.CallExpr, in *Size) uint64 {
	times := plusOf(1, in.length())
	if old := StringLiteral(c.Args()[0]); old != "" {
		times = in.length() / uint64(len(old))
	}
	if len(c.Args()) == 3 {
		if n, ok := integerLiteral(c.Args()[2]); ok {
			times = min(times, n)
		}
	}
	return times
}

func flattened(of *Size, c ast.CallExpr) *Size {
	depth := uint64(1)
	if len(c.Args()) == 1 {
		depth = math.MaxUint64
		if n, ok := integerLiteral(c.Args()[0]); ok {
			depth = n
		}
	}
	for ; depth > 0 && of.element() != nil && of.of.of != nil; depth-- {
		of = &Size{most: timesOf(of.most, of.of.most), of: of.of.of}
	}
	if depth > 0 && of.element() != nil {
		return &Size{most: timesOf(of.most, max(of.of.most, 1)), of: of.of.of}
	}
	return of
}

func integerLiteral(e ast.Expr) (uint64, bool) {
	if e.Kind() != ast.LiteralKind {
		return 0, false
	}
	n, ok := e.AsLiteral().(types.Int)
	return uint64(max(n, 0)), ok
}
