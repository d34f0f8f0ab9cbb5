package schemas

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/typed"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
	"github.com/celsius-scheduler/celsius/webhook"
)

const rulesVersion = "rules.celsius.dev/v1alpha1"

// file is a kind of file whose reader uses a list of parts.
type file struct {
	kind, root string
	parts      []rules.Part
	// inside defines which part is nested under which key. The name of the part follows "[]" for a list of parts, or "{}" for a mapping to
	// parts. The key of the map is a pattern that matches the name of a part and a key.
	inside map[string]string
	needs  map[string][]string
}

func files() []file {
	job := map[string]string{
		"A file.params": "[]A parameter", "A file.variables": "[]variable", "A file.validations": "[]A row of validations",
		"A file.pods": "[]A row of pods", "A file.objects": "[]A row of objects", "A file.metadata": "metadata", ".*.forEach": "[]loop",
		"A row of pods.in": "[]", "A row of objects.object": "?",
		"A row of pods.(env|ports|mounts|command|args|volumes|initContainers|annotations|labels)": "?",
	}
	admission := map[string]string{
		"(rules|groups).metadata": "metadata", "rules.limits": "[]limit", "rules.variables": "[]variable",
		"rules.matchConditions": "[]condition", "rules.(bounds|validations|warnings)": "[]row", "rules.defaults": "[]default",
		"rules.includes": "[]include", "include.fields": "[]field", ".*.forEach": "[]loop", "groups.resourceGroups": "[]group",
		"group.object": "selector",
	}
	machine := map[string]string{
		"machine.actions": "{}action", "machine.effects": "{}effect", "machine.phases": "{}phase", "machine.events": "[]event",
		"machine.policies": "policies", "effect.retain": "[]retain", "phase.actions": "{}row", "row.next": "[]next",
		"(row|next).count": "[]", "(row|next).set": "?", "policies.(internal|needTimeout)": "[]", "event.from": "",
	}
	named := rules.Part{Name: "metadata", Doc: "Names it.", Keys: []rules.Key{{Name: "name", Value: "name", Doc: "Its name."}}}
	variable := rules.Part{Name: "variable", Doc: "An expression that rows share.", Keys: []rules.Key{
		{Name: "name", Value: "name", Doc: "Rows read it as variables.NAME."},
		{Name: "description", Value: "text", Doc: "What it stands for."},
		{Name: "expression", Value: "CEL", Doc: "Its value."},
	}}
	return []file{
		{"JobPlugin", "A file", append(jobplugin.Schema(), named, variable, typed.Loops()), job, map[string][]string{
			"A file": {"metadata", "description"}, "A parameter": {"name", "flag", "type", "default"},
			"A row of validations": {"name", "message"}, "A row of pods": {"name"}, "A row of objects": {"name", "object"},
		}},
		{"StateMachine", "machine", statemachines.Schema(), machine, map[string][]string{
			"machine": {"machine", "initial", "actions", "effects", "phases", "policies"}, "row": {"do"}, "next": {"to"},
			"retain": {"retain"}, "phase": {"actions"},
		}},
		{"AdmissionRules", "rules", webhook.Schema(), admission, map[string][]string{
			"rules": {"of"}, "row": {"name", "fieldPath", "message"}, "default": {"name", "fieldPath", "value"},
			"condition": {"name", "expression"}, "limit": {"name", "value"}, "include": {"name", "of", "fields"},
		}},
		{"ResourceGroups", "groups", webhook.Schema(), admission, map[string][]string{
			"groups": {"resourceGroups"}, "group": {"resourceGroup"},
		}},
	}
}

// schema returns the schema of the file.
func (f *file) schema() (*Schema, error) {
	s, err := f.part(f.root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.kind, err)
	}
	s.Properties["apiVersion"] = &Schema{Type: "string", Values: Values{Const: rulesVersion}}
	s.Properties["kind"] = &Schema{Type: "string", Values: Values{Const: f.kind}}
	s.Required = append(s.Required, "apiVersion", "kind")
	return s, nil
}

