package webhook

import (
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/typed"
)

// Schema lists all keys in files of admission rules. The parts "rules" and "groups" are the files themselves. The reader of the files uses
// this list.
func Schema() []rules.Part {
	key := func(name, value, doc string) rules.Key { return rules.Key{Name: name, Value: value, Doc: doc} }
	name, description := key("name", "name", "No other row, variable or limit has it."), key("description", "text", "What it is for.")
	of := key("of", strings.Join(sorted(kinds()), ", "), "Whose objects it is about.")
	operations := key("operations", "list of CREATE, UPDATE, DELETE", "Upon which requests the row is asked; left out, CREATE and UPDATE.")
	forEach := key("forEach", "list", "The row is asked once for each element of these lists.")
	when := key("when", "CEL: bool", "Whether the row is asked; left out, it is.")
	path := key("fieldPath", "text with CEL", "The field that it is about.")
	head := []rules.Key{
		key("apiVersion", tableVersion, "The version of this format."), key("kind", tableKind, "The kind of this file."),
		key("metadata", "keys", "Its name."), description,
	}
	groups := append(slices.Clip(head), key("resourceGroups", "list", "The groups; a pod is of the first that it fits."))
	groups[1].Value = groupsKind
	return []rules.Part{
		{Name: "rules", Doc: "Rows about the objects of one kind, asked before these are stored.", Keys: append(head, of,
			key("limits", "list", "Numbers that the flag --limit of celsius webhook sets."),
			key("variables", "list", "Expressions that rows share."),
			key("matchConditions", "list", "Objects of which one does not hold are not looked at."),
			key("bounds", "list", "What must hold before anything else is computed."),
			key("defaults", "list", "What is filled in."), key("validations", "list", "What is refused."),
			key("includes", "list", "What is looked at by the rows of another kind."), key("warnings", "list", "What is warned of."))},
		{Name: "metadata", Doc: "Names the file.", Keys: []rules.Key{key("name", "name", "What the file is called.")}},
		{Name: "limit", Doc: "A number that an owner may set.", Keys: []rules.Key{
			name, description, key("value", "int", "What holds otherwise."),
		}},
		{Name: "variable", Doc: "A variable, which sees those before it.", Keys: []rules.Key{
			name, description, key("expression", "CEL", "Its value."),
		}},
		typed.Loops(),
		{Name: "condition", Doc: "A row of matchConditions.", Keys: []rules.Key{
			name, description, key("expression", "CEL: bool", "What must hold."),
		}},
		{Name: "default", Doc: "A row of defaults.", Keys: []rules.Key{
			name, description, operations, forEach, when, path, key("value", "CEL", "What is filled in."),
		}},
		{Name: "row", Doc: "A row of bounds, validations or warnings.", Keys: []rules.Key{
			name, description, operations, forEach, when, path, key("message", "text with CEL", "What is wrong."),
			key("expression", "CEL: bool", "What must hold; left out, what the row is asked for is wrong."),
			key("unmatched", "true, false", "For warnings: it is asked of the objects that matchConditions leave out, and of no others."),
		}},
		{Name: "include", Doc: "A row of includes.", Keys: []rules.Key{
			name, description, of, operations, forEach, when, path, key("fields", "list", "What the object is made of that is looked at."),
			key("message", "text with CEL", "What is told of each of its mistakes."),
			key("warned", "list of words", "Rows whose mistakes are warned of."),
			key("only", "list of words", "Rows that are asked; left out, all."),
		}},
		{Name: "field", Doc: "A field of an object that is looked at.", Keys: []rules.Key{path, key("value", "CEL", "Its value.")}},
		{Name: "groups", Doc: "Which pods go to which nodes.", Keys: groups},
		{Name: "group", Doc: "What is written into the pods of a group.", Keys: []rules.Key{
			key("resourceGroup", "name", "Names the group."), description, key("object", "keys", "Which pods are of it."),
			key("when", "CEL: bool", "Which pods are of it, as an expression."), key("schedulerName", "text", "Who places its pods."),
			key("tolerations", "list of values", "What its pods tolerate."), key("labels", "map of texts", "The nodeSelector of its pods."),
			key("affinity", "value", "The affinity of its pods."), key("podLabels", "map of texts", "Labels of its pods."),
			key("podAnnotations", "map of texts", "Annotations of its pods."),
		}},
		{Name: "selector", Doc: "Which pods are of a group.", Keys: []rules.Key{
			key("key", strings.Join([]string{byNamespace, byAnnotation, byLabel}, ", "), "What tells them."),
			key("value", "list of words", "Namespaces, or annotations or labels as \"key: value\"."),
		}},
	}
}

func keysOf(part string) []string { return rules.KeysOf(Schema(), part) }
