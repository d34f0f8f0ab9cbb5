package docs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// reference is the work on rule-language.md.
type reference struct {
	page
	lang    *rules.Language
	shipped map[string]*rules.Table
}

const languageIntro = `
Every decision of Celsius is made by rows of tables. A row is a [CEL](https://cel.dev) expression in a SchedulingPolicy,
or in one of the [tables that ship](tables.md). The dialect is that of Kubernetes' ValidatingAdmissionPolicy: what you
know from there holds here. Three things are added: types for what a scheduler sees, functions over them, and numbers
that mix (` + "`10 * node.used.cpu`" + ` needs no conversion). Nothing reads the clock, the network or chance: ` + "`now`" + ` is given.`

// houseRules is an inline table that shows what a table is made of.
const houseRules = `- name: house-rules
  inline:
    params:
      night: {type: int, default: 20, min: 0, max: 23, description: when night begins}
    variables:
    - {name: isNight, expression: now.getHours('Europe/Paris') >= params.night}
    jobOrder:
    - {name: aging, by: "job.priority + (now - job.createdAt).getMinutes() / 10", descending: true}
    predicates:
    - name: batch-nodes-at-night
      expression: variables.isNight || !("night-only" in node.labels)
      message: "node {{node.name}} takes batch work at night only"`

// conditioned is tables with conditions, to show where they stand.
const conditioned = `- {name: sla, when: job.queue.name == "interactive", only: [jobOrder]}
- {name: nodeorder, when: "task.priority >= 100 && !node.unschedulable"}`

// misspelt is a table with a mistake, to show how it is told.
const misspelt = `- name: spread
  inline:
    scores:
    - name: most-idle
      expression: 10 * node.idel.cpu - node.taskCount`

// inPolicy is a policy of one tier with these tables.
func inPolicy(tables string) string {
	indented := "    " + strings.ReplaceAll(tables, "\n", "\n    ")
	return "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: house}\nspec:\n  pipeline: [allocate]\n  " +
		"tiers:\n  - name: house\n    tables:\n" + indented + "\n"
}

// mistakes compiles a policy and gives what the command line says of it.
func mistakes(tables string) source.Issues {
	docs, issues := source.Parse("policy.yaml", []byte(inPolicy(tables)))
	for _, d := range docs {
		_, found := policy.Load(d)
		issues = append(issues, found...)
	}
	return issues
}

func languageReference(lang *rules.Language, shipped map[string]*rules.Table) ([]byte, error) {
	r := &reference{lang: lang, shipped: shipped}
	r.b.WriteString(generated)
	r.heading(1, "The rule language")
	r.para("%s", languageIntro)
	r.para("Misspell a field and the compiler says so, at the line and column inside your expression:")
	r.fence("", "$ celsius policy check policy.yaml\n"+mistakes(misspelt).Error())
	r.contents("A table", "Sections", "What rows see", "Types", "Operators", "Functions", "Libraries", "Scores", "Orders", "Messages",
		"Errors", "What a row reads", "Actions")
	r.tables()
	r.sections()
	r.roots()
	r.types()
	r.operators()
	r.functions()
	if err := r.libraries(); err != nil {
		return nil, err
	}
	r.scores()
	r.orders()
	r.messages()
	r.errors()
	r.reads()
	r.actions()
	return r.bytes(), nil
}

// contents links to the sections.
func (r *reference) contents(titles ...string) {
	var out []string
	for _, t := range titles {
		out = append(out, fmt.Sprintf("[%s](#%s)", t, strings.ReplaceAll(strings.ToLower(t), " ", "-")))
	}
	r.para("%s", strings.Join(out, " · "))
}

func keyTable(keys []rules.Key) [][]string {
	var rows [][]string
	for _, k := range keys {
		rows = append(rows, []string{code(k.Name), k.Value, k.Doc})
	}
	return rows
}

