package eval

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/rules"
)

// named adds numbers to an Activation that only knows names.
type named struct {
	cel.Activation
	names []string
}

// Root implements Roots.
func (n named) Root(number int) any {
	v, ok := n.ResolveName(n.names[number])
	if !ok {
		return nil
	}
	return v
}

// kernel is a part of an expression as Go closures. value is always set, and returns errors as *types.Err. The closure for the static type
// is also set if it is faster. Its second result is an error, or nil.
type kernel struct {
	value   func(rules.Roots) ref.Val
	boolean func(rules.Roots) (bool, ref.Val)
	integer func(rules.Roots) (int64, ref.Val)
	double  func(rules.Roots) (float64, ref.Val)
	str     func(rules.Roots) (string, ref.Val)
	// constant is the value of a part that reads nothing, or nil.
	constant ref.Val
	// literal states that the constant is written as a literal.
	literal bool
}

// These functions return kernels with a closure of one type.

func boolKernel(f func(rules.Roots) (bool, ref.Val)) kernel {
	return kernel{boolean: f, value: func(r rules.Roots) ref.Val {
		x, err := f(r)
		if err != nil {
			return err
		}
		return types.Bool(x)
	}}
}

func intKernel(f func(rules.Roots) (int64, ref.Val)) kernel {
	return kernel{integer: f, value: func(r rules.Roots) ref.Val {
		x, err := f(r)
		if err != nil {
			return err
		}
		return types.Int(x)
	}}
}

func doubleKernel(f func(rules.Roots) (float64, ref.Val)) kernel {
	return kernel{double: f, value: func(r rules.Roots) ref.Val {
		x, err := f(r)
		if err != nil {
			return err
		}
		return types.Double(x)
	}}
}

// valueKernel adds the typed closures that the static type permits.
func valueKernel(t *cel.Type, f func(rules.Roots) ref.Val) kernel {
	k := kernel{value: f}
	switch t.Kind() {
	case types.BoolKind:
		k.boolean = unboxed(f, func(v ref.Val) (bool, bool) { x, ok := v.(types.Bool); return bool(x), ok })
	case types.IntKind:
		k.integer = unboxed(f, func(v ref.Val) (int64, bool) { x, ok := v.(types.Int); return int64(x), ok })
	case types.DoubleKind:
		k.double = unboxed(f, func(v ref.Val) (float64, bool) { x, ok := v.(types.Double); return float64(x), ok })
	case types.StringKind:
		k.str = unboxed(f, func(v ref.Val) (string, bool) { x, ok := v.(types.String); return string(x), ok })
	default: // it has no typed form
	}
	return k
}

func unboxed[T any](f func(rules.Roots) ref.Val, as func(ref.Val) (T, bool)) func(rules.Roots) (T, ref.Val) {
	return func(r rules.Roots) (T, ref.Val) {
		v := f(r)
		x, ok := as(v)
		if !ok {
			return x, types.MaybeNoSuchOverloadErr(v)
		}
		return x, nil
	}
}

func constantKernel(t *cel.Type, v ref.Val) kernel {
	k := valueKernel(t, func(rules.Roots) ref.Val { return v })
	k.constant = v
	switch x := v.(type) {
	case types.Bool:
		k.boolean = func(rules.Roots) (bool, ref.Val) { return bool(x), nil }
	case types.Int:
		k.integer = func(rules.Roots) (int64, ref.Val) { return int64(x), nil }
	case types.Double:
		k.double = func(rules.Roots) (float64, ref.Val) { return float64(x), nil }
	case types.String:
		k.str = func(rules.Roots) (string, ref.Val) { return string(x), nil }
	}
	return k
}

// truth returns the closure for a bool, whatever the static type is.
func (k kernel) truth() func(rules.Roots) (bool, ref.Val) {
	if k.boolean != nil {
		return k.boolean
	}
	return unboxed(k.value, func(v ref.Val) (bool, bool) { x, ok := v.(types.Bool); return bool(x), ok })
}

// number returns the closure for a double if the kernel is an int or a double.
func (k kernel) number() func(rules.Roots) (float64, ref.Val) {
	if k.double != nil || k.integer == nil {
		return k.double
	}
	f := k.integer
	return func(r rules.Roots) (float64, ref.Val) {
		x, err := f(r)
		return float64(x), err
	}
}

// uncompiled states why a part cannot be compiled. Then cel-go evaluates the whole expression.
type uncompiled struct{ why string }

func (u uncompiled) Error() string { return u.why }

