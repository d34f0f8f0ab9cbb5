// Package choose says by which policy a world of files runs, where the files hold several.
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

// Chosen is the policy by which a world runs.
type Chosen struct {
	Policy *policy.Policy
	// From says where it is written: "from FILE", or "built in".
	From string
}

// Text is the line by which a report begins.
func (c *Chosen) Text() string { return fmt.Sprintf("policy %s (%s)\n\n", c.Policy.Name, c.From) }

// Policy compiles the policy by which a world of files runs: named, or where that is nil the only one among those of the files that is of
// all queues, the default one where there is none. Shadows are chosen only where there is no other. The active ones that serve queues of
// their own stand beside it, in the order of their names, as in a cluster. The issues are of all that are compiled; with a mistake nothing
// is chosen. An error says that there are several to choose from.
func Policy(files []manifest.Uncompiled, named *manifest.Uncompiled) (Chosen, source.Issues, error) {
	var none Chosen
	if named == nil {
		all := whole(files, false)
		if len(all) == 0 {
			all = whole(files, true)
		}
		switch len(all) {
		case 0:
			doc, issues := policy.Embedded("default")
			if issues.Err() != nil {
				return none, issues, nil
			}
			named = &manifest.Uncompiled{Name: "default", Doc: doc}
		case 1:
			named = &all[0]
		default:
			names := make([]string, len(all))
			for i := range all {
				names[i] = all[i].Name
			}
			return none, nil, fmt.Errorf("there are %d policies, %s", len(all), strings.Join(names, ", "))
		}
	}
	base, issues := policy.Load(named.Doc)
	var parts []*policy.Policy
	for _, p := range slices.SortedFunc(slices.Values(files), func(a, b manifest.Uncompiled) int { return cmp.Compare(a.Name, b.Name) }) {
		if p.Name == named.Name || !ofQueues(p) || modeOf(p) != string(v1alpha1.ModeActive) {
			continue
		}
		part, found := policy.Load(p.Doc)
		parts, issues = append(parts, part), append(issues, found...)
	}
	if issues.Err() != nil {
		return none, issues, nil
	}
	joined, found := join.Policies(base, parts...)
	from := "from " + named.Doc.File
	if strings.HasPrefix(named.Doc.File, policy.ShippedFolder) {
		from = "built in"
	}
	return Chosen{joined, from}, append(issues, found...), nil
}

// whole are the policies of all queues that are shadows, or that are none.
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
