package policy

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/policy/parts"
	"github.com/celsius-scheduler/celsius/engine/policy/rollback"
	"github.com/celsius-scheduler/celsius/engine/policy/size"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/rules/tables"
)

const (
	policyVersion = "scheduling.celsius.dev/v1alpha1"
	policyKind    = "SchedulingPolicy"
	tableVersion  = "rules.celsius.dev/v1alpha1"
	// TableKind is the kind of a table in a document of its own.
	TableKind = "RuleTable"
)

// tableHead returns the keys of such a document in addition to those of a table.
func tableHead() []string { return []string{"apiVersion", "kind", "metadata"} }

// Load compiles a SchedulingPolicy. It returns all mistakes at once, each with its place. If one has severity Error, the Policy is nil.
func Load(doc *source.Document) (*Policy, source.Issues) {
	return LoadIn(doc, Verbs(), Vocabulary(), AccountingFunctions())
}

// LoadIn compiles a policy in a dialect. more are keys that a document may contain but that its author does not write.
func LoadIn(doc *source.Document, verbs []Verb, v rules.Vocabulary, functions []*Accounting, more ...string) (*Policy, source.Issues) {
	d, err := NewDialect(verbs, v, functions)
	if err != nil {
		return nil, source.Issues{doc.Root.Issuef("", "%v", err)}
	}
	l := d.loading()
	l.more = more
	return l.whole(doc)
}

// Dialect contains the verbs, fields and functions that a policy can use.
type Dialect struct {
	verbs     []Verb
	functions []*Accounting
	shape     rules.Shape
	lang      *rules.Language
}

// NewDialect returns a dialect with these verbs, fields, functions and accounting functions. All fields and functions must declare what
// they read, because caching depends on it.
func NewDialect(verbs []Verb, v rules.Vocabulary, functions []*Accounting) (*Dialect, error) {
	if what := language.Undeclared(v); what != nil {
		return nil, fmt.Errorf("%s: it is not said what is read; it must be declared, as what is remembered follows from it",
			strings.Join(what, ", "))
	}
	lang, err := rules.NewLanguage(v)
	if err != nil {
		return nil, err
	}
	return &Dialect{verbs, functions, shapeWith(functions), lang}, nil
}

// Load compiles a policy that is written in the dialect.
func (d *Dialect) Load(doc *source.Document) (*Policy, source.Issues) {
	return d.loading().whole(doc)
}

// whole returns the policy, or nil if it has mistakes.
func (l *loader) whole(doc *source.Document) (*Policy, source.Issues) {
	p := l.policy(doc)
	l.issues.Sort()
	if l.issues.Err() != nil {
		return nil, l.issues
	}
	return p, l.issues
}

func (d *Dialect) loading() *loader {
	return &loader{Dialect: d, shipped: map[string]*rules.Table{}, singles: map[string]int{}}
}

// Vocabulary returns what the language adds to Kubernetes' dialect of CEL.
func Vocabulary() rules.Vocabulary {
	return rules.Vocabulary{
		Objects: language.Objects(), Functions: append(language.Functions(), language.VolumeFunctions()...),
		Roots: language.RootNames(), Row: "node",
	}
}

// Default returns the embedded default policy.
func Default() (*Policy, source.Issues) {
	doc, issues := Embedded("default")
	if doc == nil {
		return nil, issues
	}
	return Load(doc)
}

// ShippedText returns the text of a file in rules/tables. name has no extension.
func ShippedText(name string) ([]byte, error) {
	return fs.ReadFile(tables.FS, name+".yaml") //nolint:wrapcheck // it names the file
}

// ShippedFolder is the prefix of the names of built-in files.
const ShippedFolder = "rules/tables/"