// kerneler compiles the checked syntax tree of one expression.
type kerneler struct {
	scope *rules.Scope
	ast   *ast.AST
	// metered states that the evaluation counts what it uses.
	metered bool
	// locals are the variables of the enclosing loops, the innermost last.
	locals []loopNames
}

type loopNames struct{ accu, iter, iter2 string }

// kernelOf compiles an expression. If a part cannot be compiled, the error states why, and cel-go evaluates the whole expression.
func kernelOf(s *rules.Scope, a *ast.AST, counted bool) (kernel, error) {
	k := &kerneler{scope: s, ast: a, metered: counted}
	return k.compile(a.Expr())
}

func (k *kerneler) typeOf(e ast.Expr) *cel.Type { return k.ast.GetType(e.ID()) }

func (k *kerneler) compile(e ast.Expr) (kernel, error) {
	switch e.Kind() {
	case ast.LiteralKind:
		return constantKernel(k.typeOf(e), e.AsLiteral()), nil
	case ast.IdentKind:
		return k.ident(e)
	case ast.SelectKind:
		return k.selection(e)
	case ast.CallKind:
		return k.call(e)
	case ast.ListKind:
		return k.list(e)
	case ast.ComprehensionKind:
		return k.comprehension(e)
	case ast.MapKind:
		return k.mapping(e)
	case ast.StructKind:
		return kernel{}, uncompiled{"an object literal"}
	default:
		return kernel{}, uncompiled{"an unknown form"}
	}
}

// ident reads a root or a variable of a loop.
func (k *kerneler) ident(e ast.Expr) (kernel, error) {
	if r := k.ast.ReferenceMap()[e.ID()]; r != nil && r.Value != nil {
		return constantKernel(k.typeOf(e), r.Value), nil
	}
	name := e.AsIdent()
	if f := k.local(name); f != nil {
		return valueKernel(k.typeOf(e), f), nil
	}
	raw, err := k.root(name)
	if err != nil {
		return kernel{}, err
	}
	return valueKernel(k.typeOf(e), func(r rules.Roots) ref.Val {
		switch v := raw(r).(type) {
		case ref.Val:
			return v
		case nil:
			return types.NewErr("no such attribute(s): %s", name)
		default:
			return types.DefaultTypeAdapter.NativeToValue(v)
		}
	}), nil
}

// root reads a root in the form that its Activation returns.
func (k *kerneler) root(name string) (func(rules.Roots) any, error) {
	number, ok := k.scope.Number(name)
	if !ok {
		return nil, uncompiled{"the root " + name + " has no number"}
	}
	read := func(r rules.Roots) any {
		if v := r.Root(number); v != nil {
			return v
		}
		v, _ := r.ResolveName(name)
		return v
	}
	if depth := len(k.locals); depth > 0 {
		return func(r rules.Roots) any { return read(outside(r, depth)) }, nil
	}
	return read, nil
}

// selection reads a field of an object or a map, or tests it with has().
func (k *kerneler) selection(e ast.Expr) (kernel, error) {
	sel := e.AsSelect()
	if r := k.ast.ReferenceMap()[e.ID()]; r != nil {
		return kernel{}, uncompiled{"the qualified name " + r.Name}
	}
	operand := sel.Operand()
	t := k.typeOf(operand)
	if o := k.scope.ObjectOf(t); o != nil {
		m := o.Find(sel.FieldName())
		if m == nil {
			return kernel{}, uncompiled{"the field " + sel.FieldName()}
		}
		if m.Constant != nil && !sel.IsTestOnly() {
			return constantKernel(m.Type, m.Constant), nil
		}
		if out, found, err := k.part(e); found || err != nil {
			return out, err
		}
		object, err := k.object(operand)
		if err != nil {
			return kernel{}, err
		}
		if sel.IsTestOnly() {
			return testKernel(m, object), nil
		}
		return memberKernel(m, object), nil
	}
	if t.Kind() != types.MapKind {
		return kernel{}, uncompiled{"a field of " + rules.TypeName(t)}
	}
	of, err := k.compile(operand)
	if err != nil {
		return kernel{}, err
	}
	return lookup(k.typeOf(e), of.value, constantKernel(cel.StringType, types.String(sel.FieldName())), sel.IsTestOnly()), nil
}