// tables says what a table is made of.
func (r *reference) tables() {
	r.heading(2, "A table")
	r.para("A table is a named set of rows with their params. It stands in a policy under `spec.tiers[].tables[].inline`, or ships with " +
		"Celsius. " +
		"This one belongs to a policy:")
	r.fence("yaml", houseRules)
	r.conditions()
	r.heading(3, "Rows")
	r.para("Every row may carry these keys; the [section](#sections) adds its own.")
	r.table([]string{"key", "value", "meaning"}, keyTable(rules.RowKeys(rules.Section{})))
	r.heading(3, "Params")
	r.para("`params` is a mapping by name. A policy sets them where it names the table: `{name: overcommit, params: {factor: 1.5}}`. Types: "+
		"%s.", codes(policy.Shape().ParamTypes))
	r.table([]string{"key", "value", "meaning"}, keyTable(rules.ParamKeys()))
	r.heading(3, "Variables")
	r.para("`variables` is a list. A variable is computed when it is first read, and then remembered; it sees the variables before it.")
	r.table([]string{"key", "value", "meaning"}, keyTable(rules.VariableKeys()))
	r.heading(3, "Attributes")
	r.para("`attributes` is a list of computed fields of clusters, queues, jobs and nodes. Rows of the table itself and of later tables " +
		"read them like any field. " +
		"Two tables that compute the same field in one policy are a mistake, and so is reading one that no table before computes; the message " +
		"names the tables that would.")
	r.table([]string{"key", "value", "meaning"}, keyTable(rules.AttributeKeys()))
	r.accounting()
}

// conditions says what a when of a table or a tier is.
func (r *reference) conditions() {
	r.heading(3, "A condition of a table, or of a tier")
	r.para("The use of a table in a tier may carry `when`, and so may the tier: an abbreviation for the same condition in front of the " +
		"`when` of each of its rows. Where it is false these rows have no opinion, at every section, as if each had said it itself. " +
		"Attributes and variables are computed all the same, as later tables may read them.")
	r.fence("yaml", conditioned)
	r.para("It may read what all of these rows see: before rows of `jobOrder` and `predicates` that is `job`, not `node`. What some of them " +
		"do not see is a mistake, and its message names these rows; then the table is used twice, under two names and each time with other " +
		"sections in `only`, or the rows that see it have a `when` of their own. A table's condition may read its `params` and `variables`, " +
		"a tier's may not, as each table has its own.")
}

// accounting lists the functions that only attributes have.
func (r *reference) accounting() {
	r.heading(3, "Accounting functions")
	r.para("What does not fit in an expression is a function of an attribute, written in place of `expression`. " +
		"Its arguments are expressions.")
	r.fence("yaml", `
- {on: queue, name: waiting, sum: {over: job, when: "job.phase == 'Pending'", of: job.minResources}}`)
	for _, f := range policy.Shape().Functions {
		r.para("**%s** — %s", code(f.Name), f.Doc)
		var rows [][]string
		for _, a := range f.Args {
			needed := "needed"
			if a.Optional {
				needed = "optional"
			}
			rows = append(rows, []string{code(a.Name), needed, a.Doc})
		}
		r.table([]string{"argument", "", "meaning"}, rows)
	}
}

// sections lists the sites.
func (r *reference) sections() {
	r.heading(2, "Sections")
	r.para("A section is a kind of decision. Rows are asked in the order of tiers, tables and rows. No rows at all: everything passes, " +
		"every job is ready, and nobody starves. " +
		"“If it errs” is what a row without `onError` is taken to say, see [errors](#errors).")
	r.siteTable()
	r.para("The keys that only some sections have:")
	var rows [][]string
	seen := map[string]int{}
	for _, s := range policy.Sites() {
		for _, k := range rules.RowKeys(s.Section)[len(rules.RowKeys(rules.Section{})):] {
			i, ok := seen[k.Name]
			if !ok {
				i = len(rows)
				seen[k.Name] = i
				rows = append(rows, []string{code(k.Name), k.Value, k.Doc, ""})
			}
			if k.Name == "expression" {
				rows[i][3] = "all but orders"
				continue
			}
			rows[i][3] = strings.TrimPrefix(rows[i][3]+", "+code(s.Name), ", ")
		}
	}
	r.table([]string{"key", "value", "meaning", "sections"}, rows)
}

