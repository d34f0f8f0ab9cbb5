package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	kubernetes "k8s.io/apiserver/pkg/cel"
)

// Changes states when the value of a member can change. Later constants change more often.
type Changes uint8

// The constants range from a value that never changes to a value that changes within one turn.
const (
	Static   Changes = iota // never
	ByObject                // when its object, or a related one, changes
	ByCycle                 // once a cycle
	ByAdmit                 // when a job is admitted, and at the end of a cycle
	ByStep                  // with each tentative step
	ByFold                  // within one fold over victims, or one turn
)

// String returns the phrase that the documentation and `policy facts` use.
func (c Changes) String() string {
	return [...]string{"never", "with its object", "once a cycle", "when a job is admitted", "with every step", "within a turn or fold"}[c]
}

// Origin is a set of the parts of the world that a value is computed from. The client defines the meaning of the bits.
type Origin uint32

// Any reports whether the two sets share an element.
func (o Origin) Any(other Origin) bool { return o&other != 0 }

// Within reports whether other contains the whole set.
func (o Origin) Within(other Origin) bool { return o&^other == 0 }

// Member is one field of an Object type.
type Member struct {
	Name string
	Type *cel.Type
	Doc  string
	// Origin is the part of the world that is read. It is zero for a computed member: Reads describes its inputs.
	Origin  Origin
	Changes Changes
	// Bound is the maximum number of elements of a list, map or string, for the cost estimate; 0 means 64.
	Bound uint64
	// Size is the maximum size of the value, if it is known more exactly than by Bound. It is set for members that an expression computes.
	Size *Size
	// Cost is the cost of reading the member, for the cost estimate, if each read computes it again.
	Cost uint64
	// Get reads the member. The argument is the result of the object's Value(). An error is a *types.Err.
	Get func(object any) ref.Val
	// Bool, Int, Double and String return the same value as Get for a member of that type, but without a ref.Val. A client may leave them nil.
	// The second result is an error, or nil.
	Bool   func(object any) (bool, ref.Val)
	Int    func(object any) (int64, ref.Val)
	Double func(object any) (float64, ref.Val)
	String func(object any) (string, ref.Val)
	// Words are the only values that a string member can have; nil means any value.
	Words []string
	// Constant is the member's value if it is the same for every object.
	Constant ref.Val
	// Bools, Ints, Doubles and Strings read a member of the table's object for many rows at once: out[i] belongs to rows[i]. They exist only
	// if the read cannot fail, and return the same values as Get.
	Bools   func(t Rows, rows []int32, out []bool)
	Ints    func(t Rows, rows []int32, out []int64)
	Doubles func(t Rows, rows []int32, out []float64)
	Strings func(t Rows, rows []int32, out []string)
	// Codes assigns a number, from 0, to each distinct value of the member, or of the element key if the member is a map. Rows with equal
	// values get the same number. It returns an upper bound of the numbers, or 0 if there are too many to be useful.
	Codes func(t Rows, key string, rows, out []int32) int
	// Part reads a field of the member's Leaf object, or an element with a constant index, without creating the whole object. In these cases
	// by is "". Otherwise by is the method that is called with only that name. Part returns a member of the owner, or nil if it cannot read
	// that part.
	Part func(by, name string) *Member
	// Has answers has(). If it is nil, the member is present unless Get returns null.
	Has func(object any) bool
	// Reads is what a computed member reads, starting at the root Own. If it is nil, the member reads only itself.
	Reads *Reads
	// Tells states that the client reports when time changes the member. Therefore reading the member does not count as reading the time.
	Tells bool
	// Own is the name of the owner's root in Reads.
	Own string
	// Ends are the paths in Reads that lead to the value of a computed member without an owner. A read of a part of that value continues from
	// these paths.
	Ends []Read
	// Hidden members cannot appear in a rule. Functions name them in the list of what they read.
	Hidden bool
}

// Object is a type of the language with declared members, never a map.
type Object struct {
	Name    string
	Doc     string
	Type    *cel.Type
	Members []*Member
	// Leaf objects are values (amounts): reading a part of a leaf counts as reading the leaf.
	Leaf bool
}

