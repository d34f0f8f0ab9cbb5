package policy

import (
	"slices"

	"github.com/celsius-scheduler/celsius/rules"
)

// Verb declares what a step of an action may do. Package engine/action implements it, and a test checks that each verb is implemented.
type Verb struct {
	Name string
	// Doc describes the verb in one sentence.
	Doc string
	// Itself lists the verb's own decisions, which no row and no parameter changes.
	Itself []string
	// Parameters are the keys of a step.
	Parameters []Parameter
	// Sites are the sites that a step evaluates.
	Sites []string
	// Alone means that the outcome of a job depends on other jobs only through the usage of queues and nodes.
	Alone bool
	// Reads are fields of a job or of its tasks that the verb itself reads. Fields that distinguish jobs in any case may be missing: see
	// Kinds.Of.
	Reads []string
}

// Verbs returns every verb of this version.
func Verbs() []Verb { return []Verb{admitVerb(), placeVerb(), displaceVerb(), evictVerb()} }

// Asks reports whether the verb evaluates one of the sites.
func (v *Verb) Asks(sites ...string) bool {
	return slices.ContainsFunc(v.Sites, func(site string) bool { return slices.Contains(sites, site) })
}

// Keys returns the parameters as keys of a step.
func (v *Verb) Keys() []rules.Key {
	var out []rules.Key
	for _, p := range v.Parameters {
		out = append(out, rules.Key{Name: p.Name, Value: p.Kind.Written(), Doc: p.Doc + " Default: " + p.Kind.Otherwise() + "."})
	}
	return out
}

// verbNamed returns the verb with this name, or nil.
func verbNamed(verbs []Verb, name string) *Verb {
	i := slices.IndexFunc(verbs, func(v Verb) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &verbs[i]
}

func verbNames(verbs []Verb) []string {
	var out []string
	for _, v := range verbs {
		out = append(out, v.Name)
	}
	slices.Sort(out)
	return out
}