// Embedded returns one document of rules/tables by name, or nil.
func Embedded(name string) (*source.Document, source.Issues) {
	file := name + ".yaml"
	data, err := ShippedText(name)
	if err != nil {
		return nil, source.Issues{{Message: fmt.Sprintf("no table %q is shipped", name)}}
	}
	docs, issues := source.Parse(ShippedFolder+file, data)
	if len(docs) != 1 {
		return nil, append(issues, source.Issue{File: file, Message: "one document is wanted"})
	}
	return docs[0], issues
}

// ShippedNames returns the names of the built-in tables, sorted.
func ShippedNames() []string {
	var out []string
	entries, _ := fs.ReadDir(tables.FS, ".")
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".yaml")
		if name != "actions" && name != "default" {
			out = append(out, name)
		}
	}
	return out
}

// loader is the state of one Load.
type loader struct {
	*Dialect
	shipped map[string]*rules.Table
	issues  source.Issues
	sight   *sight   // nil: everything is loaded
	more    []string // keys that a document may contain but that its author does not write
	joined  bool     // the policy contains other policies with their own queues
	// singles contains, by part, the tier of each site that is used in one tier only.
	singles map[string]int
}

// accounting returns the accounting function with this name; nil: none.
func (l *loader) accounting(name string) *Accounting {
	i := slices.IndexFunc(l.functions, func(fn *Accounting) bool { return fn.Name == name })
	if i < 0 {
		return nil
	}
	return l.functions[i]
}

// report adds an issue once, although a when is compiled with each row.
func (l *loader) report(i source.Issue) {
	if !slices.Contains(l.issues, i) {
		l.issues = append(l.issues, i)
	}
}

// entry is one table of a tier, with its settings.
type entry struct {
	name   string // the name of the entry
	tier   int
	table  *rules.Table
	params source.Value
	off    map[string]bool // sections that are switched off
	at     source.Value
	inline bool
	denies bool   // a row that fails denies, regardless of its onError
	part   string // the part that it belongs to; "": the policy of all other queues
	// conditions apply to all rows: the when of its tier, and its own.
	conditions []*condition
}

func newPolicy() *Policy {
	return &Policy{rules: map[string][]*Rule{}, Trees: map[*rules.Member]*QuotaTree{}, computed: map[*rules.Member]*Attribute{}}
}

func (l *loader) policy(doc *source.Document) *Policy {
	p := newPolicy()
	p.written = doc.Root
	fields := doc.Root.Fields(append([]string{"apiVersion", "kind", "metadata", "spec", "status"}, l.more...), &l.issues)
	l.header(doc.Root, policyVersion, policyKind)
	meta := doc.Root.Get("metadata")
	p.Name = l.name(meta)
	if g := meta.Get("generation"); g.Exists() {
		p.Generation = g.Int(&l.issues)
	}
	var spec source.Value
	for _, f := range fields {
		if f.Name == "spec" {
			spec = f.Value
		}
	}
	if spec.Kind() == source.Null {
		l.report(doc.Root.Issuef("add spec with pipeline and tiers", "spec is missing"))
		return p
	}
	if issues := size.Check(spec); issues != nil {
		l.issues = append(l.issues, issues...)
		return p
	}
	spec.Fields([]string{"mode", "queues", "rollback", "fallback", "messages", "pipeline", "actions", "tiers"}, &l.issues)
	p.Mode = l.word(spec.Get("mode"), "Active", []string{"Active", "Paused", "Shadow"})
	rollback.Read(spec.Get("rollback"), &l.issues)
	l.word(spec.Get("fallback"), "", []string{"KeepPredicates", "Stop"})
	l.word(spec.Get("messages"), "", []string{"OwnNamespace", allNamespaces})
	c := newCompiler(l, p)
	c.queues(spec)
	all := l.parts(doc.Root)
	c.serving(doc.Root, all)
	visible := &compiler{objects: maps.Clone(c.objects), owners: maps.Clone(c.owners)}
	p.Tiers = l.tierNames(spec.Get("tiers"))
	entries := l.entries(spec.Get("tiers"))
	if l.sight != nil {
		c.look(spec, entries)
		return p
	}
	judged := slices.ContainsFunc(all, func(p Part) bool { return p.OfAll })
	for _, e := range entries {
		if judged {
			e.switchOff(parts.Predicate)
		}
		c.table(e)
	}
	c.pipeline(spec)
	if slices.ContainsFunc(p.Displacing(), (*Step).byCost) {
		c.otherwise(SiteNamed(VictimCost), entries)
	}
	for _, part := range all {
		c.join(part, visible)
	}
	c.lint(spec, entries)
	return p
}