// part reads a part of a member without creating the whole member, if the member supports this.
func (k *kerneler) part(e ast.Expr) (out kernel, found bool, err error) {
	of, by, name := partRead(e)
	if of == nil || of.Kind() != ast.SelectKind || of.AsSelect().IsTestOnly() {
		return kernel{}, false, nil
	}
	o := k.scope.ObjectOf(k.typeOf(of.AsSelect().Operand()))
	if o == nil {
		return kernel{}, false, nil
	}
	m := o.Find(of.AsSelect().FieldName())
	if m == nil || m.Part == nil {
		return kernel{}, false, nil
	}
	part := m.Part(by, name)
	if part == nil {
		return kernel{}, false, nil
	}
	object, err := k.object(of.AsSelect().Operand())
	if err != nil {
		return kernel{}, false, err
	}
	return memberKernel(part, object), true, nil
}

// object returns the object from which members are read: the Value of a ref.Val, or the root itself. An error is a *types.Err.
func (k *kerneler) object(e ast.Expr) (func(rules.Roots) any, error) {
	if e.Kind() == ast.IdentKind && k.local(e.AsIdent()) == nil {
		raw, err := k.root(e.AsIdent())
		if err != nil {
			return nil, err
		}
		name := e.AsIdent()
		return func(r rules.Roots) any {
			switch v := raw(r).(type) {
			case ref.Val:
				return held(v)
			case nil:
				return types.NewErr("no such attribute(s): %s", name)
			default:
				return v
			}
		}, nil
	}
	of, err := k.compile(e)
	if err != nil {
		return nil, err
	}
	return func(r rules.Roots) any { return held(of.value(r)) }, nil
}

// held returns the object from which members are read. An error stays an error.
func held(v ref.Val) any {
	if err, ok := v.(*types.Err); ok {
		return err
	}
	return v.Value()
}

func memberKernel(m *rules.Member, object func(rules.Roots) any) kernel {
	k := valueKernel(m.Type, func(r rules.Roots) ref.Val {
		o := object(r)
		if err, ok := o.(*types.Err); ok {
			return err
		}
		return m.Get(o)
	})
	if m.Int != nil {
		k.integer = typedMember(object, m.Int)
	}
	if m.Double != nil {
		k.double = typedMember(object, m.Double)
	}
	if m.Bool != nil {
		k.boolean = typedMember(object, m.Bool)
	}
	if m.String != nil {
		k.str = typedMember(object, m.String)
	}
	return k
}

func typedMember[T any](object func(rules.Roots) any, get func(any) (T, ref.Val)) func(rules.Roots) (T, ref.Val) {
	return func(r rules.Roots) (T, ref.Val) {
		o := object(r)
		if err, ok := o.(*types.Err); ok {
			var none T
			return none, err
		}
		return get(o)
	}
}

func testKernel(m *rules.Member, object func(rules.Roots) any) kernel {
	return boolKernel(func(r rules.Roots) (bool, ref.Val) {
		o := object(r)
		if err, ok := o.(*types.Err); ok {
			return false, err
		}
		if m.Has != nil {
			return m.Has(o), nil
		}
		return m.Get(o) != types.NullValue, nil
	})
}

// lookup finds an element of a map, a list or an object with an index. test states that only its existence is tested.
func lookup(t *cel.Type, of func(rules.Roots) ref.Val, key kernel, test bool) kernel {
	if test {
		return boolKernel(func(r rules.Roots) (bool, ref.Val) {
			_, found, err := find(of(r), key.value(r))
			return found, err
		})
	}
	return valueKernel(t, func(r rules.Roots) ref.Val {
		v, key := of(r), key.value(r)
		x, found, err := find(v, key)
		switch {
		case err != nil:
			return err
		case found:
			return x
		}
		if _, isList := v.(traits.Lister); isList {
			return types.NewErr("index out of bounds: %v", key.Value())
		}
		return types.NewErr("no such key: %v", key)
	})
}

// find implements CEL's own rules for indexing a value.
func find(v, key ref.Val) (x ref.Val, found bool, err ref.Val) {
	for _, operand := range []ref.Val{v, key} {
		if types.IsError(operand) {
			return nil, false, operand
		}
	}
	switch of := v.(type) {
	case traits.Mapper:
		x, found = of.Find(key)
	case traits.Lister:
		return findElement(of, key)
	case traits.Indexer:
		x, found = of.Get(key), true
	default:
		return nil, false, types.MaybeNoSuchOverloadErr(v)
	}
	if x != nil && types.IsError(x) {
		return nil, false, x
	}
	return x, found, nil
}

func findElement(of traits.Lister, key ref.Val) (x ref.Val, found bool, err ref.Val) {
	i, wrong := types.IndexOrError(key)
	if wrong != nil {
		return nil, false, types.WrapErr(wrong)
	}
	if size, ok := of.Size().(types.Int); !ok || i < 0 || types.Int(i) >= size {
		return nil, false, nil
	}
	return of.Get(key), true, nil
}

