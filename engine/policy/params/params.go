// Package params reads the values that a policy sets for a table's params, and checks their types and bounds.
package params

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Types returns the names of the types that a table's params may have.
func Types() []string {
	return []string{"bool", "int", "double", "string", "duration", "list(string)", "map(string,double)", "map(string,string)"}
}

// Type returns the CEL type of a param; nil: its type name is unknown.
func Type(p *rules.Param) *cel.Type {
	str := cel.StringType
	t := map[string]*cel.Type{
		"bool": cel.BoolType, "int": cel.IntType, "double": cel.DoubleType, "string": str, "duration": cel.DurationType,
		"list(string)": cel.ListType(str), "map(string,double)": cel.MapType(str, cel.DoubleType), "map(string,string)": cel.MapType(str, str),
	}[p.Type]
	if t != nil && p.Optional {
		return cel.OptionalType(t)
	}
	return t
}

// Value reads the value that a policy set, or the default, and checks it. Mistakes are added to issues.
func Value(p *rules.Param, set source.Value, issues *source.Issues) ref.Val {
	v := set
	if !v.Exists() {
		v = p.Default
	}
	if !v.Exists() {
		return types.OptionalNone
	}
	before := len(*issues)
	out := convert(p, v, issues)
	if len(*issues) == before {
		checkBounds(p, v, out, issues)
	}
	if p.Optional && out != nil {
		return types.OptionalOf(out)
	}
	return out
}

func convert(p *rules.Param, v source.Value, issues *source.Issues) ref.Val {
	switch p.Type {
	case "bool":
		return types.Bool(v.Bool(issues))
	case "int":
		return types.Int(v.Int(issues))
	case "double":
		return types.Double(v.Float(issues))
	case "string":
		return types.String(v.String(issues))
	case "duration":
		return types.Duration{Duration: v.Duration(issues)}
	case "list(string)":
		return language.StringList(v.Strings(issues))
	case "map(string,double)":
		m := map[ref.Val]ref.Val{}
		for _, f := range v.Fields(nil, issues) {
			m[types.String(f.Name)] = types.Double(f.Value.Float(issues))
		}
		return types.NewRefValMap(types.DefaultTypeAdapter, m)
	case "map(string,string)":
		m := map[string]string{}
		for _, f := range v.Fields(nil, issues) {
			m[f.Name] = f.Value.String(issues)
		}
		return language.StringMap(m)
	}
	return nil
}

// checkBounds checks a value, and each value in a list or a map, against the param's bounds.
func checkBounds(p *rules.Param, at source.Value, v ref.Val, issues *source.Issues) {
	var ignored source.Issues // mistakes of form were already reported
	switch x := v.(type) {
	case traits.Mapper:
		for _, f := range at.Fields(nil, &ignored) {
			if of, ok := x.Find(types.String(f.Name)); ok {
				checkBound(p, f.Value, of, issues)
			}
		}
	case traits.Lister:
		for i, item := range at.Items(&ignored) {
			checkBound(p, item, x.Get(types.Int(i)), issues)
		}
	default:
		checkBound(p, at, v, issues)
	}
}

func checkBound(p *rules.Param, at source.Value, v ref.Val, issues *source.Issues) {
	report := func(format string, args ...any) {
		*issues = append(*issues, at.Issuef(boundsText(p, issues), format, args...))
	}
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, language.Text(v)) {
		report("param %q cannot be %q", p.Name, language.Text(v))
	}
	if d, ok := v.(types.Duration); ok {
		if p.Min.Exists() && d.Duration < p.Min.Duration(issues) || p.Max.Exists() && d.Duration > p.Max.Duration(issues) {
			report("param %q is out of bounds: %s", p.Name, d.Duration)
		}
	}
	if x, ok := language.Number(v); ok {
		if p.Min.Exists() && x < p.Min.Float(issues) || p.Max.Exists() && x > p.Max.Float(issues) {
			report("param %q is out of bounds: %s", p.Name, language.Text(v))
		}
	}
}

func boundsText(p *rules.Param, issues *source.Issues) string {
	bound := func(v source.Value) string {
		if p.Type == "duration" {
			return v.Duration(issues).Round(time.Millisecond).String()
		}
		return fmt.Sprint(v.Any())
	}
	var parts []string
	if len(p.Enum) > 0 {
		parts = append(parts, "one of "+strings.Join(p.Enum, ", "))
	}
	if p.Min.Exists() {
		parts = append(parts, "at least "+bound(p.Min))
	}
	if p.Max.Exists() {
		parts = append(parts, "at most "+bound(p.Max))
	}
	return strings.Join(parts, ", ")
}
