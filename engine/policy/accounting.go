package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Accounting is an accounting function: an algorithm over many objects that does not fit in an expression. An attribute names it instead of
// an expression. Each accounting function has its own file, and is listed in AccountingFunctions.
type Accounting struct {
	Name string
	// Doc describes what it computes.
	Doc  string
	Args []AccountingArgument
	// On lists the owners that an attribute with this function may have. If it is empty, check reports invalid owners.
	On []string
	// Settles is the default of the attribute's key settle; "": the value settles with every step.
	Settles string
	// AllAtOnce means that a value that settles is computed for all owners at once, and kept as it was first computed.
	AllAtOnce bool
	// OfMembers means that a value changes only with what the arguments read of the owner's members.
	OfMembers bool
	// Held is how long a value is valid that settles with every step, as text for `policy facts`; "": until its inputs change.
	Held string
	// fields returns the names of the computed fields of an attribute; nil: the only field has the attribute's name.
	fields func(a *rules.Attribute) []string
	// check reports mistakes of an attribute before its arguments are compiled; false: there is a mistake.
	check func(s *TableScope, a *rules.Attribute) bool
	// Compile sets what an attribute computes: the account's fields, and the data that a session keeps for them. The arguments are already
	// compiled. It returns false if there was a mistake.
	Compile func(s *TableScope, a *rules.Attribute, x *Account) bool
}

// AccountingArgument is an argument of an accounting function.
type AccountingArgument struct {
	Name string
	Doc  string
	// Optional means that the argument may be missing.
	Optional bool
	// Map means that the argument maps names to expressions. Each expression is an argument with the name "argument.name".
	Map bool
	// Sees is the root that the expression sees in addition to those that every row sees; "": none; member: the word in the argument over.
	Sees string
	// Want is the type of the expression. An argument without a type is a word, which Compile reads.
	Want rules.Kind
}

const (
	overArgument = "over"
	member       = "member"
)

// AccountingFunctions returns all accounting functions.
func AccountingFunctions() []*Accounting {
	return []*Accounting{sumFunction(), waterFillFunction(), typicalTasksFunction(), quotaTreeFunction(), hdrfFunction(), answerFunction()}
}

// shape returns the keys that a table may contain for the function.
func (fn *Accounting) shape() rules.AttributeFunction {
	out := rules.AttributeFunction{Name: fn.Name, Doc: fn.Doc}
	for _, arg := range fn.Args {
		out.Args = append(out.Args, rules.Argument{Name: arg.Name, Optional: arg.Optional, Map: arg.Map, Doc: arg.Doc})
	}
	return out
}

// Account is a compiled attribute with an accounting function.
type Account struct {
	// Args contains the compiled arguments by name; those of a mapping by "argument.name".
	Args     map[string]*eval.Expr
	Function *Accounting
	Fields   []accountField
	// Timed states that the account reads the time, and reports when time alone changes it.
	Timed bool
	slot  int // the index of its state in Accounts.states
	Keep  func(s *Accounts) Kept
}

// accountField is a computed field that an account computes.
type accountField struct {
	*Attribute
	doc   string
	reads *rules.Reads
	then  func(m *rules.Member) // called with the member that reads the field; nil: not called
}

// Kept is the data that a session keeps for an Account.
type Kept interface {
	// Update brings the data up to date with the cluster.
	Update()
	// Value returns the value of one field for an owner.
	Value(x *Attribute, owner ref.Val) ref.Val
	// Erring reports whether a part of the data is an error. Each cycle reports such an error.
	Erring() bool
}

// account compiles an attribute with an accounting function, and makes its fields visible to rows.
func (s *TableScope) account(fn *Accounting, a *rules.Attribute) {
	typeName, names := objectName(a.On), []string{a.Name}
	if fn.fields != nil {
		names = fn.fields(a)
	}
	failed := func(name string) { s.failed[typeName+"."+name] = true }
	x := s.compileAccount(fn, a)
	if x == nil {
		for _, name := range names {
			failed(name)
		}
		return
	}
	x.slot = len(s.p.Accounts)
	s.p.Accounts = append(s.p.Accounts, x)
	for _, f := range x.Fields {
		if m := s.publish(f.Attribute, a, f.doc, f.reads); m != nil && f.then != nil {
			f.then(m)
		}
	}
}

// compileAccount compiles the arguments and then the rest; nil: there was a mistake.
func (s *TableScope) compileAccount(fn *Accounting, a *rules.Attribute) *Account {
	if len(fn.On) > 0 && !slices.Contains(fn.On, a.On) {
		words := map[string]string{"cluster": "the cluster", "queue": "queues"}
		s.report(a.At.Issuef("write on: "+fn.On[0], "%s is on %s, not on %s", fn.Name, words[fn.On[0]], a.On))
		return nil
	}
	when, ok := s.guardOf(a)
	x := &Account{Args: map[string]*eval.Expr{}, Function: fn}
	if fn.check != nil && !fn.check(s, a) || !s.arguments(x, a) || !ok || !fn.Compile(s, a, x) {
		return nil
	}
	for _, f := range x.Fields {
		f.When, f.Account = when, x
		if when != nil {
			f.reads.Add(when.Reads)
		}
	}
	return x
}