func (l *loader) header(root source.Value, version, kind string) {
	for _, want := range [][2]string{{"apiVersion", version}, {"kind", kind}} {
		got := l.need(root, want[0])
		if s := got.String(&l.issues); got.Exists() && s != want[1] {
			l.report(got.Issuef("write "+want[1], "%s is %q", want[0], s))
		}
	}
}

func (l *loader) need(v source.Value, key string) source.Value {
	got := v.Get(key)
	if !got.Exists() && v.Kind() == source.Map {
		l.report(v.Issuef("add "+key, "%s is missing", key))
	}
	return got
}

// name reads the required name of a mapping.
func (l *loader) name(v source.Value) string {
	got := l.need(v, "name")
	if got.Any() == "" {
		l.report(got.Issuef("give it a name", "the name is empty"))
	}
	return got.String(&l.issues)
}

func (l *loader) word(v source.Value, otherwise string, among []string) string {
	if !v.Exists() {
		return otherwise
	}
	s := v.String(&l.issues)
	if s != "" && !slices.Contains(among, s) {
		l.report(v.Issuef(source.Suggest(s, among), "unknown value %q", s))
	}
	return s
}

func (l *loader) tierNames(v source.Value) []string {
	var out []string
	if !v.Exists() {
		return nil
	}
	for _, item := range v.Items(&l.issues) {
		name := l.name(item)
		if slices.Contains(out, name) {
			l.report(item.Get("name").Issuef("give it a name of its own", "duplicate name %q", name))
		}
		out = append(out, name)
	}
	return out
}

// entries reads the tables of all tiers, in order.
func (l *loader) entries(tiers source.Value) []*entry {
	var out []*entry
	if !tiers.Exists() {
		return nil
	}
	seen := map[string]bool{}
	var quiet source.Issues
	for tier, item := range tiers.Items(&quiet) {
		item.Fields([]string{"name", "when", "tables"}, &l.issues)
		when := &condition{text: item.Get("when").Text(&l.issues)}
		for _, v := range l.items(l.need(item, "tables")) {
			e := l.entry(v, tier)
			if e == nil {
				continue
			}
			if seen[e.name] {
				l.report(v.Get("name").Issuef("give it a name of its own", "duplicate name %q", e.name))
			}
			seen[e.name] = true
			when.before = append(when.before, e)
			e.conditions = []*condition{when, {text: v.Get("when").Text(&l.issues), before: []*entry{e}}}
			out = append(out, e)
		}
		if when.text.Value != "" && when.before == nil {
			when.inVain(l)
		}
	}
	return out
}

func (l *loader) entry(v source.Value, tier int) *entry {
	v.Fields([]string{"name", "table", "when", "params", "only", "without", "inline"}, &l.issues)
	e := &entry{tier: tier, params: v.Get("params"), at: v, off: map[string]bool{}}
	e.name = l.name(v)
	switch inline, table := v.Get("inline"), v.Get("table"); {
	case inline.Exists() && table.Exists():
		l.report(table.Issuef("keep one of them", "an entry is a shipped table or an inline one, not both"))
	case inline.Exists():
		e.inline = true
		e.table = rules.ReadTable(inline, e.name, l.shape, nil, &l.issues)
	case table.Exists():
		e.table = l.shippedTable(table, table.String(&l.issues))
	default:
		e.table = l.shippedTable(v.Get("name"), e.name)
	}
	if e.table == nil {
		return nil
	}
	l.switches(e, v)
	return e
}