// Find returns the member with that name, or nil.
func (o *Object) Find(name string) *Member {
	for _, m := range o.Members {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// Function is one function of the language with all its overloads.
type Function struct {
	Name string
	// Doc describes what the function computes from its arguments.
	Doc       string
	Overloads []Overload
	// Names are the names of the arguments for the documentation, in order and without the receiver of a method. It is nil if the types say
	// enough.
	Names []string
	// Singleton is the one implementation for all overloads of an operator.
	Singleton functions.BinaryOp
	// Root is a root that every overload takes as its first argument and that the author does not write; "" means none. The result still
	// depends only on the arguments.
	Root string
}

// Overload is one signature of a function.
type Overload struct {
	ID     string
	Member bool
	Args   []*cel.Type
	Result *cel.Type
	// Reads lists what is read through each argument, for example "{0}.labels", or "cluster.seed" for a global. Arguments alone means that
	// only the arguments are read. It is nil for operators with a Singleton, and then states nothing.
	Reads []string
	// Cost is the cost of one call, in CEL's units; 0 means 1.
	Cost uint64
	// Eval computes the result. It is nil for operators with a Singleton.
	Eval functions.FunctionOp
	// Two, if it is not nil, is Eval for two arguments, without a slice.
	Two functions.BinaryOp
	// Ints marks a copy of another overload of the function that has ints instead of doubles.
	Ints bool
	// Native, if it is not nil, returns forms of the overload that need no ref.Val for their results. An element of constants is nil if that
	// argument is not constant. The result is nil if no such form exists.
	Native func(constants []ref.Val) *Native
	// Spread states that the last arguments are the elements of the list that is the last argument of the first overload. A list literal is
	// passed element by element and never created. Spread is only allowed for a function with a Root.
	Spread bool
}

// Arguments in Overload.Reads states that the function reads the whole arguments and nothing else.
const Arguments = "{}"

// Vocabulary is what a client adds to the dialect.
type Vocabulary struct {
	Objects   []*Object
	Functions []*Function
	// Roots are the names of all roots that scopes declare, if an Activation of the client knows them by number (Roots).
	Roots []string
	// Row is the root that stands for each row of a table in turn when expressions are evaluated by column (Rows).
	Row string
}

// Language is the dialect with a client's vocabulary: immutable, safe to share.
type Language struct {
	base *cel.Env
	// decls are the functions of base. They are stored here because cel-go copies the map for each caller.
	decls     map[string]*decls.FunctionDecl
	objects   map[string]*Object
	functions map[string]*Function
	overloads map[string]*Overload
	vocab     Vocabulary
}

// NewLanguage creates the dialect of Kubernetes' ValidatingAdmissionPolicy, in which int and double mix, plus the vocabulary. An error
// means that the vocabulary has a mistake.
func NewLanguage(v Vocabulary) (*Language, error) {
	l := &Language{objects: map[string]*Object{}, functions: map[string]*Function{}, overloads: map[string]*Overload{}, vocab: v}
	for _, o := range v.Objects {
		l.objects[o.Name] = o
	}
	opts := []cel.EnvOption{
		cel.HomogeneousAggregateLiterals(),
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
		cel.EnableMacroCallTracking(), // so that messages can show parts as the author wrote them
		cel.CrossTypeNumericComparisons(true),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals(),
			cel.ValidateHomogeneousAggregateLiterals()),
		cel.CustomTypeAdapter(types.DefaultTypeAdapter),
	}
	for _, library := range Libraries() {
		opts = append(opts, library.options()...)
	}
	opts = append(opts, cel.Lib(boundedCalls{l}))
	for _, f := range merged(operatorFunctions(v), v.Functions) {
		l.functions[f.Name] = f
		opts = append(opts, f.option(l))
		if f.Root != "" {
			opts = append(opts, cel.Macros(f.macros()...))
		}
	}
	base, err := cel.NewCustomEnv(opts...)
	if err != nil {
		return nil, fmt.Errorf("rule language: %w", err)
	}
	l.base, l.decls = base, base.Functions()
	return l, nil
}

// merged adds to the redeclared operators the signatures that a vocabulary has for them.
func merged(operators, others []*Function) []*Function {
	out := slices.Clone(operators)
	for _, f := range others {
		i := slices.IndexFunc(operators, func(o *Function) bool { return o.Name == f.Name })
		if i < 0 {
			out = append(out, f)
			continue
		}
		operators[i].Overloads = append(operators[i].Overloads, f.Overloads...)
	}
	return out
}

// Objects returns the objects of the vocabulary, for the reference.
func (l *Language) Objects() []*Object { return l.vocab.Objects }

// Functions returns the functions of the vocabulary, for the reference.
func (l *Language) Functions() []*Function { return l.vocab.Functions }

// Operators returns the operators that the dialect redeclares, with all their signatures, for the reference.
func (l *Language) Operators() []*Function {
	var out []*Function
	for _, name := range redeclared() {
		out = append(out, l.functions[name])
	}
	return out
}

// redeclared returns the operators that the dialect redeclares because CEL does not mix int and double.
func redeclared() []string {
	return []string{operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Equals, operators.NotEquals}
}

func stdlibSubset() *env.LibrarySubset {
	s := env.NewLibrarySubset()
	for _, name := range redeclared() {
		s.AddExcludedFunctions(env.NewFunction(name))
	}
	return s
}

func (f *Function) option(l *Language) cel.EnvOption {
	opts := []cel.FunctionOpt{decls.DisableTypeGuards(true), cel.FunctionDocs(f.Doc)}
	for i := range f.Overloads {
		o := &f.Overloads[i]
		l.overloads[o.ID] = o
		var bind []cel.OverloadOpt
		if o.Eval != nil {
			bind = append(bind, binding(o))
		}
		if o.Member {
			opts = append(opts, cel.MemberOverload(o.ID, o.Args, o.Result, bind...))
		} else {
			opts = append(opts, cel.Overload(o.ID, o.Args, o.Result, bind...))
		}
	}
	if f.Singleton != nil {
		opts = append(opts, cel.SingletonBinaryBinding(f.Singleton))
	}
	return cel.Function(f.Name, opts...)
}

// macros returns one macro for each number of arguments. A macro inserts the root of the function before its arguments.
func (f *Function) macros() []cel.Macro {
	var out []cel.Macro
	seen := map[int]bool{}
	for _, o := range f.Overloads {
		written := len(o.Args) - 1
		if seen[written] || o.Spread {
			continue
		}
		seen[written] = true
		out = append(out, cel.GlobalMacro(f.Name, written, func(h cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
			return h.NewCall(f.Name, append([]ast.Expr{h.NewIdent(f.Root)}, f.spread(args)...)...), nil
		}))
	}
	return out
}

// spread replaces a last argument that is a list literal with its elements, if an overload takes that number of arguments.
func (f *Function) spread(args []ast.Expr) []ast.Expr {
	last := len(args) - 1
	if args[last].Kind() != ast.ListKind || len(args[last].AsList().OptionalIndices()) > 0 {
		return args
	}
	elements := args[last].AsList().Elements()
	for _, o := range f.Overloads {
		if o.Spread && len(o.Args) == 1+last+len(elements) {
			return append(args[:last:last], elements...)
		}
	}
	return args
}

// Written returns the argument types of an overload that the author writes.
func (f *Function) Written(o *Overload) []*cel.Type {
	if o.Spread {
		return f.Written(&f.Overloads[0])
	}
	if f.Root != "" {
		return o.Args[1:]
	}
	return o.Args
}

func binding(o *Overload) cel.OverloadOpt {
	eval := o.Eval
	switch {
	case len(o.Args) == 1:
		return cel.UnaryBinding(func(a ref.Val) ref.Val { return eval(a) })
	case o.Two != nil:
		return cel.BinaryBinding(o.Two)
	case len(o.Args) == 2:
		return cel.BinaryBinding(func(a, b ref.Val) ref.Val { return eval(a, b) })
	}
	return cel.FunctionBinding(eval)
}

// Scope is a language with additional roots (variables) and objects.
type Scope struct {
	lang    *Language
	env     *cel.Env
	roots   map[string]*cel.Type
	objects map[string]*Object // they shadow the objects of the language
	names   []string           // names of the roots, indexed by number
	numbers map[string]int
}

// Scope declares roots by name. Extra objects replace objects of the vocabulary with the same name (an object with attributes), or are new
// (params, variables).
func (l *Language) Scope(roots map[string]*cel.Type, extra ...*Object) (*Scope, error) {
	s := &Scope{lang: l, roots: roots, objects: map[string]*Object{}, names: slices.Clone(l.vocab.Roots), numbers: map[string]int{}}
	for _, name := range slices.Sorted(maps.Keys(roots)) {
		if !slices.Contains(s.names, name) {
			s.names = append(s.names, name)
		}
	}
	for i, name := range s.names {
		s.numbers[name] = i
	}
	for _, o := range extra {
		s.objects[o.Name] = o
	}
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, fmt.Errorf("rule language: %w", err)
	}
	opts := []cel.EnvOption{cel.CustomTypeProvider(&provider{Registry: registry, scope: s})}
	for _, name := range slices.Sorted(maps.Keys(roots)) {
		opts = append(opts, cel.Variable(name, roots[name]))
	}
	s.env, err = l.base.Extend(opts...)
	if err != nil {
		return nil, fmt.Errorf("rule language: %w", err)
	}
	return s, nil
}

