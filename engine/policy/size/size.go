// Package size limits how large a policy may be. Admission compiles a policy within the timeout of a webhook, and the scheduler compiles it
// between two cycles. Counting is fast, so that a policy beyond a limit is refused before anything of it is compiled.
package size

import (
	"strings"
	"unicode/utf8"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// Limits of one policy. The schema of the CRD repeats those of lists, and docs/writing-policies.md lists all of them.
const (
	Pipeline = 64      // names of actions
	Actions  = 64      // the policy's own actions
	Steps    = 256     // steps of all actions
	Tiers    = 64      // tiers of the policy
	Tables   = 128     // tables of all tiers
	Rows     = 2_000   // rows, attributes, variables and params of all inline tables
	Parts    = 4_000   // expressions between {{ and }} in all messages
	Text     = 16_000  // characters of one expression, message or another text
	Texts    = 400_000 // characters of all texts
	values   = 100_000 // lists, mappings and scalars
)

// Check returns an issue where the specification of a policy exceeds a limit: at the first item beyond each limit.
func Check(spec source.Value) source.Issues {
	c := &checker{exceeded: map[string]bool{}}
	c.list(spec.Get("pipeline"), "actions in the pipeline", Pipeline, func(source.Value) {})
	steps, tables, rows := 0, 0, 0
	c.list(spec.Get("actions"), "actions", Actions, func(action source.Value) {
		c.items(action.Get("steps"), func(step source.Value) bool { return c.more(&steps, step, "steps in all actions", Steps) })
	})
	c.list(spec.Get("tiers"), "tiers", Tiers, func(tier source.Value) {
		c.items(tier.Get("tables"), func(table source.Value) bool {
			return c.more(&tables, table, "tables in all tiers", Tables) && c.rows(table.Get("inline"), &rows)
		})
	})
	if c.issues == nil { // otherwise the limits of lists explain more
		c.texts(spec)
	}
	return c.issues
}

// checker counts the parts of a policy.
type checker struct {
	issues   source.Issues
	exceeded map[string]bool
	ignored  source.Issues // not reported here, because the compiler reports them

	parts, characters, values int
}

// more increases a count. It reports the first item beyond the limit, and returns false from there on.
func (c *checker) more(count *int, at source.Value, what string, limit int) bool {
	*count++
	return *count <= limit || c.exceeds(at, what, limit)
}

// exceeds reports a limit that is exceeded, once for each limit.
func (c *checker) exceeds(at source.Value, what string, limit int) bool {
	if !c.exceeded[what] {
		c.exceeded[what] = true
		c.issues = append(c.issues, at.Issuef("remove some, or make several policies, each for its own queues",
			"the policy has more than %d %s", limit, what))
	}
	return false
}

// items calls f with each item of a list until f returns false.
func (c *checker) items(v source.Value, f func(source.Value) bool) bool {
	if v.Kind() != source.List {
		return true
	}
	for _, item := range v.Items(&c.ignored) {
		if !f(item) {
			return false
		}
	}
	return true
}

// list counts the items of one list, and calls f with those within the limit.
func (c *checker) list(v source.Value, what string, limit int, f func(source.Value)) {
	count := 0
	c.items(v, func(item source.Value) bool {
		if !c.more(&count, item, what, limit) {
			return false
		}
		f(item)
		return true
	})
}

// rows counts the parts of an inline table that must be compiled.
func (c *checker) rows(inline source.Value, count *int) bool {
	const what = "rows, attributes, variables and params in all inline tables"
	if inline.Kind() != source.Map {
		return true
	}
	for _, section := range inline.Fields(nil, &c.ignored) {
		if section.Value.Kind() == source.Map {
			for _, param := range section.Value.Fields(nil, &c.ignored) {
				if !c.more(count, param.Key, what, Rows) {
					return false
				}
			}
		}
		if !c.items(section.Value, func(row source.Value) bool { return c.more(count, row, what, Rows) }) {
			return false
		}
	}
	return true
}

// texts counts all texts below a value. It returns false when a limit of all texts is exceeded.
func (c *checker) texts(v source.Value) bool {
	if !c.more(&c.values, v, "values", values) {
		return false
	}
	switch v.Kind() {
	case source.List:
		return c.items(v, c.texts)
	case source.Map:
		for _, f := range v.Fields(nil, &c.ignored) {
			if !c.texts(f.Value) {
				return false
			}
		}
	case source.Scalar:
		text, _ := v.Any().(string)
		size := utf8.RuneCountInString(text)
		if size > Text {
			c.exceeds(v, "characters in one text", Text)
		}
		if c.characters += size; c.characters > Texts {
			return c.exceeds(v, "characters in all texts", Texts)
		}
		if c.parts += strings.Count(text, "{{"); c.parts > Parts {
			return c.exceeds(v, "expressions in messages", Parts)
		}
	case source.Null:
	}
	return true
}
