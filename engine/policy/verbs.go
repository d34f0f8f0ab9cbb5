package policy

import (
	"slices"

	"github.com/celsius-scheduler/celsius/rules"
)

// Verb is what a step of an action may do, as the language knows it. How it is run is engine/action's to say, and a test holds that each
// verb is.
type Verb struct {
	Name string
	// Doc says what the verb does, in a sentence.
	Doc string
	// Itself is what the verb decides by itself, which no row and no parameter changes.
	Itself []string
	// Parameters are the keys of a step.
	Parameters []Parameter
	// Sites are those whose questions a step puts to the rows.
	Sites []string
	// Alone says that what comes of a job rests on no other job, but by what queues and nodes hold of them.
	Alone bool
	// Reads are fields of a job, or of its tasks, that the verb looks at beside what the rows are asked. What tells jobs apart in any
	// case need not be among them: see Kinds.Of.
	Reads []string
}

// Verbs lists every verb of this version.
func Verbs() []Verb { return []Verb{admitVerb(), placeVerb(), displaceVerb(), evictVerb()} }

// Asks says whether the verb asks one of some sites.
func (v *Verb) Asks(sites ...string) bool {
	return slices.ContainsFunc(v.Sites, func(site string) bool { return slices.Contains(sites, site) })
}

// Keys are the parameters as they are written.
func (v *Verb) Keys() []rules.Key {
	var out []rules.Key
	for _, p := range v.Parameters {
		out = append(out, rules.Key{Name: p.Name, Value: p.Kind.Written(), Doc: p.Doc + " Default: " + p.Kind.Otherwise() + "."})
	}
	return out
}

// verbNamed finds a verb.
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