// Row returns the root that stands for each row of a table in turn, or "" if there is none.
func (s *Scope) Row() string { return s.lang.vocab.Row }

// Root returns the type of a root, or nil if it is not declared.
func (s *Scope) Root(name string) *cel.Type { return s.roots[name] }

// Roots returns the names of the roots, indexed by number.
func (s *Scope) Roots() []string { return s.names }

// Number returns the number of a root.
func (s *Scope) Number(root string) (number int, ok bool) {
	number, ok = s.numbers[root]
	return number, ok
}

// Singleton reports whether an operator has one implementation for all its overloads.
func (s *Scope) Singleton(name string) bool { return s.lang.functions[name].Singleton != nil }

func (s *Scope) object(name string) *Object {
	if o, ok := s.objects[name]; ok {
		return o
	}
	return s.lang.objects[name]
}

// ObjectOf returns the declared object of a CEL type, or nil.
func (s *Scope) ObjectOf(t *cel.Type) *Object {
	if t == nil || t.Kind() != types.StructKind && t.Kind() != types.OpaqueKind {
		return nil
	}
	return s.object(t.TypeName())
}

// elementOf returns the declared object of a value, or of the elements of a list or an optional. It returns nil if the value has no members
// of its own.
func (s *Scope) elementOf(t *cel.Type) *Object {
	for t != nil && (t.Kind() == types.ListKind || t.TypeName() == "optional_type") && len(t.Parameters()) > 0 {
		t = t.Parameters()[0]
	}
	if o := s.ObjectOf(t); o != nil && !o.Leaf {
		return o
	}
	return nil
}