// arguments compiles the arguments that are set. It returns false if there is a mistake or if a required one is missing, which is reported
// elsewhere.
func (s *TableScope) arguments(x *Account, a *rules.Attribute) bool {
	whole := true
	for _, arg := range x.Function.Args {
		if arg.Want.Accepts == nil {
			continue
		}
		names := []string{arg.Name}
		if arg.Map {
			names = slices.DeleteFunc(sortedKeys(a.Args), func(name string) bool { return !strings.HasPrefix(name, arg.Name+".") })
		}
		for _, name := range names {
			text := a.Args[name]
			if arg.Optional && !arg.Map && text.Value == "" {
				continue
			}
			e := s.compile(text, arg.roots(a), arg.Want)
			if whole = whole && e != nil; e != nil {
				x.Args[name] = e
			}
		}
	}
	return whole
}

// roots returns the roots that an argument's expression sees, in addition to those that every row sees.
func (arg *AccountingArgument) roots(a *rules.Attribute) []string {
	switch arg.Sees {
	case "":
		return nil
	case member:
		return []string{a.Args[overArgument].Value}
	}
	return []string{arg.Sees}
}

// OneField returns the attribute's own computed field. It reads everything that the arguments read, of each member of the owner.
func (s *TableScope) OneField(x *Account, a *rules.Attribute, owner string) *Attribute {
	f := s.field(a, a.Name)
	f.Args = x.Args
	if f.Settle == "" {
		f.Settle = x.Function.Settles
	}
	reads := &rules.Reads{}
	for _, arg := range x.Function.Args {
		e := x.Args[arg.Name]
		if e == nil {
			continue
		}
		sees := ""
		if roots := arg.roots(a); roots != nil {
			sees = roots[0]
		}
		members(reads, e.Reads, sees, owner)
	}
	x.Fields = []accountField{{Attribute: f, doc: a.Description, reads: reads}}
	return f
}

// members converts the reads of each member to reads through its owner.
func members(reads, of *rules.Reads, member, owner string) {
	for _, r := range of.All {
		if r.Root == member {
			list := &rules.Member{Name: member + "s", Origin: memberOrigin(owner), Changes: rules.ByObject}
			r.Root, r.Steps = owner, append([]rules.Step{{Member: list, Each: true}}, r.Steps...)
		}
		reads.Add(&rules.Reads{All: []rules.Read{r}})
	}
}

// amountArgument is an argument with Resources as its value, and the place to store it.
type amountArgument struct {
	name string
	into *model.Resources
}

// amountsInto evaluates arguments into existing memory. A missing argument has no amounts. An error is a *types.Err.
func amountsInto(args map[string]*eval.Expr, f *language.Frame, list []amountArgument) ref.Val {
	for _, arg := range list {
		*arg.into = (*arg.into)[:0]
		e := args[arg.name]
		if e == nil {
			continue
		}
		v := e.Eval(f)
		a, ok := v.(*language.Amounts)
		if !ok {
			return v
		}
		*arg.into = append(*arg.into, a.Resources...)
	}
	return nil
}

// Accounts contains the data that a session keeps for its policy's accounts.
type Accounts struct {
	*language.World
	c       *model.Cluster
	Ask     Evaluator
	states  []Kept // the kept data, by Account.slot
	rebuilt uint64 // how often the data of an account was rebuilt
	filled  uint64 // how often a queue's value changed
}

// Evaluator is the part of a policy's evaluation that accounts need.
type Evaluator interface {
	Frame() *language.Frame // borrows a frame; Done returns it
	Done()
	FaultOf(x *Attribute, f *language.Frame, err ref.Val)
	Errors() uint64
	Until(moment time.Time) // records that time alone may change a value at this moment
	StampOf(byAction bool) language.Stamp
}

// NewAccounts returns Accounts without any data.
func NewAccounts(w *language.World, p *Policy, ask Evaluator) *Accounts {
	return &Accounts{World: w, c: w.Cluster(), Ask: ask, states: make([]Kept, len(p.Accounts))}
}

// PassTime updates the accounts that follow the time, notes when time changes them next, and returns how often time has changed one.
func (s *Accounts) PassTime() (changes uint64) {
	for _, kept := range s.states {
		if sum, ok := kept.(*sumState); ok && sum.timed.on {
			sum.Update()
			sum.tellNext()
			changes += uint64(sum.timed.passed)
		}
	}
	return changes
}

// Of returns the data of an account as of its last update.
func (s *Accounts) Of(x *Account) Kept {
	if s.states[x.slot] == nil {
		s.states[x.slot] = x.Keep(s)
	}
	return s.states[x.slot]
}