func (l *loader) shippedTable(at source.Value, name string) *rules.Table {
	if t, ok := l.shipped[name]; ok {
		return t
	}
	if name == "" {
		return nil
	}
	if !slices.Contains(ShippedNames(), name) {
		l.report(at.Issuef(source.Suggest(name, ShippedNames())+"; or write the table under inline", "no table %q is shipped", name))
		return nil
	}
	doc, issues := Embedded(name)
	l.issues = append(l.issues, issues...)
	if doc == nil {
		return nil
	}
	l.header(doc.Root, tableVersion, TableKind)
	t := rules.ReadTable(doc.Root, name, l.shape, tableHead(), &l.issues)
	l.shipped[name] = t
	return t
}

// otherwise adds the built-in table of a site in a last tier. It does so if the policy has no rows for the site and no table with that
// name.
func (c *compiler) otherwise(site *Site, entries []*entry) {
	named := slices.ContainsFunc(entries, func(e *entry) bool { return e.name == site.Otherwise })
	if !named && len(c.p.rules[site.Name]) == 0 {
		c.table(&entry{name: site.Otherwise, tier: len(c.p.Tiers), table: c.shippedTable(source.Value{}, site.Otherwise), off: map[string]bool{}})
	}
}

// switches reads the keys only and without.
func (l *loader) switches(e *entry, v source.Value) {
	var sections []string
	for _, s := range l.shape.Sections {
		sections = append(sections, s.Name)
	}
	sections = append(sections, "attributes")
	section := func(item source.Value) string {
		s := item.String(&l.issues)
		if s != "" && !slices.Contains(sections, s) {
			l.report(item.Issuef(source.Suggest(s, sections), "unknown section %q", s))
		}
		return s
	}
	only := v.Get("only")
	var named []string
	for _, item := range l.items(only) {
		named = append(named, section(item))
	}
	for _, item := range l.items(v.Get("without")) {
		s := section(item)
		if only.Exists() && slices.Contains(sections, s) && (slices.Contains(named, s) || !slices.Contains(LeftOn(), s)) {
			l.report(item.Issuef("together with only it may name the sections that only leaves on: "+suggestList(LeftOn()),
				"only says already whether %s is on", s))
		}
		e.off[s] = true
	}
	for _, s := range sections {
		e.off[s] = e.off[s] || only.Exists() && !slices.Contains(named, s) && !slices.Contains(LeftOn(), s)
	}
}

// LeftOn returns the sections that the key "only" does not switch off. They are switched off only if the key "without" names them. The
// other sections depend on them, and Volcano has no flag for them.
func LeftOn() []string {
	return []string{"attributes", JobValid, Evictable, VictimOrder, VictimCost, BeyondDue}
}

// items reads a list that may be missing.
func (l *loader) items(v source.Value) []source.Value {
	if !v.Exists() {
		return nil
	}
	return v.Items(&l.issues)
}

// Shipped returns the built-in tables by name.
func Shipped() (map[string]*rules.Table, source.Issues) {
	out := map[string]*rules.Table{}
	var issues source.Issues
	for _, name := range ShippedNames() {
		doc, found := Embedded(name)
		issues = append(issues, found...)
		if doc != nil {
			out[name] = rules.ReadTable(doc.Root, name, Shape(), tableHead(), &issues)
		}
	}
	return out, issues
}

// ShippedActions returns the names of the built-in actions, in the order of their file.
func ShippedActions() ([]string, source.Issues) {
	doc, issues := Embedded("actions")
	if doc == nil {
		return nil, issues
	}
	var out []string
	for _, item := range doc.Root.Get("actions").Items(&issues) {
		out = append(out, item.Get("name").String(&issues))
	}
	return out, issues
}