// provider gives the type checker and the planner the types of declared objects.
type provider struct {
	*types.Registry
	scope *Scope
	// missing, if it is not nil, is called with each field that an object does not have.
	missing func(o *Object, field string)
}

// FindStructType implements types.Provider.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if o := p.scope.object(name); o != nil {
		return types.NewTypeTypeWithParam(o.Type), true
	}
	return p.Registry.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	o := p.scope.object(name)
	if o == nil {
		return p.Registry.FindStructFieldNames(name)
	}
	var names []string
	for _, m := range o.Members {
		if !m.Hidden {
			names = append(names, m.Name)
		}
	}
	return names, true
}

// FindStructFieldType implements types.Provider.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	o := p.scope.object(name)
	if o == nil {
		return p.Registry.FindStructFieldType(name, field)
	}
	m := o.Find(field)
	if m == nil || m.Hidden {
		if p.missing != nil {
			p.missing(o, field)
		}
		return nil, false
	}
	has := m.Has
	if has == nil {
		has = func(object any) bool { return m.Get(object) != types.NullValue }
	}
	return &types.FieldType{
		Type:  m.Type,
		IsSet: has,
		GetFrom: func(object any) (any, error) {
			v := m.Get(object)
			if err, ok := v.(*types.Err); ok {
				return nil, err
			}
			return v, nil
		},
	}, true
}

