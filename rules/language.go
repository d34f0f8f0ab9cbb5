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

// Changes says when the value of a member can change; the later ones change more often.
type Changes uint8

// How often a value changes, from never to every evaluation.
const (
	Static   Changes = iota // never
	ByObject                // when its object, or a related one, changes
	ByCycle                 // once a cycle
	ByAdmit                 // when a job is let in, and at the close of a cycle
	ByStep                  // with any tentative step
	ByFold                  // within one fold over victims, or one turn
)

// String is the word that documentation and `policy facts` use.
func (c Changes) String() string {
	return [...]string{"never", "with its object", "once a cycle", "when a job is admitted", "with every step", "within a turn or fold"}[c]
}

// Origin says, as a set, of which parts of the world a value is made. What its bits stand for is the client's to say.
type Origin uint32

// Any says whether the set has some of other.
func (o Origin) Any(other Origin) bool { return o&other != 0 }

// Within says whether the set has nothing but what other has.
func (o Origin) Within(other Origin) bool { return o&^other == 0 }

// Member is one field of an Object type.
type Member struct {
	Name string
	Type *cel.Type
	Doc  string
	// Origin is what of the world is read; none of a computed member, of which Reads tells.
	Origin  Origin
	Changes Changes
	// Bound is the most elements, for the cost estimate, of a list, map or string; 0 means 64.
	Bound uint64
	// Size, where it is known better than by Bound, is how large the value may become: that of a member that an expression computes.
	Size *Size
	// Cost, for the cost estimate, is what it costs to read the member where that computes it each time anew.
	Cost uint64
	// Get reads the member. The argument is what the object's Value() returns. An error is a *types.Err.
	Get func(object any) ref.Val
	// Bool, Int, Double or String read a member of that type without a ref.Val around it, where the client has that; the
	// second result is an error, nil for none. They give what Get gives.
	Bool   func(object any) (bool, ref.Val)
	Int    func(object any) (int64, ref.Val)
	Double func(object any) (float64, ref.Val)
	String func(object any) (string, ref.Val)
	// Words are the only values that a string has; nil: any.
	Words []string
	// Constant is the member's value where it has the same for every object.
	Constant ref.Val
	// Bools, Ints, Doubles or Strings read a member of that type of the table's object, of many rows at once: out[i] is of
	// rows[i]. They are there only where that cannot err, and give what Get gives.
	Bools   func(t Rows, rows []int32, out []bool)
	Ints    func(t Rows, rows []int32, out []int64)
	Doubles func(t Rows, rows []int32, out []float64)
	Strings func(t Rows, rows []int32, out []string)
	// Codes numbers, from 0, the values that rows have of a member of the table's object, or of the element of that key of one
	// that is a map: rows with one number have one value. It gives how many numbers there may be; 0: so many that it is of no use.
	Codes func(t Rows, key string, rows, out []int32) int
	// Part, where the member is a Leaf object, reads a field of that, or its element by a constant index, without making the whole;
	// by is "" for these, and else the member function that is called with that name alone. nil: it cannot. What it gives is a member of
	// the owner.
	Part func(by, name string) *Member
	// Has answers has(); nil: the member is there where Get gives anything but null.
	Has func(object any) bool
	// Reads is what a computed member reads, on the root that the owner is known by (Own). nil: only itself.
	Reads *Reads
	// Tells states that the client reports when time changes the member, so that reading the member does not read the time.
	Tells bool
	// Own is the root under which Reads names the owner.
	Own string
	// Ends are the paths among Reads that lead to the value of a computed member that has no owner: reading a part of that
	// value is reading on from there.
	Ends []Read
	// Hidden members cannot be written in a rule; functions name them in what they read.
	Hidden bool
}

// Object is a type of the language with declared members, never a map.
type Object struct {
	Name    string
	Doc     string
	Type    *cel.Type
	Members []*Member
	// Leaf objects are values (amounts): reading a part of one is reading it.
	Leaf bool
}

// Find gives the member of that name, or nil.
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
	// Doc says what is computed from the arguments.
	Doc       string
	Overloads []Overload
	// Names are those of the arguments that the author writes, in their order and without what a method is called on: for people.
	// nil where their types say enough.
	Names []string
	// Singleton serves all overloads of an operator.
	Singleton functions.BinaryOp
	// Root, where it is not "", is a root that every overload takes first, and that the author does not write:
	// what the function computes is still of its arguments alone.
	Root string
}

// Overload is one signature of a function.
type Overload struct {
	ID     string
	Member bool
	Args   []*cel.Type
	Result *cel.Type
	// Reads names what is read through each argument, as "{0}.labels"; "cluster.seed" for globals. Arguments alone: nothing but
	// them. nil, which says nothing, is for operators that the Singleton serves.
	Reads []string
	// Cost of one call, in CEL's units; 0 means 1.
	Cost uint64
	// Eval computes the result. nil for operators that the Singleton serves.
	Eval functions.FunctionOp
	// Two, where it is not nil, is Eval of two arguments, without a list of them.
	Two functions.BinaryOp
	// Ints says that it is another of the function's overloads with ints where that one has doubles.
	Ints bool
	// Native, where it is not nil, gives forms of the overload that need no boxes, for a call whose arguments are these
	// constants, nil for one that is none; nil: there are none for it.
	Native func(constants []ref.Val) *Native
	// Spread says that the last arguments are the elements of the list that the function's first overload takes last: a list that is
	// written out goes there, and is never made. Only for a function with a Root.
	Spread bool
}

