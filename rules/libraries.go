package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"
)

// Library is a part of the dialect that CEL or Kubernetes provides.
type Library struct {
	Name string
	// Doc describes the purpose of the library.
	Doc string
	// Kubernetes is true for libraries that Kubernetes adds to CEL.
	Kubernetes bool

	options func() []cel.EnvOption
}

// Libraries lists the libraries of every Language.
func Libraries() []Library {
	one := func(o func() cel.EnvOption) func() []cel.EnvOption {
		return func() []cel.EnvOption { return []cel.EnvOption{o()} }
	}
	return []Library{
		{"standard", "CEL's own operators, macros and functions; what Celsius declares anew is left out.", false, func() []cel.EnvOption {
			return []cel.EnvOption{cel.StdLib(cel.StdLibSubset(stdlibSubset()))}
		}},
		{"optionals", "Values that may be missing: `labels[?\"zone\"].orValue(\"\")`.", false, func() []cel.EnvOption {
			return []cel.EnvOption{cel.OptionalTypes()}
		}},
		{"strings", "Taking strings apart and putting them together.", false, one(func() cel.EnvOption {
			return ext.Strings(ext.StringsVersion(2), ext.StringsMaxPrecision(mostPrecision))
		})},
		{"sets", "Lists seen as sets.", false, one(func() cel.EnvOption { return ext.Sets() })},
		{"lists", "Sorting, cutting and joining lists.", false, one(func() cel.EnvOption { return ext.Lists(ext.ListsVersion(3)) })},
		{"math", "Rounding, roots, bits, the least and the greatest.", false, one(func() cel.EnvOption { return ext.Math() })},
		{
			"two-variable comprehensions", "Loops that also see the index, or a map's key and value.", false,
			one(func() cel.EnvOption { return ext.TwoVarComprehensions() }),
		},
		{"Kubernetes lists", "Sums and extremes of lists, and places in them.", true, one(library.Lists)},
		{"regex", "Finding what a regular expression matches.", true, one(library.Regex)},
		{"quantity", "Kubernetes quantities such as `quantity(\"1.5Gi\")`.", true, quantities},
		{"URL", "Parts of a URL.", true, one(library.URLs)},
		{"IP", "IP addresses.", true, one(library.IP)},
		{"CIDR", "Networks.", true, one(library.CIDR)},
		{"format", "Checks of well-known formats; `validate` gives the mistakes, if any.", true, one(library.Format)},
		{"semver", "Versions, as of software on a node.", true, one(func() cel.EnvOption { return library.SemverLib(library.SemverVersion(1)) })},
	}
}

// Names lists the library's functions and macros as an author writes them, sorted. Examples are "size()", and ".sum()" for a method.
// Operators are omitted.
func (l Library) Names() ([]string, error) {
	env, err := cel.NewCustomEnv(l.options()...)
	if err != nil {
		return nil, fmt.Errorf("library %s: %w", l.Name, err)
	}
	var out []string
	add := func(name string, member bool) {
		if strings.ContainsAny(name, "@_?!") && !strings.HasPrefix(name, "exists_") || name == "in" {
			return
		}
		if member {
			name = "." + name
		}
		out = append(out, name+"()")
	}
	for name, f := range env.Functions() {
		for _, o := range f.OverloadDecls() {
			add(name, o.IsMemberFunction())
		}
	}
	for _, m := range env.Macros() {
		if slices.Contains([]string{"least", "greatest"}, m.Function()) {
			add("math."+m.Function(), false)
			continue
		}
		add(m.Function(), m.IsReceiverStyle())
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