func (r *reference) siteTable() {
	var rows [][]string
	for _, s := range policy.Sites() {
		gives, _, _ := strings.Cut(s.Want.Name, " (")
		rows = append(rows, []string{code(s.Name), codes(s.Roots), gives, s.Doc, s.OnError})
	}
	r.table([]string{"section", "a row sees", "and gives", "what is asked, and how rows combine", "if it errs"}, rows)
}

// roots lists the variables that rows see.
func (r *reference) roots() {
	r.heading(2, "What rows see")
	var rows [][]string
	for _, root := range policy.Roots() {
		where := "every row"
		if !root.Everywhere {
			where = codes(sitesWith(root.Name))
		}
		rows = append(rows, []string{code(root.Name), code(typeText(root.Type.String())), root.Doc, where})
	}
	rows = append(rows,
		[]string{code("params"), "", "The table's params: `params.factor`.", "every row"},
		[]string{code("variables"), "", "The table's variables: `variables.isNight`.", "every row"})
	r.table([]string{"name", "type", "meaning", "seen by"}, rows)
}

func sitesWith(root string) []string {
	var out []string
	for _, s := range policy.Sites() {
		if slices.Contains(s.Roots, root) {
			out = append(out, s.Name)
		}
	}
	return out
}

// typeText writes a CEL type as this reference does.
func typeText(t string) string {
	return strings.NewReplacer("google.protobuf.Timestamp", "timestamp", "google.protobuf.Duration", "duration", "optional_type(", "optional(",
		"<", "", ">", "").Replace(t)
}

// types lists the objects with their fields.
func (r *reference) types() {
	r.heading(2, "Types")
	r.para("“Changes” says when a field may have another value, which is what [caches](#what-a-row-reads) go by. An amount is exact inside, " +
		"whatever its size, and a double when it is read.")
	computed := r.computed()
	for _, o := range r.lang.Objects() {
		r.heading(3, o.Name)
		r.para("%s", o.Doc)
		var rows [][]string
		for _, m := range o.Members {
			if !m.Hidden {
				rows = append(rows, []string{code(m.Name), code(typeText(m.Type.String())), m.Doc, m.Changes.String()})
			}
		}
		r.table([]string{"field", "type", "meaning", "changes"}, rows)
		if fields := computed[strings.ToLower(o.Name)]; fields != nil {
			r.para("Computed by tables, where they stand before: %s.", strings.Join(fields, ", "))
		}
	}
}

// computed gives the attributes of the shipped tables that others may read, by owner.
func (r *reference) computed() map[string][]string {
	out := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(r.shipped)) {
		for _, a := range r.shipped[name].Attributes {
			if !a.Private {
				out[a.On] = append(out[a.On], fmt.Sprintf("`%s` ([%s](tables.md#%s))", a.Name, name, name))
			}
		}
	}
	return out
}

// operators lists those that are declared anew.
func (r *reference) operators() {
	r.heading(2, "Operators")
	r.para("All of CEL's, with its precedence: `!` `-` `*` `/` `%%` `+` `<` `<=` `>=` `>` `==` `!=` `in` `&&` `||` `? :` `[]` `[?]` `.`. " +
		"CEL keeps int and double apart; here they mix, so these are declared anew. Whole division of ints stays whole: `7 / 2` is 3, `7 / " +
		"2.0` is 3.5. Overflow and division of an int by 0 are errors.")
	var rows [][]string
	for _, f := range r.lang.Operators() {
		rows = append(rows, []string{code(symbol(f.Name)), f.Doc})
	}
	r.table([]string{"operator", "meaning"}, rows)
	r.para("`&&` and `||` do not care for the order of their sides: `false && error` and `error && false` are both false.")
}

// symbol is an operator as it is written: CEL calls + _+_.
func symbol(name string) string {
	switch name {
	case "_[_]":
		return "[]"
	case "@in":
		return "in"
	}
	return strings.Trim(name, "_")
}
