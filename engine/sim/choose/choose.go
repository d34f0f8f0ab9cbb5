// Package choose selects the policy of a world of files, if the files contain several.
package choose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/join"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Chosen is the policy of a world.
type Chosen struct {
	Policy *policy.Policy
	// From states where the policy is written: "from FILE", or "built in".
	From string
}

// Text returns the first line of a report.
func (c *Chosen) Text() string { return fmt.Sprintf("policy %s (%s)\n\n", c.Policy.Name, c.From) }

// Policy compiles the policy of a world of files. The user may select it with named. Otherwise it is the only policy in the files for all
// queues. If there is none, it is the default policy. Shadows are chosen only if there is no other policy. Active policies for their own
// queues are joined with it, ordered by name, as in a cluster. The issues are those of all compiled policies; with a mistake, no policy is
// chosen. A policy with mistakes that was read from a cluster is left out with warnings, unless it is named. The scheduler of the cluster
// does the same. The error means that there are several policies to choose from.
func Policy(files []manifest.Uncompiled, named *manifest.Uncompiled) (Chosen, source.Issues, error) {
	var none Chosen
	var issues source.Issues
	if named == nil {
		all := sound(whole(files, false), &issues)
		if len(all) == 0 {
			all = sound(whole(files, true), &issues)
		}
		switch len(all) {
		case 0:
			doc, mistakes := policy.Embedded("default")
			if mistakes.Err() != nil {
				return none, mistakes, nil
			}
			named = &manifest.Uncompiled{Name: "default", Doc: doc}
		case 1:
			named = &all[0]
		default:
			names := make([]string, len(all))
			for i := range all {
				names[i] = all[i].Name
			}
			return none, issues, fmt.Errorf("there are %d policies, %s", len(all), strings.Join(names, ", "))
		}
	}
	base, found := policy.Load(named.Doc)
	if issues = append(issues, found...); issues.Err() != nil {
		return none, issues, nil
	}
	parts := partsBeside(files, named.Name, &issues)
	if issues.Err() != nil {
		return none, issues, nil
	}
	from := "from " + named.Doc.File
	if strings.HasPrefix(named.Doc.File, policy.ShippedFolder) {
		from = "built in"
	}
	return Chosen{joined(base, parts, &issues), from}, issues, nil
}

// part is a policy for its own queues.
type part struct {
	of       manifest.Uncompiled
	compiled *policy.Policy
}

// partsBeside compiles the active policies for their own queues, except the chosen one.
func partsBeside(files []manifest.Uncompiled, chosen string, issues *source.Issues) (out []part) {
	for _, p := range slices.SortedFunc(slices.Values(files), func(a, b manifest.Uncompiled) int { return cmp.Compare(a.Name, b.Name) }) {
		if p.Name == chosen || !ofQueues(p) || modeOf(p) != string(v1alpha1.ModeActive) {
			continue
		}
		compiled, found := policy.Load(p.Doc)
		if isLeftOut(p, found, issues) {
			continue
		}
		out, *issues = append(out, part{p, compiled}), append(*issues, found...)
	}
	return out
}

// joined joins policies with the chosen one. If that is not possible, it leaves out those of a cluster that cannot be joined with the
// others.
func joined(base *policy.Policy, parts []part, issues *source.Issues) *policy.Policy {
	compiled := func(parts []part) (out []*policy.Policy) {
		for _, p := range parts {
			out = append(out, p.compiled)
		}
		return out
	}
	all, found := join.Policies(base, compiled(parts)...)
	if found.Err() == nil || !slices.ContainsFunc(parts, func(p part) bool { return p.of.Stored }) {
		*issues = append(*issues, found...)
		return all
	}
	var fitting []part
	for _, p := range parts {
		_, found := join.Policies(base, compiled(append(slices.Clone(fitting), p))...)
		if !isLeftOut(p.of, found, issues) {
			fitting = append(fitting, p)
		}
	}
	all, found = join.Policies(base, compiled(fitting)...)
	*issues = append(*issues, found...)
	return all
}

// sound returns the policies without those of a cluster that have mistakes.
func sound(all []manifest.Uncompiled, issues *source.Issues) []manifest.Uncompiled {
	return slices.DeleteFunc(all, func(p manifest.Uncompiled) bool {
		if !p.Stored {
			return false
		}
		_, found := policy.Load(p.Doc)
		return isLeftOut(p, found, issues)
	})
}

// isLeftOut reports whether a policy was read from a cluster and has mistakes, which it adds to issues as warnings.
func isLeftOut(p manifest.Uncompiled, found source.Issues, issues *source.Issues) bool {
	if !p.Stored || found.Err() == nil {
		return false
	}
	*issues = append(*issues, p.LeftOut(manifest.PolicyKind, found)...)
	return true
}

// whole returns the policies for all queues: those that are shadows, or those that are not.
func whole(files []manifest.Uncompiled, shadows bool) (out []manifest.Uncompiled) {
	for _, p := range files {
		if !ofQueues(p) && (modeOf(p) == string(v1alpha1.ModeShadow)) == shadows {
			out = append(out, p)
		}
	}
	return out
}

func ofQueues(p manifest.Uncompiled) bool { return p.Doc.Root.Get("spec").Get("queues").Exists() }

func modeOf(p manifest.Uncompiled) string {
	mode, _ := p.Doc.Root.Get("spec").Get("mode").Any().(string)
	return cmp.Or(mode, string(v1alpha1.ModeActive))
}
