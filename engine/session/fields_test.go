package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	celtypes "github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// isOf reports an error if a value is not of the type that its member declares. null represents a missing value.
func isOf(t *cel.Type, v ref.Val) error {
	if v == celtypes.NullValue {
		if k := t.Kind(); k != celtypes.TimestampKind && k != celtypes.StructKind {
			return fmt.Errorf("null, where a %s cannot be", t)
		}
		return nil
	}
	if celtypes.IsError(v) {
		return fmt.Errorf("the error %v", v)
	}
	if got := v.Type().TypeName(); got != t.TypeName() {
		return fmt.Errorf("a %s", got)
	}
	switch t.Kind() {
	case celtypes.ListKind:
		for it := v.(traits.Lister).Iterator(); it.HasNext() == celtypes.True; {
			if err := isOf(t.Parameters()[0], it.Next()); err != nil {
				return fmt.Errorf("an element that is %w", err)
			}
		}
	case celtypes.MapKind:
		m := v.(traits.Mapper)
		for it := m.Iterator(); it.HasNext() == celtypes.True; {
			k := it.Next()
			if err := isOf(t.Parameters()[0], k); err != nil {
				return fmt.Errorf("a key that is %w", err)
			}
			if err := isOf(t.Parameters()[1], m.Get(k)); err != nil {
				return fmt.Errorf("a value that is %w", err)
			}
		}
	default: // has no elements
	}
	return nil
}

// TestEveryMember checks that a rule can read every declared member, and that the value has the declared type.
func TestEveryMember(t *testing.T) {
	scope, frame := everyRoot(t)
	reads := allMembers()
	at := 0
	for _, o := range language.Objects() {
		if o.Doc == "" || o.Type.TypeName() != o.Name {
			t.Errorf("object %s: doc %q, type %s", o.Name, o.Doc, o.Type)
		}
		seen := map[string]bool{}
		for _, m := range o.Members {
			if seen[m.Name] {
				t.Errorf("%s.%s is declared twice", o.Name, m.Name)
			}
			seen[m.Name] = true
			if m.Doc == "" || strings.HasSuffix(m.Doc, ".") {
				t.Errorf("%s.%s: doc %q, want a phrase without a full stop", o.Name, m.Name, m.Doc)
			}
			if m.Hidden {
				continue
			}
			expression := reads[at]
			at++
			e, issues := eval.Compile(scope, source.NewText(expression), rules.Anything())
			if issues.Err() != nil {
				t.Errorf("%s does not compile: %v", expression, issues)
				continue
			}
			if err := isOf(m.Type, e.Eval(frame)); err != nil {
				t.Errorf("%s gives %v, declared is %s", expression, err, m.Type)
			}
		}
	}
}

// TestMembersOfNull checks that reading a member of null is an error that names the field.
func TestMembersOfNull(t *testing.T) {
	for _, o := range language.Objects() {
		for _, m := range o.Members {
			v := m.Get(celtypes.NullValue.Value())
			if !celtypes.IsError(v) || !strings.Contains(fmt.Sprint(v), m.Name) {
				t.Errorf("%s.%s of null gives %v, want an error that names the field", o.Name, m.Name, v)
			}
		}
	}
}

// TestEveryFunction checks that every function accepts a value of each of its types, and returns the declared type.
func TestEveryFunction(t *testing.T) {
	scope, frame := everyRoot(t)
	ids := map[string]bool{}
	for _, f := range language.Functions() {
		for i := range f.Overloads {
			o := &f.Overloads[i]
			if ids[o.ID] {
				t.Errorf("overload %s is declared twice", o.ID)
			}
			ids[o.ID] = true
			call := sampleCall(f, o)
			e, issues := eval.Compile(scope, source.NewText(call), rules.Anything())
			if issues.Err() != nil {
				t.Errorf("%s does not compile: %v", call, issues)
				continue
			}
			v := e.Eval(frame)
			if e.Type.Kind() == celtypes.OpaqueKind && v.Type() == celtypes.OptionalType {
				continue
			}
			if err := isOf(o.Result, v); err != nil {
				t.Errorf("%s gives %v, declared is %s", call, err, o.Result)
			}
		}
	}
}

// TestDeclaredReads checks that what a function declares to read exists.
func TestDeclaredReads(t *testing.T) {
	all := map[string]*rules.Object{}
	for _, o := range language.Objects() {
		all[o.Name] = o
	}
	for _, f := range policy.Vocabulary().Functions {
		for i := range f.Overloads {
			o := &f.Overloads[i]
			if slices.Equal(o.Reads, []string{rules.Arguments}) {
				continue
			}
			for _, read := range o.Reads {
				var at int
				path := strings.Split(read, ".")
				if n, err := fmt.Sscanf(path[0], "{%d}", &at); n != 1 || err != nil || at >= len(o.Args) {
					t.Errorf("%s reads %s: no such argument", o.ID, read)
					continue
				}
				owner := all[o.Args[at].TypeName()]
				for _, name := range path[1:] {
					if owner == nil || owner.Find(name) == nil {
						t.Errorf("%s reads %s, which is not there", o.ID, read)
						break
					}
					m := owner.Find(name).Type
					if m.Kind() == celtypes.ListKind {
						m = m.Parameters()[0]
					}
					owner = all[m.TypeName()]
				}
			}
		}
	}
}

// TestFunctionsOfNull checks that a function returns an error for null, or for a value of another type.
func TestFunctionsOfNull(t *testing.T) {
	for _, f := range language.Functions() {
		for i := range f.Overloads {
			o := &f.Overloads[i]
			if o.Eval == nil || len(o.Args) == 0 {
				continue
			}
			args := make([]ref.Val, len(o.Args))
			for k := range args {
				args[k] = celtypes.NullValue
			}
			if v := o.Eval(args...); !celtypes.IsError(v) {
				t.Errorf("%s of nulls gives %v", o.ID, v)
			}
			for k := range args {
				args[k] = celtypes.String("of another type")
			}
			if v := o.Eval(args...); !celtypes.IsError(v) && (len(args) > 1 || o.Args[0] != cel.StringType) {
				t.Errorf("%s of strings gives %v", o.ID, v)
			}
		}
	}
}

// TestRootsAndSites checks that the roots of each site exist, and that each root is used by some site.
func TestRootsAndSites(t *testing.T) {
	used := map[string]bool{}
	names := map[string]bool{}
	for _, s := range policy.Sites() {
		if names[s.Name] || s.Doc == "" || !slices.Contains([]string{"deny", "skip"}, s.OnError) {
			t.Errorf("site %s: doc %q, onError %q, named twice: %t", s.Name, s.Doc, s.OnError, names[s.Name])
		}
		names[s.Name] = true
		for _, r := range s.Roots {
			used[r] = true
			if policy.RootTypes()[r] == nil {
				t.Errorf("site %s sees %s, which is no root", s.Name, r)
			}
		}
	}
	for _, r := range policy.Roots() {
		if !r.Everywhere && !used[r.Name] {
			t.Errorf("no site sees root %s", r.Name)
		}
		if r.Doc == "" || r.Type == nil {
			t.Errorf("root %s: doc %q, type %v", r.Name, r.Doc, r.Type)
		}
	}
}