// list creates a list. A list of constants is created only once.
func (k *kerneler) list(e ast.Expr) (kernel, error) {
	l := e.AsList()
	if len(l.OptionalIndices()) > 0 {
		return kernel{}, uncompiled{"a list with optional elements"}
	}
	parts, constant, err := k.all(l.Elements())
	if err != nil {
		return kernel{}, err
	}
	values := strict(parts)
	build := func(r rules.Roots) ref.Val {
		list, err := values(r)
		if err != nil {
			return err
		}
		return types.NewRefValList(types.DefaultTypeAdapter, list)
	}
	if constant {
		out := constantKernel(k.typeOf(e), build(nil))
		out.literal = true
		return out, nil
	}
	return k.building(build), nil
}

// building returns the kernel of a list or map literal, whose bytes are counted.
func (k *kerneler) building(build func(rules.Roots) ref.Val) kernel {
	if !k.metered {
		return kernel{value: build}
	}
	return kernel{value: func(r rules.Roots) ref.Val {
		v := build(r)
		meterOf(r).bytes(bytesOf(v))
		return v
	}}
}

// mapping creates a map. A map of constants is created only once.
func (k *kerneler) mapping(e ast.Expr) (kernel, error) {
	var exprs []ast.Expr
	for _, entry := range e.AsMap().Entries() {
		m := entry.AsMapEntry()
		if m.IsOptional() {
			return kernel{}, uncompiled{"a map with optional entries"}
		}
		exprs = append(exprs, m.Key(), m.Value())
	}
	parts, constant, err := k.all(exprs)
	if err != nil {
		return kernel{}, err
	}
	values := strict(parts)
	build := func(r rules.Roots) ref.Val {
		list, err := values(r)
		if err != nil {
			return err
		}
		entries := make(map[ref.Val]ref.Val, len(list)/2)
		for pair := range slices.Chunk(list, 2) {
			entries[pair[0]] = pair[1]
		}
		return types.NewRefValMap(types.DefaultTypeAdapter, entries)
	}
	if constant {
		return constantKernel(k.typeOf(e), build(nil)), nil
	}
	return k.building(build), nil
}

func (k *kerneler) all(list []ast.Expr) (parts []kernel, constant bool, err error) {
	parts, constant = make([]kernel, len(list)), true
	for i, e := range list {
		if parts[i], err = k.compile(e); err != nil {
			return nil, false, err
		}
		constant = constant && parts[i].constant != nil
	}
	return parts, constant, nil
}

// call compiles operators. All other calls are calls of the function that the checker found.
func (k *kerneler) call(e ast.Expr) (kernel, error) {
	if out, found, err := k.part(e); found || err != nil {
		return out, err
	}
	c := e.AsCall()
	parts, constant, err := k.all(rules.ArgumentsOf(c))
	if err != nil {
		return kernel{}, err
	}
	out, err := k.applied(e, c.FunctionName(), parts)
	if err == nil && constant && len(parts) > 0 && !k.metered {
		if v := out.value(nil); !types.IsError(v) {
			return constantKernel(k.typeOf(e), v), nil
		}
	}
	return out, err
}

func (k *kerneler) applied(e ast.Expr, name string, parts []kernel) (kernel, error) {
	switch name {
	case operators.LogicalAnd, operators.LogicalOr:
		return junctionKernel(parts[0], parts[1], name == operators.LogicalAnd), nil
	case operators.LogicalNot:
		f := parts[0].truth()
		return boolKernel(func(r rules.Roots) (bool, ref.Val) {
			x, err := f(r)
			return !x, err
		}), nil
	case operators.NotStrictlyFalse:
		f := parts[0].truth()
		return boolKernel(func(r rules.Roots) (bool, ref.Val) {
			x, err := f(r)
			return x || err != nil, nil
		}), nil
	case operators.Conditional:
		return conditional(k.typeOf(e), parts), nil
	case operators.Index:
		return lookup(k.typeOf(e), parts[0].value, parts[1], false), nil
	case operators.OptIndex:
		return k.optional(e, parts)
	case "orValue":
		return orValue(k.typeOf(e), parts), nil
	case operators.OptSelect, "or", "matches": // cel-go compiles a constant regular expression only once
		return kernel{}, uncompiled{"the function " + name}
	case operators.Equals, operators.NotEquals:
		return k.equality(parts[0], parts[1], name == operators.NotEquals), nil
	}
	if ordersTexts := isOrder(name) && parts[0].str != nil; !k.metered || !ordersTexts {
		if out, ok := unboxedOperator(name, parts); ok {
			return out, nil
		}
	}
	return k.function(e, name, parts)
}