// Arguments in Overload.Reads says that the arguments are read, whole, and nothing else.
const Arguments = "{}"

// Vocabulary is what a client adds to the dialect.
type Vocabulary struct {
	Objects   []*Object
	Functions []*Function
	// Roots are the names of all roots that scopes declare, if an Activation of the client's knows them by number (Roots).
	Roots []string
	// Row is the root that stands for the rows of a table in turn, where expressions are evaluated by column (Rows).
	Row string
}

// Language is the dialect with a client's vocabulary: immutable, safe to share.
type Language struct {
	base *cel.Env
	// decls are the functions of base. cel-go copies the map for each caller.
	decls     map[string]*decls.FunctionDecl
	objects   map[string]*Object
	functions map[string]*Function
	overloads map[string]*Overload
	vocab     Vocabulary
}

// NewLanguage assembles the dialect of Kubernetes' ValidatingAdmissionPolicy, in which int and
// double mix, plus the vocabulary. The errors it returns are mistakes of the vocabulary.
func NewLanguage(v Vocabulary) (*Language, error) {
	l := &Language{objects: map[string]*Object{}, functions: map[string]*Function{}, overloads: map[string]*Overload{}, vocab: v}
	for _, o := range v.Objects {
		l.objects[o.Name] = o
	}
	opts := []cel.EnvOption{
		cel.HomogeneousAggregateLiterals(),
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
		cel.EnableMacroCallTracking(), // so that parts can be written as the author wrote them
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

// merged adds the signatures that a vocabulary has for an operator to the redeclared operator.
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

// Objects and functions of the vocabulary, for the reference.
func (l *Language) Objects() []*Object { return l.vocab.Objects }

// Functions of the vocabulary, for the reference.
func (l *Language) Functions() []*Function { return l.vocab.Functions }

// Operators gives the operators that the dialect declares anew, with all their signatures, for the reference.
func (l *Language) Operators() []*Function {
	var out []*Function
	for _, name := range redeclared() {
		out = append(out, l.functions[name])
	}
	return out
}

// The operators that are declared anew, because CEL keeps int and double apart.
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

// macros writes the root of a function in front of its arguments, once for each number of them.
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

// spread gives the elements in place of a last argument that is a list written out, where an overload takes as many.
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

// Written gives the arguments of one of the function's overloads that the author writes.
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

// Scope is a language in which some roots (variables) and some further objects are known.
type Scope struct {
	lang    *Language
	env     *cel.Env
	roots   map[string]*cel.Type
	objects map[string]*Object // shadow the language's
	names   []string           // of roots, by their number
	numbers map[string]int
}

// Scope declares roots by name. Extra objects shadow those of the vocabulary with the same name
// (an object with attributes), or add some (params, variables).
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

// Row is the root that stands for the rows of a table in turn, "" for none.
func (s *Scope) Row() string { return s.lang.vocab.Row }

// Root is the type of a root, nil where it is not declared.
func (s *Scope) Root(name string) *cel.Type { return s.roots[name] }

// Roots are the names of the roots, by their number.
func (s *Scope) Roots() []string { return s.names }

// Number is that of a root.
func (s *Scope) Number(root string) (number int, ok bool) {
	number, ok = s.numbers[root]
	return number, ok
}

// Singleton says whether an operator has one function for all its overloads.
func (s *Scope) Singleton(name string) bool { return s.lang.functions[name].Singleton != nil }

func (s *Scope) object(name string) *Object {
	if o, ok := s.objects[name]; ok {
		return o
	}
	return s.lang.objects[name]
}

// ObjectOf gives the declared object behind a CEL type, or nil.
func (s *Scope) ObjectOf(t *cel.Type) *Object {
	if t == nil || t.Kind() != types.StructKind && t.Kind() != types.OpaqueKind {
		return nil
	}
	return s.object(t.TypeName())
}

// elementOf gives the declared object that a value is, or that a list or an optional of it holds; nil where it is a value
// without members of its own.
func (s *Scope) elementOf(t *cel.Type) *Object {
	for t != nil && (t.Kind() == types.ListKind || t.TypeName() == "optional_type") && len(t.Parameters()) > 0 {
		t = t.Parameters()[0]
	}
	if o := s.ObjectOf(t); o != nil && !o.Leaf {
		return o
	}
	return nil
}

// provider answers the type checker and the planner from the declared objects.
type provider struct {
	*types.Registry
	scope *Scope
	// missing, where it is set, is told of fields that an object does not have.
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

// operatorFunctions redeclares arithmetic so that int and double mix, and equality so that they compare;
// the vocabulary adds signatures by a Function with the operator's name and no Singleton.
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

// equality lists one signature a type, because a signature over any two equal types would
// hide the mixed ones from the checker. The evaluator compares values of itself. Null has no signature: as it can
// stand for any object or time, each two of those would match it.
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
