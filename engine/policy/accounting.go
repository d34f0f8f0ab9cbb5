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

// Accounting is an accounting function: an algorithm over many objects that does not fit in an expression, written in an attribute in
// place of one. Each stands in a file of its own, and in accountingFunctions.
type Accounting struct {
	Name string
	// Doc says what it computes.
	Doc  string
	Args []AccountingArgument
	// On is what an attribute with it may be on; where it is empty, check says so.
	On []string
	// Settles says when a value settles where the author does not; "" is with every step.
	Settles string
	// AllAtOnce says that what settles is found for all owners at once, and is kept as it was first found.
	AllAtOnce bool
	// OfMembers says that a value moves with nothing but what the arguments read of the members of its owner.
	OfMembers bool
	// Held says for how long a value holds that settles with every step, as `policy facts` has it; "": until what it reads changes.
	Held string
	// fields names the computed fields that an attribute gives, where that is not one of the attribute's name.
	fields func(a *rules.Attribute) []string
	// check reports what is wrong with an attribute before its arguments are compiled; false: something is.
	check func(s *TableScope, a *rules.Attribute) bool
	// Compile fills in what an attribute computes: the account's fields, and what a session keeps for them. The arguments are compiled
	// already. false: there was a mistake.
	Compile func(s *TableScope, a *rules.Attribute, x *Account) bool
}

// AccountingArgument is an argument of an accounting function.
type AccountingArgument struct {
	Name string
	Doc  string
	// Optional says that it may be left out.
	Optional bool
	// Map says that it is a mapping from names to expressions, each of which is an argument by "argument.name".
	Map bool
	// Sees is the root that the expression is asked of, beside those that every row sees: "" is none, and member the word
	// that the argument over gives.
	Sees string
	// Want is what the expression gives. An argument without is a word, which compile reads.
	Want rules.Kind
}

const (
	overArgument = "over"
	member       = "member"
)

// AccountingFunctions lists them all.
func AccountingFunctions() []*Accounting {
	return []*Accounting{sumFunction(), waterFillFunction(), typicalTasksFunction(), quotaTreeFunction(), hdrfFunction(), answerFunction()}
}

// shape is what a table may hold of it.
func (fn *Accounting) shape() rules.AttributeFunction {
	out := rules.AttributeFunction{Name: fn.Name, Doc: fn.Doc}
	for _, arg := range fn.Args {
		out.Args = append(out.Args, rules.Argument{Name: arg.Name, Optional: arg.Optional, Map: arg.Map, Doc: arg.Doc})
	}
	return out
}

// Account is a compiled attribute with an accounting function.
type Account struct {
	// Args are the compiled arguments by name, and those of a mapping by "argument.name".
	Args     map[string]*eval.Expr
	Function *Accounting
	Fields   []accountField
	// Timed states that the account reads the time, and reports when time alone changes it.
	Timed bool
	slot  int // the index of its state in Accounts.states
	Keep  func(s *Accounts) Kept
}

// accountField is a computed field that an account gives.
type accountField struct {
	*Attribute
	doc   string
	reads *rules.Reads
	then  func(m *rules.Member) // told what the field is read by; nil: nobody
}

// Kept is what a session keeps of an Account.
type Kept interface {
	// Update brings it up to date with the cluster.
	Update()
	// Value is that of one of the fields, for an owner.
	Value(x *Attribute, owner ref.Val) ref.Val
	// Erring says that something of it errs: each cycle is told of it.
	Erring() bool
}

// account compiles an attribute with an accounting function, and makes its fields visible.
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

// compileAccount compiles the arguments, then the rest; nil: there was a mistake.
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

// arguments compiles those that are written; false: there is a mistake, or one is missing, which is reported where.
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

// roots are what an argument's expression sees beside what every row sees.
func (arg *AccountingArgument) roots(a *rules.Attribute) []string {
	switch arg.Sees {
	case "":
		return nil
	case member:
		return []string{a.Args[overArgument].Value}
	}
	return []string{arg.Sees}
}

// OneField is the attribute's own computed field, which reads all that the arguments read, of each of these members of an owner.
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

// members turns what is read of each member into what is read through its owner.
func members(reads, of *rules.Reads, member, owner string) {
	for _, r := range of.All {
		if r.Root == member {
			list := &rules.Member{Name: member + "s", Origin: memberOrigin(owner), Changes: rules.ByObject}
			r.Root, r.Steps = owner, append([]rules.Step{{Member: list, Each: true}}, r.Steps...)
		}
		reads.Add(&rules.Reads{All: []rules.Read{r}})
	}
}

// amountArgument is an argument that gives Resources, and where these are put.
type amountArgument struct {
	name string
	into *model.Resources
}

// amountsInto evaluates arguments into the memory of earlier ones; one that is left out gives none. An error is a *types.Err.
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

// Accounts are what a session keeps of its policy's accounts.
type Accounts struct {
	*language.World
	c       *model.Cluster
	Ask     Evaluator
	states  []Kept // by Account.slot
	rebuilt uint64 // how often one of them was made anew
	filled  uint64 // how often a queue was found to get something else
}

// Evaluator is what accounts need of who evaluates a policy.
type Evaluator interface {
	Frame() *language.Frame // lends one; it is given back with Done
	Done()
	FaultOf(x *Attribute, f *language.Frame, err ref.Val)
	Errors() uint64
	Until(moment time.Time) // notes that time alone may change a value from this moment on
	StampOf(byAction bool) language.Stamp
}

// NewAccounts begins with nothing kept.
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

// Of is what is kept of an account, as it was when it was last brought up to date.
func (s *Accounts) Of(x *Account) Kept {
	if s.states[x.slot] == nil {
		s.states[x.slot] = x.Keep(s)
	}
	return s.states[x.slot]
}
