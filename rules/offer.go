package rules

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
)

// With returns a scope with more roots.
func (s *Scope) With(more map[string]*cel.Type) (*Scope, error) {
	roots := maps.Clone(s.roots)
	maps.Copy(roots, more)
	return s.lang.Scope(roots, slices.Collect(maps.Values(s.objects))...)
}

// TypeOf returns the type of an expression, or nil if the expression has a mistake.
func (s *Scope) TypeOf(text string) *cel.Type {
	checked, issues := s.env.Compile(text)
	if issues.Err() != nil {
		return nil
	}
	return checked.OutputType()
}

// Fields lists the members of a type that an author can write. It returns none if the type has no declared members.
func (s *Scope) Fields(t *cel.Type) []*Member {
	o := s.ObjectOf(t)
	if o == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(o.Members), func(m *Member) bool { return m.Hidden })
}

// Call is a function or a macro as an author calls it.
type Call struct {
	Name string
	// Doc describes what the call computes; "" means that no description exists.
	Doc string
	// Signatures are its forms. A macro has one signature, with its arguments.
	Signatures []string
	Macro      bool
	// Overloads are the overloads of the vocabulary, with what they read and cost.
	Overloads []Overload
}

// Calls lists the functions and macros that can be called on a value of a type. If on is nil, it lists those that are called without a
// receiver. The list is sorted by name.
func (s *Scope) Calls(on *cel.Type) []Call {
	out := map[string]Call{}
	for name, f := range s.env.Functions() {
		if c := s.call(name, f.Description(), on); len(c.Signatures) > 0 {
			out[name] = c
		}
	}
	for _, m := range s.env.Macros() {
		c := macroCall(m)
		if own := s.lang.functions[c.Name]; own != nil && own.Root != "" || !macroOf(m, on) {
			continue
		}
		out[c.Name] = c
	}
	var sorted []Call
	for _, name := range slices.Sorted(maps.Keys(out)) {
		sorted = append(sorted, out[name])
	}
	return sorted
}

// CallNamed finds a function or macro by name, with all its forms, for any receiver.
func (s *Scope) CallNamed(name string) (Call, bool) {
	if f := s.env.Functions()[name]; f != nil && isWritten(name) {
		c := Call{Name: name, Doc: f.Description()}
		if own := s.lang.functions[name]; own != nil {
			c.Overloads = own.Overloads
		}
		for _, o := range f.OverloadDecls() {
			c.Signatures = append(c.Signatures, s.signature(name, o.ID(), o.IsMemberFunction(), o.ArgTypes(), o.ResultType()))
		}
		return c, true
	}
	for _, m := range s.env.Macros() {
		if c := macroCall(m); c.Name == name {
			return c, true
		}
	}
	return Call{}, false
}

// call returns a function with the forms that can be called on a type.
func (s *Scope) call(name, doc string, on *cel.Type) Call {
	c := Call{Name: name, Doc: doc}
	if !isWritten(name) {
		return c
	}
	for _, o := range s.env.Functions()[name].OverloadDecls() {
		args := o.ArgTypes()
		if o.IsMemberFunction() != (on != nil) || on != nil && (len(args) == 0 || !fits(args[0], on)) {
			continue
		}
		c.Signatures = append(c.Signatures, s.signature(name, o.ID(), o.IsMemberFunction(), args, o.ResultType()))
	}
	return c
}

// signature formats a signature without the argument that the author does not write.
func (s *Scope) signature(name, id string, member bool, args []*cel.Type, result *cel.Type) string {
	o := &Overload{ID: id, Member: member, Args: args, Result: result}
	if f := s.lang.functions[name]; f != nil && f.Root != "" && len(args) > 0 {
		o.Args = args[1:]
	}
	return o.Signature(name)
}

// isWritten reports whether an author calls the function by its name. Operators and helpers of macros are not called by name.
func isWritten(name string) bool {
	return !strings.ContainsAny(name, "@!?") && !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, "-") && name != "in" &&
		name != "optional_type" && !strings.HasPrefix(name, "math.@")
}

func macroCall(m cel.Macro) Call {
	c := Call{Name: m.Function(), Macro: true}
	if c.Name == "least" || c.Name == "greatest" {
		c.Name = "math." + c.Name
	}
	var example string
	if d, ok := m.(common.Documentor); ok && d.Documentation() != nil {
		c.Doc = d.Documentation().Description
		for _, child := range d.Documentation().Children {
			for line := range strings.Lines(child.Description) {
				if line = strings.TrimSpace(line); example == "" && !strings.HasPrefix(line, "//") {
					example = line
				}
			}
		}
	}
	if example == "" {
		example = c.Name + "(…)"
		if m.IsReceiverStyle() && !strings.HasPrefix(c.Name, "math.") {
			example = "." + example
		}
	}
	c.Signatures = []string{example}
	return c
}

// macroOf reports whether a macro can be called on a type, or without a receiver if on is nil. Macros on a value work on lists and maps,
// except the macros of optionals.
func macroOf(m cel.Macro, on *cel.Type) bool {
	name := m.Function()
	byItself := !m.IsReceiverStyle() || name == "least" || name == "greatest"
	switch {
	case on == nil || byItself:
		return on == nil && byItself
	case strings.HasPrefix(name, "opt"):
		return on.TypeName() == "optional_type"
	}
	return on.Kind() == types.ListKind || on.Kind() == types.MapKind
}

// fits reports whether a value of type got is acceptable for the type want.
func fits(want, got *cel.Type) bool {
	if want.Kind() == types.TypeParamKind || want.Kind() == types.DynKind || want.Kind() == types.AnyKind {
		return true
	}
	if want.Kind() != got.Kind() || want.TypeName() != got.TypeName() || len(want.Parameters()) != len(got.Parameters()) {
		return false
	}
	for i, p := range want.Parameters() {
		if !fits(p, got.Parameters()[i]) {
			return false
		}
	}
	return true
}
