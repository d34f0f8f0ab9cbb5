package rules

// Key is one key of a part of a table. Both the reader of tables and the generated reference use these lists.
type Key struct {
	Name string
	// Value describes for people which values the key accepts.
	Value string
	Doc   string
}

// Part is one type of mapping in a file, with the keys that it accepts.
type Part struct {
	Name, Doc string
	Keys      []Key
}

// KeysOf returns the names of the keys of one part of a file.
func KeysOf(parts []Part, name string) []string {
	var out []string
	for _, p := range parts {
		if p.Name == name {
			out = append(out, keyNames(p.Keys)...)
		}
	}
	return out
}

// Normalizations returns the values of the key normalize. Each has its formula over the values s of the candidate nodes.
func Normalizations() []Key {
	return []Key{
		{"none", "s", "The value as it is."},
		{"max", "100 s / max", "0 where max is 0."},
		{"inverseMax", "100 - 100 s / max", "100 where max is 0."},
		{"minMax", "100 (s - min) / (max - min)", "0 where all are equal."},
		{"inverseSum", "100 (max + min - s) / max", "100 where max is 0."},
	}
}

// The values of the key fold.
const (
	FoldSum = "sum"
	FoldMax = "max"
	ThenMax = "thenMax"
)

// Folds returns the values of the key fold.
func Folds() []Key {
	return []Key{
		{FoldSum, "the sum over all victims", "It is the default."},
		{FoldMax, "the largest among the victims", ""},
		{ThenMax, "the largest among the victims that had the largest value in each previous row with max or thenMax", ""},
	}
}

// Roundings returns the values of the key round.mode.
func Roundings() []Key {
	return []Key{
		{"trunc", "", "Toward 0."},
		{"floor", "", "Down."},
		{"ceil", "", "Up."},
		{"nearest", "", "To the nearest, halves away from 0."},
	}
}

// ErrorAnswers returns the values of the key onError.
func ErrorAnswers() []Key {
	return []Key{
		{"deny", "", "As if the row had denied: the node is not suitable, the job is not admitted, the victim is not evicted; in " +
			"`overused`, the queue is skipped."},
		{"allow", "", "As if the row had agreed."},
		{"skip", "", "As if the row were not there: a score of 0, an order of no opinion, which comes last."},
	}
}

// Settlements returns the values of the key settle.
func Settlements() []string { return []string{"current", "cycle", "start"} }

// ParamKeys returns the keys of a param of a table.
func ParamKeys() []Key {
	return []Key{
		{"type", "one of the types", "What values it takes."},
		{"default", "a value", "What holds where the policy sets nothing."},
		{"optional", "bool", "It may be left without a value; rows see it as an optional."},
		{"min", "a value", "The least that it may be."},
		{"max", "a value", "The most that it may be."},
		{"enum", "list of words", "All that it may be."},
		{"description", "text", "What it does."},
		{"asVolcano", "value", "What `policy convert` sets, where the default is another behaviour than Volcano's."},
		{"volcano", "text", "The argument of Volcano's plugin that sets it; `*` stands for the key of a map."},
		{"deprecated", "text", "Why it should not be used any more."},
	}
}

// VariableKeys returns the keys of a variable of a table.
func VariableKeys() []Key {
	return []Key{
		{"name", "name", "Rows and later variables read it as `variables.NAME`."},
		{"on", "an owner", "For what it is computed once: each task, job, queue, node, victim; default cluster, once a cycle."},
		{"expression", "CEL", "Its value, of any type."},
		{"description", "text", "What it stands for."},
	}
}

// AttributeKeys returns the keys of an attribute of a table. In addition, an attribute has one accounting function or expression.
func AttributeKeys() []Key {
	return []Key{
		{"name", "name", "Rows read it as a field of its owner: `queue.deserved`."},
		{"on", "an owner", "What it is a field of."},
		{
			"settle", "current, cycle or start",
			"When it is computed: `current` moves with every tentative step, `cycle` is computed once as the cycle begins, `start` once a run.",
		},
		{"private", "bool", "Only its own table sees it."},
		{"when", "CEL: bool", "Where it has a value."},
		{"expression", "CEL", "Its value, where no accounting function gives it."},
		{"description", "text", "What it means."},
	}
}

// RowKeys returns the keys of a row of a section: the keys of every row, and the section's own keys.
func RowKeys(s Section) []Key {
	out := []Key{
		{"name", "name", "Names the row in every decision that it makes."},
		{"description", "text", "For readers of the table."},
		{"when", "CEL: bool", "A guard: where it is false the row has no opinion."},
		{"reason", "CamelCase", "Goes into the conditions of PodGroups and pods: letters and digits, at most 64. " +
			"`Unschedulable` means that another node would help: autoscalers add one for the pod."},
		{"message", "text with `{{CEL}}`", "What people are told where the row says no."},
		{"onError", "deny, allow or skip", "What the row is taken to say where it errs."},
	}
	for _, k := range sectionKeys() {
		if k.Name == s.Expression {
			out = append(out, k)
		}
		for _, name := range s.Keys {
			if k.Name == name {
				out = append(out, k)
			}
		}
	}
	return out
}

// sectionKeys returns the keys of rows that only some sections have.
func sectionKeys() []Key {
	return []Key{
		{"expression", "CEL", "What the row says: true or false, or a number."},
		{"by", "CEL", "The sort key: a number, string, bool, timestamp, duration, or a list of them."},
		{"descending", "bool", "Largest first."},
		{"curable", "bool", "Whether an eviction could make the node suitable."},
		{"share", "bool", "The row protects the shares of queues: a step whose gates name `beyondShare` does not ask it."},
		{"weight", "number, or CEL over params", "What the value is multiplied by at last; default 1."},
		{
			"normalize", "none, max, inverseMax, minMax or inverseSum",
			"How values of the nodes that are chosen from are brought to 0..100; default none.",
		},
		{"round", "mapping of mode (trunc, floor, ceil, nearest) and step", "Rounds to multiples of step, default 1, after normalising."},
		{"veto", "bool, or CEL over params", "A refusal by this row is final in all tiers, and its permission alone evicts no pod."},
		{"fold", "sum, max or thenMax", "How the numbers of all victims are combined."},
		{"every", "duration, or CEL over params", "The row is asked at most that often."},
	}
}

func keyNames(keys []Key) []string {
	var out []string
	for _, k := range keys {
		out = append(out, k.Name)
	}
	return out
}
