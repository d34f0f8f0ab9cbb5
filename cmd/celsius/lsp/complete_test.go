package lsp

import (
	"slices"
	"strings"
	"testing"
)

// cursor marks the cursor in the texts of tests.
const cursor = "¦"

// marked removes the cursor from a text. It returns the text and the position of the cursor.
func marked(t *testing.T, text string) (*Text, Position) {
	t.Helper()
	before, after, ok := strings.Cut(text, cursor)
	if !ok {
		t.Fatalf("no cursor in %q", text)
	}
	x := NewText(before + after)
	return x, x.position(len(before))
}

const policyHead = "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\n" +
	"metadata: {name: p}\nspec:\n  pipeline: [enqueue]\n"

// inTable returns a policy with its own table after a shipped one.
func inTable(rows string) string {
	return policyHead + "  tiers:\n  - name: shipped\n    tables:\n    - {name: proportion}\n" +
		"    - {name: gang}\n    - name: own\n      inline:\n" +
		"        params:\n          night: {type: int, default: 20, description: when night begins}\n" +
		"        variables:\n        - {name: long, 'on': job, expression: 'job.taskCount > 9'}\n" +
		"        attributes:\n        - {'on': job, name: size, description: how large it is, expression: job.taskCount * 2}\n" +
		strings.ReplaceAll("\n"+rows, "\n", "\n        ") + "\n"
}

const tableHead = "apiVersion: rules.celsius.dev/v1alpha1\nkind: RuleTable\nmetadata: {name: x}\n"