// function calls the overload that the checker chose. If an argument is an error, the error is the result.
func (k *kerneler) function(e ast.Expr, name string, parts []kernel) (kernel, error) {
	callee, err := k.scope.Callee(name, k.ast.ReferenceMap()[e.ID()])
	if err != nil {
		return kernel{}, err
	}
	c, f := &invocation{callee}, callee.F
	t := k.typeOf(e)
	var out kernel
	switch {
	case k.metered:
		out = valueKernel(t, c.counted(strict(parts), k.growthOf(e, name)))
	case len(parts) == 1 && f.Unary != nil:
		out = valueKernel(t, c.unary(boxed(parts[0])))
	case len(parts) == 2 && f.Binary != nil:
		out = valueKernel(t, c.binary(boxed(parts[0]), boxed(parts[1])))
	case f.Function != nil:
		out = valueKernel(t, c.general(strict(parts)))
	default:
		return kernel{}, uncompiled{"the function " + name}
	}
	n := k.nativeOf(e, parts)
	if n == nil {
		n = zoned(name, parts)
	}
	if n != nil {
		return nativeKernel(n, parts, out), nil
	}
	return out, nil
}

// nativeKernel calls the native form of a function, and the general form if the native form returns no result.
func nativeKernel(n *rules.Native, parts []kernel, general kernel) kernel {
	out := general
	switch {
	case n.Bool != nil && general.boolean != nil:
		out = boolKernel(natively(n.Bool, parts, general.boolean))
	case n.Int != nil && general.integer != nil:
		out = intKernel(natively(n.Int, parts, general.integer))
	case n.Double != nil && general.double != nil:
		out = doubleKernel(natively(n.Double, parts, general.double))
	}
	return out
}

func natively[T any](
	f func(a, b, c ref.Val) (T, bool), parts []kernel, general func(rules.Roots) (T, ref.Val),
) func(rules.Roots) (T, ref.Val) {
	var of [3]func(rules.Roots) ref.Val
	for i := range of {
		of[i] = func(rules.Roots) ref.Val { return nil }
		if i < len(parts) {
			of[i] = parts[i].value
		}
	}
	a, b, c := of[0], of[1], of[2]
	return func(r rules.Roots) (T, ref.Val) {
		if x, ok := f(a(r), b(r), c(r)); ok {
			return x, nil
		}
		return general(r)
	}
}

// invocation is a call of a function, either CEL's own or one of the vocabulary.
type invocation struct{ rules.Callee }

func (c *invocation) unary(a func(rules.Roots) (ref.Val, ref.Val)) func(rules.Roots) ref.Val {
	return func(r rules.Roots) ref.Val {
		x, err := a(r)
		switch {
		case err != nil:
			return err
		case c.Wrong(x):
			return c.NoOverload()
		}
		return c.F.Unary(x)
	}
}

func (c *invocation) binary(a, b func(rules.Roots) (ref.Val, ref.Val)) func(rules.Roots) ref.Val {
	return func(r rules.Roots) ref.Val {
		x, err := a(r)
		if err != nil {
			return err
		}
		y, err := b(r)
		switch {
		case err != nil:
			return err
		case c.Wrong(x):
			return c.NoOverload()
		}
		return c.F.Binary(x, y)
	}
}

func (c *invocation) general(args func(rules.Roots) ([]ref.Val, ref.Val)) func(rules.Roots) ref.Val {
	return func(r rules.Roots) ref.Val {
		values, err := c.arguments(args, r)
		if err != nil {
			return err
		}
		return c.F.Function(values...)
	}
}

// arguments computes the arguments of a call. The second result is an error, or nil.
func (c *invocation) arguments(args func(rules.Roots) ([]ref.Val, ref.Val), r rules.Roots) ([]ref.Val, ref.Val) {
	values, err := args(r)
	if err == nil && len(values) > 0 && c.Wrong(values[0]) {
		err = c.NoOverload()
	}
	return values, err
}

// strict computes several values. The second result is the first error, or nil.
func strict(parts []kernel) func(rules.Roots) ([]ref.Val, ref.Val) {
	return func(r rules.Roots) ([]ref.Val, ref.Val) {
		values := make([]ref.Val, len(parts))
		for i, p := range parts {
			if values[i] = p.value(r); types.IsError(values[i]) {
				return nil, values[i]
			}
		}
		return values, nil
	}
}