// operatorFunctions redeclares arithmetic so that int and double mix, and equality so that they can be compared. The vocabulary adds
// signatures with a Function that has the operator's name and no Singleton.
func operatorFunctions(v Vocabulary) []*Function {
	num := func(id string, f func(a, b *cel.Type) *cel.Type) []Overload {
		var out []Overload
		for _, a := range []*cel.Type{cel.IntType, cel.DoubleType} {
			for _, b := range []*cel.Type{cel.IntType, cel.DoubleType} {
				out = append(out, Overload{ID: fmt.Sprintf("%s_%s_%s", id, a, b), Args: []*cel.Type{a, b}, Result: f(a, b)})
			}
		}
		return append(out, Overload{ID: id + "_uint", Args: []*cel.Type{cel.UintType, cel.UintType}, Result: f(cel.UintType, cel.UintType)})
	}
	widest := func(a, b *cel.Type) *cel.Type {
		if a == cel.DoubleType || b == cel.DoubleType {
			return cel.DoubleType
		}
		return a
	}
	over := func(id string, a, b, result *cel.Type) Overload {
		return Overload{ID: id, Args: []*cel.Type{a, b}, Result: result}
	}
	listOfA := cel.ListType(cel.TypeParamType("A"))
	str, ts, dur, bytes := cel.StringType, cel.TimestampType, cel.DurationType, cel.BytesType
	add := append(num("add", widest), over("add_string", str, str, str), over("add_bytes", bytes, bytes, bytes),
		over("add_list", listOfA, listOfA, listOfA),
		over("add_duration", dur, dur, dur), over("add_timestamp_duration", ts, dur, ts), over("add_duration_timestamp", dur, ts, ts))
	sub := append(num("subtract", widest), over("subtract_duration", dur, dur, dur), over("subtract_timestamp_duration", ts, dur, ts),
		over("subtract_timestamp", ts, ts, dur))
	out := []*Function{
		{
			Name: operators.Add, Doc: "Adds numbers (int and double mix), joins strings and lists, moves a timestamp.", Overloads: add,
			Singleton: arithmetic(plus),
		},
		{
			Name: operators.Subtract, Doc: "Subtracts numbers (int and double mix), timestamps and durations.", Overloads: sub,
			Singleton: arithmetic(minus),
		},
		{
			Name: operators.Multiply, Doc: "Multiplies numbers (int and double mix).", Overloads: num("multiply", widest),
			Singleton: arithmetic(times),
		},
		{
			Name: operators.Divide, Doc: "Divides numbers: whole division of ints, else double.", Overloads: num("divide", widest),
			Singleton: arithmetic(by),
		},
		{Name: operators.Equals, Doc: "Says whether two values are equal; int and double compare as numbers.", Overloads: equality("equals", v)},
		{
			Name: operators.NotEquals, Doc: "Says whether two values differ; int and double compare as numbers.",
			Overloads: equality("not_equals", v),
		},
	}
	return out
}

// equality lists one signature for each type. A signature for any two equal types would hide the mixed signatures from the checker. The
// evaluator compares the values itself. Null has no signature: it can stand for any object or time, so it would match each of these
// signatures.
func equality(id string, v Vocabulary) []Overload {
	a, b := cel.TypeParamType("A"), cel.TypeParamType("B")
	same := []*cel.Type{
		cel.BoolType, cel.IntType, cel.DoubleType, cel.UintType, cel.StringType, cel.BytesType, cel.TimestampType, cel.DurationType,
		cel.ListType(a), cel.MapType(a, b), cel.OptionalType(a), types.NewTypeTypeWithParam(a),
	}
	same = append(same, kubernetes.QuantityType, kubernetes.URLType, kubernetes.FormatType, kubernetes.IPType, kubernetes.CIDRType,
		kubernetes.SemverType)
	for _, o := range v.Objects {
		same = append(same, o.Type)
	}
	out := []Overload{}
	for _, t := range same {
		name := strings.NewReplacer("(", "_", ")", "", ", ", "_", ".", "_").Replace(t.String())
		out = append(out, Overload{ID: id + "_" + name, Args: []*cel.Type{t, t}, Result: cel.BoolType})
	}
	for _, m := range [][2]*cel.Type{
		{cel.IntType, cel.DoubleType},
		{cel.DoubleType, cel.IntType},
		{cel.IntType, cel.UintType},
		{cel.UintType, cel.IntType},
	} {
		out = append(out, Overload{ID: fmt.Sprintf("%s_%s_%s", id, m[0], m[1]), Args: m[:], Result: cel.BoolType})
	}
	return out
}