func TestComplete(t *testing.T) {
	core := newCore(t)
	row := func(expression string) string { return inTable("predicates:\n- name: x\n  expression: " + expression) }
	for name, c := range map[string]struct {
		text       string
		want, none string   // labels, separated by blanks
		insert     []string // what is replaced, and by what, for the first wanted label
	}{
		// These cases complete the structure of the YAML.
		"keys of a document": {
			"apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nme¦",
			"metadata spec", "kind",
			[]string{"me", "metadata:"},
		},
		"keys of spec":           {policyHead + "  ¦", "mode tiers actions", "pipeline", []string{"", "mode: "}},
		"a key that has a value": {policyHead + "  ti¦: []", "tiers", "", []string{"ti", "tiers"}},
		"keys of a tier":         {policyHead + "  tiers:\n  - name: a\n    ¦\n", "tables when", "name", nil},
		"keys of an entry, in flow": {
			policyHead + "  tiers:\n  - name: a\n    tables: [{name: gang, ¦",
			"params only without table inline", "name", nil,
		},
		"the condition of a tier": {
			policyHead + "  tiers:\n  - name: a\n    when: clu¦\n    tables:\n    - {name: gang}\n", "cluster", "job", []string{"clu", "cluster"},
		},
		"the condition of a table": {
			policyHead + "  tiers:\n  - name: a\n    tables:\n    - {name: own, inline: {jobOrder: [{name: x, by: '1'}]}, when: job.prio¦}\n",
			"priority", "preemptor",
			[]string{"prio", "priority"},
		},
		"first key of an entry": {policyHead + "  tiers:\n  - ¦\n", "name tables", "", nil},
		"keys below a key": {
			policyHead + "  tiers:\n  - name: a\n    tables:\n    - name: x\n      inline:\n        pre¦\n",
			"predicates preemptable params", "", nil,
		},
		"keys of a row": {
			inTable("scores:\n- name: x\n  ¦\n  expression: 1.0"),
			"weight normalize when", "name veto by expression", nil,
		},
		"keys of an order":       {inTable("jobOrder:\n- name: x\n  ¦"), "by descending", "weight expression", nil},
		"keys, other text unfit": {inTable("scores:\n- name: x\n  ¦\n  {"), "weight", "", nil},
		"tables that ship": {
			policyHead + "  tiers:\n  - name: a\n    tables:\n    - name: g¦\n",
			"gang drf", "",
			[]string{"g", "gang"},
		},
		"tables in flow": {
			policyHead + "  tiers: [{name: a, tables: [{name: ¦}]}]\n",
			"gang proportion", "",
			[]string{"", "gang"},
		},
		"tables under table":      {policyHead + "  tiers: [{name: a, tables: [{name: x, table: ¦", "gang proportion", "", nil},
		"no tables beside inline": {policyHead + "  tiers: [{name: a, tables: [{name: ¦, inline: {}}]}]\n", "", "gang", nil},
		"params of a table": {
			policyHead + "  tiers: [{name: a, tables: [{name: overcommit, params: {¦}}]}]\n",
			"factor", "enabled",
			[]string{"", "factor: "},
		},
		"params by table": {
			policyHead + "  tiers: [{name: a, tables: [{name: x, table: overcommit, params: {f¦",
			"factor", "", nil,
		},
		"sections to switch": {
			policyHead + "  tiers: [{name: a, tables: [{name: gang, without: [j¦",
			"jobReady attributes", "", nil,
		},
		"actions": {
			strings.Replace(policyHead, "enqueue", "¦", 1) + "  actions: [{name: mine, steps: []}]\n",
			"enqueue allocate mine", "", nil,
		},
		"verbs": {
			policyHead + "  actions:\n  - name: a\n    steps:\n    - verb: ¦\n",
			"admit place displace evict", "", nil,
		},
		"parameters of a verb": {
			policyHead + "  actions: [{name: a, steps: [{verb: displace, ¦}]}]\n",
			"nodes unit gates candidates", "verb vote", nil,
		},
		"words of a parameter": {
			policyHead + "  actions: [{name: a, steps: [{verb: displace, nodes: ¦}]}]\n",
			"byScore byOrder byCost", "", nil,
		},
		"words in a list": {
			policyHead + "  actions: [{name: a, steps: [{verb: place, gates: [overused, ¦]}]}]\n",
			"allocatable preemptive", "", nil,
		},
		"owners": {
			strings.Replace(inTable(""), "attributes:\n", "attributes:\n        - on: ¦\n", 1),
			"queue job node", "", nil,
		},
		"functions of attributes": {
			strings.Replace(inTable(""), "attributes:\n", "attributes:\n        - {'on': queue, name: w, ¦}\n", 1),
			"sum waterFill expression", "name", nil,
		},
		"arguments of a function": {
			strings.Replace(inTable(""), "attributes:\n", "attributes:\n        - {'on': queue, name: w, sum: {¦}}\n", 1),
			"over of when", "", nil,
		},
		"true and false":     {inTable("jobOrder:\n- {name: x, by: job.size, descending: ¦}"), "true false", "", nil},
		"a table of its own": {tableHead + "sc¦", "scores predicates params", "metadata", nil},
		"another kind of rules": {
			"apiVersion: rules.celsius.dev/v1alpha1\nkind: StateMachine\nmachine: ¦\n",
			"job queue", "", nil,
		},
		"a file of others":    {"apiVersion: apps/v1\nkind: Deployment\n¦", "", "spec", nil},
		"the second document": {"kind: Deployment\nx: 1\n---\n" + policyHead + "  m¦\n---\nkind: Service\n", "mode", "", nil},
		"a comment":           {policyHead + "  # m¦\n", "", "mode", nil},

		// These cases complete expressions.
		"variables of a site": {
			row("¦"),
			"node task job queue cluster now params lists.range", "victim preemptor",
			[]string{"", "node"},
		},
		"of another site": {
			inTable("victims:\n- name: x\n  expression: v¦"),
			"victim variables", "node",
			[]string{"v", "victim"},
		},
		"fields":                   {row("node.¦"), "idle labels taskCount name", "minMember", []string{"", "idle"}},
		"fields, begun":            {row("node.la¦"), "labels", "", []string{"la", "labels"}},
		"in the middle":            {row("node.la¦bels.size() > 0"), "labels", "", []string{"la", "labels"}},
		"what follows is broken":   {row("node.¦ && ("), "idle", "", nil},
		"what precedes is broken":  {row("foo.bar( && node.¦"), "idle", "", nil},
		"fields of a field":        {row("task.job.queue.¦"), "spec deserved share", "minMember", nil},
		"fields of a child":        {row("job.queue.spec.¦"), "weight capability", "", nil},
		"attributes of this table": {row("job.¦"), "size minMember", "", []string{"", "size"}},
		"params of the table":      {row("params.¦"), "night", "", []string{"", "night"}},
		"variables of the table":   {row("variables.¦"), "long", "", nil},
		"methods of text":          {row("node.name.¦"), "startsWith matches size", "idle all", []string{"", "startsWith("}},
		"of a call":                {row("task.job.roles.filter(r, r.min > 0).¦"), "map size exists", "startsWith", nil},
		"of an element":            {row("task.job.roles[0].¦"), "min ready failed", "map", nil},
		"of a map's value":         {row("node.labels['zone'].¦"), "startsWith", "", nil},
		"of an optional":           {row("node.labels[?'zone'].¦"), "orValue hasValue", "startsWith", nil},
		"of a sum":                 {row("(node.idle + node.used).¦"), "fits cpu", "", nil},
		"of a literal":             {row("\"'abc'.¦\""), "startsWith", "", nil},
		"in a loop":                {row("job.roles.exists(r, r.¦"), "min failed", "roles", nil},
		"a loop's variable":        {row("job.roles.exists(role, ¦"), "role task", "", nil},
		"a loop in a loop": {
			row("job.roles.map(r, node.tasks.filter(t, t.role == r.name && t.job.¦"),
			"minMember", "", nil,
		},
		"a loop of two":           {row("node.labels.all(k, v, v.¦"), "startsWith", "", nil},
		"functions of a library":  {row("math.¦"), "greatest ceil", "", []string{"", "greatest("}},
		"words of a field":        {row("\"task.status == '¦\""), "Pending Running", "", []string{"", "Pending"}},
		"words in a list of them": {row("\"task.status in ['Pending', 'R¦']\""), "Running", "", []string{"R", "Running"}},
		"no words in a string":    {row("\"node.name == 'no¦'\""), "", "node", nil},
		"a block":                 {row("|\n    node.ready &&\n      node.¦\n"), "idle", "", nil},
		"a folded block":          {row(">-\n    node.ready\n    && task.¦\n"), "request", "", nil},
		"a mapping in flow": {
			inTable("predicates:\n- {name: x, when: node.re¦, expression: 'true'}"),
			"ready", "",
			[]string{"re", "ready"},
		},
		"an open mapping in flow": {inTable("predicates:\n- {name: x, when: node.¦"), "ready", "", nil},
		"open quotes": {
			inTable("predicates:\n- name: x\n  when: \"node.¦\n  expression: 'true'"),
			"ready", "", nil,
		},
		"a message": {
			inTable("predicates:\n- name: x\n  expression: node.ready\n  message: \"node {{node.¦}} is {{node.name}}\""),
			"idle", "", nil,
		},
		"an open message": {
			inTable("predicates:\n- name: x\n  expression: node.ready\n  message: \"ü 😀 {{node.¦"),
			"idle", "",
			[]string{"", "idle"},
		},
		"the text of a message": {
			inTable("predicates:\n- name: x\n  expression: node.ready\n  message: \"node {{node.name}} no¦\""),
			"", "node", nil,
		},
		"a weight": {
			inTable("scores:\n- {name: x, expression: node.idle.cpu, weight: params.¦}"),
			"night", "", nil,
		},
		"an attribute": {
			strings.Replace(inTable(""), "attributes:\n", "attributes:\n"+
				"        - {'on': queue, name: w, expression: queue.¦}\n", 1),
			"deserved", "", nil,
		},
		"an argument": {
			strings.Replace(inTable(""), "attributes:\n", "attributes:\n"+
				"        - {'on': queue, name: w, sum: {over: job, of: job.¦}}\n", 1),
			"minResources", "", nil,
		},
		"a step's condition": {
			policyHead + "  actions: [{name: a, steps: [{verb: place, jobs: job.¦}]}]\n",
			"starving phase", "", nil,
		},
		"a key of JSON with an emoji as two escapes": {
			"{\"kind\": \"SchedulingPolicy\", \"apiVersion\": \"scheduling.celsius.dev/v1alpha1\",\n" +
				"\t\"metadata\": {\"name\": \"p\", \"annotations\": {\"a\": \"\\ud83d\\ude00\"}},\n\t\"spec\": {\"mo¦\"}}",
			"mode tiers", "kind", nil,
		},
		"a table's row":               {tableHead + "scores:\n- name: s\n  expression: node.¦\n", "idle", "", nil},
		"text beyond the first plane": {row("\"node.name != '😀ü' && node.¦\""), "idle", "", []string{"", "idle"}},
	} {
		x, at := marked(t, c.text)
		items := core.Complete(x, at)
		var labels []string
		for _, i := range items {
			labels = append(labels, i.Label)
		}
		for want := range strings.FieldsSeq(c.want) {
			if !slices.Contains(labels, want) {
				t.Errorf("%s: %q is missing among %v", name, want, labels)
			}
		}
		for none := range strings.FieldsSeq(c.none) {
			if slices.Contains(labels, none) {
				t.Errorf("%s: %q is offered", name, none)
			}
		}
		if c.insert == nil {
			continue
		}
		i := slices.Index(labels, strings.TrimRight(c.insert[1], "(: "))
		if i < 0 {
			t.Errorf("%s: no item puts in %q", name, c.insert[1])
			continue
		}
		edit := items[i].TextEdit
		if got := x.text[x.offset(edit.Range.Start):x.offset(edit.Range.End)]; got != c.insert[0] || edit.NewText != c.insert[1] {
			t.Errorf("%s: %q is put in the place of %q, want %q of %q", name, edit.NewText, got, c.insert[1], c.insert[0])
		}
	}
}