func (f *file) part(name string) (*Schema, error) {
	for _, p := range f.parts {
		if p.Name != name {
			continue
		}
		s, err := ofKeys(name, split(p.Keys), func(k rules.Key) (*Schema, error) { return f.below(name + "." + k.Name) }, f.needs[name]...)
		if err != nil {
			return nil, err
		}
		return described(s, p.Doc), nil
	}
	return nil, fmt.Errorf("there is no part %q", name)
}

// below returns the schema of the part under a key, or nil for a plain value.
func (f *file) below(place string) (*Schema, error) {
	for pattern, inside := range f.inside {
		if !regexp.MustCompile("^(?:" + pattern + ")$").MatchString(place) {
			continue
		}
		switch inside {
		case "?":
			return &Schema{}, nil
		case "[]":
			return listOf(text()), nil
		case "":
			return text(), nil
		}
		part := strings.TrimLeft(inside, "[]{}")
		s, err := f.part(part)
		switch {
		case err != nil:
			return nil, err
		case strings.HasPrefix(inside, "[]"):
			return listOf(s), nil
		case strings.HasPrefix(inside, "{}"):
			return mapOf(s), nil
		}
		return s, nil
	}
	return nil, nil //nolint:nilnil // it is a value
}

// split separates keys that are listed together, for example "min, max".
func split(keys []rules.Key) []rules.Key {
	var out []rules.Key
	for _, k := range keys {
		for name := range strings.SplitSeq(k.Name, ", ") {
			name, _, _ = strings.Cut(name, ".")
			out = append(out, rules.Key{Name: name, Value: k.Value, Doc: k.Doc})
		}
	}
	return out
}

// ofKeys returns a mapping with these keys. special returns the schema of a key whose declaration only describes it for people, or nil.
func ofKeys(part string, keys []rules.Key, special func(rules.Key) (*Schema, error), required ...string) (*Schema, error) {
	fields := map[string]*Schema{}
	for _, k := range keys {
		s, err := special(k)
		if err != nil {
			return nil, err
		}
		if s == nil {
			s = ofValue(k.Value)
		}
		if s == nil {
			return nil, fmt.Errorf("the key %s of %s: no schema is known for %q", k.Name, part, k.Value)
		}
		dup := *s
		fields[k.Name] = described(&dup, k.Doc)
	}
	return object("", fields, required...), nil
}

// ofValue parses the description of a value in a declaration. It returns nil if the value is not known.
func ofValue(value string) *Schema {
	if of, ok := strings.CutPrefix(value, "list of "); ok && regexp.MustCompile(`^\w+(, \w+)+$`).MatchString(of) {
		return listOf(words(strings.Split(of, ", ")))
	}
	if plain := plainValue(value); plain != nil {
		return plain
	}
	switch {
	case strings.HasPrefix(value, "text"), strings.Contains(value, "regular expression"):
		return text()
	case strings.HasPrefix(value, "CEL"), strings.Contains(value, "or CEL"):
		return expression()
	}
	if choice := regexp.MustCompile(`,? or |, `).Split(value, -1); len(choice) > 1 {
		return words(choice)
	}
	if strings.Contains(value, ".celsius.dev/") || regexp.MustCompile(`^[A-Z]\w+$`).MatchString(value) {
		return text() // apiVersion and kind are defined elsewhere
	}
	return nil
}

// plainValue returns the schema for a word that declarations use for a type of value, or nil.
func plainValue(value string) *Schema {
	switch value {
	case "bool", "true, false":
		return boolean()
	case "int":
		return &Schema{Type: "integer"}
	case "number":
		return &Schema{Type: "number"}
	case "a value", "value", "object with CEL", "map":
		return &Schema{}
	case "list of words", "list of names", "list of texts":
		return listOf(text())
	case "list of values":
		return listOf(&Schema{})
	case "map of texts":
		return mapOf(text())
	case "keys":
		return &Schema{Type: "object"}
	case "name", "one word", "CamelCase", "duration", "phase", "effect", "action", "version":
		return text()
	}
	return nil
}
