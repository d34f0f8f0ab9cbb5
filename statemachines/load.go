package statemachines

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

const (
	fileVersion = "rules.celsius.dev/v1alpha1"
	fileKind    = "StateMachine"
)

// Default returns the built-in machine of that name.
func Default(machine string) (*Machine, source.Issues) {
	if !slices.Contains(Names(), machine) {
		return nil, source.Issues{{Message: fmt.Sprintf("there is no state machine %q", machine), Hint: suggest(machine, Names())}}
	}
	text, err := shipped.ReadFile(machine + ".yaml")
	if err != nil {
		return nil, source.Issues{{Message: err.Error()}}
	}
	m, issues := loadFile("statemachines/"+machine+".yaml", text, true)
	if m != nil {
		m.shipped = true
	}
	return m, issues
}

// LoadFile reads a file with one machine. name only appears in the issues.
func LoadFile(name string, text []byte) (*Machine, source.Issues) { return loadFile(name, text, false) }

func loadFile(name string, text []byte, trusted bool) (*Machine, source.Issues) {
	docs, issues := source.Parse(name, text)
	if len(docs) != 1 && issues.Err() == nil {
		issues = append(issues, source.Issue{File: name, Message: fmt.Sprintf("holds %d documents; one state machine is wanted", len(docs))})
	}
	if issues.Err() != nil {
		for _, d := range docs { // also report further mistakes in documents with mistakes of form
			_, more := Load(d)
			issues = append(issues, more...)
		}
		issues.Sort()
		return nil, issues
	}
	m, found := load(docs[0], trusted)
	issues = append(issues, found...)
	return m, issues
}

// LoadFS returns all machines by name: the built-in ones, replaced by those of the files *.yaml and *.yml of a folder. It returns the
// mistakes of all files at once. If one has severity Error, it returns no machine.
func LoadFS(fsys fs.FS) (map[string]*Machine, source.Issues) {
	var issues source.Issues
	out, from := map[string]*Machine{}, map[string]string{}
	unread := source.ReadFolder(fsys, func(name string, data []byte) {
		docs, found := source.Parse(name, data)
		issues = append(issues, found...)
		for _, d := range docs {
			m, found := Load(d)
			issues = append(issues, found...)
			if m == nil {
				continue
			}
			if first, twice := from[m.Name]; twice {
				issues = append(issues, d.Root.Get("machine").Issuef("keep one of them", "the machine %q stands in %s as well", m.Name, first))
			}
			out[m.Name], from[m.Name] = m, name
		}
	})
	issues = append(issues, unread...)
	if len(out) == 0 && issues.Err() == nil {
		issues = append(issues, source.Issue{
			Message: "the folder of state machines holds none",
			Hint:    "put a file *.yaml of kind StateMachine there, or leave the folder out for the machines that ship",
		})
	}
	for _, name := range Names() {
		if out[name] == nil {
			m, found := Default(name)
			out[name], issues = m, append(issues, found...)
		}
	}
	if issues.Err() != nil {
		return nil, issues
	}
	return out, issues
}

// Load reads and verifies a machine. It returns all mistakes at once, each with line and column. If one has severity Error, it returns no
// Machine.
func Load(doc *source.Document) (*Machine, source.Issues) { return load(doc, false) }

// load reads and verifies a machine. A trusted machine is built-in, and a test has searched it for circles.
func load(doc *source.Document, trusted bool) (*Machine, source.Issues) {
	l := &loader{m: &Machine{File: doc.File, at: doc.Root}, trusted: trusted}
	l.machine(doc.Root)
	if l.m.Name != "" && l.scopes != nil {
		l.verify()
	}
	l.issues.Sort()
	if l.issues.Err() != nil {
		return nil, l.issues
	}
	l.m.assemble()
	return l.m, l.issues
}

// loader is the state of one Load.
type loader struct {
	m      *Machine
	issues source.Issues
	// scopes define what guards can read: "" in the phases, otherwise by source of an event.
	scopes map[string]*rules.Scope
	// targets are checked when all phases are known.
	targets []target
	// damaged states that a row could not be read. misguarded counts the mistakes in guards. In both cases the checks of transitions and their
	// guards are skipped, so that no other row is reported for this mistake.
	damaged    bool
	misguarded int
	// trusted machines are not searched for circles.
	trusted bool
}

// target is a word that must name a phase.
type target struct {
	value source.Value
	name  string
}

func (l *loader) report(i source.Issue) { l.issues = append(l.issues, i) }

// suggest returns a hint with the most similar of the known words, and all of them.
func suggest(word string, among []string) string {
	if len(among) == 0 {
		return "there are none"
	}
	all := "known: " + strings.Join(among, ", ")
	if near := source.Nearest(word, among); near != "" {
		return fmt.Sprintf("did you mean %q? (%s)", near, all)
	}
	return all
}

func (l *loader) need(v source.Value, key string) source.Value {
	got := v.Get(key)
	if !got.Exists() && v.Kind() == source.Map {
		l.report(v.Issuef("add "+key, "%s is missing", key))
	}
	return got
}

// word reads a word of a closed list. what is its name in messages: an effect, an action.
func (l *loader) word(v source.Value, what string, among []string) string {
	if !v.Exists() {
		return ""
	}
	before := len(l.issues)
	s := v.String(&l.issues)
	if len(l.issues) == before && !slices.Contains(among, s) {
		l.report(v.Issuef(suggest(s, among), "there is no %s %q", what, s))
		return ""
	}
	return s
}

func (l *loader) wordList(v source.Value, what string, among []string) []string {
	var out []string
	for _, item := range v.Items(&l.issues) {
		w := l.word(item, what, among)
		if slices.Contains(out, w) {
			l.report(item.Issuef("name it once", "%q stands here twice", w))
			continue
		}
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

func (l *loader) machine(root source.Value) {
	if root.Kind() != source.Map {
		l.report(root.Issuef("write apiVersion: "+fileVersion+" and kind: "+fileKind, "a state machine is wanted"))
		return
	}
	root.Fields(keysOf("machine"), &l.issues)
	for _, want := range [][2]string{{"apiVersion", fileVersion}, {"kind", fileKind}} {
		got := l.need(root, want[0])
		if s := got.String(&l.issues); got.Exists() && s != want[1] {
			l.report(got.Issuef("write "+want[1], "%s is %q", want[0], s))
		}
	}
	m := l.m
	m.Name = l.word(l.need(root, "machine"), "machine", Names())
	m.kind = kinds()[m.Name]
	m.Description = root.Get("description").String(&l.issues)
	m.Perpetual = root.Get("perpetual").Bool(&l.issues)
	if m.Name == "" {
		return
	}
	if err := l.open(); err != nil {
		l.report(root.Issuef("", "%v", err))
		return
	}
	before := len(l.issues.Errors())
	l.actions(l.need(root, "actions"))
	l.effects(l.need(root, "effects"))
	l.phases(l.need(root, "phases"))
	l.damaged = len(l.issues.Errors())-before > l.misguarded
	l.events(root.Get("events"))
	l.policies(l.need(root, "policies"))
	initial := l.need(root, "initial")
	m.Initial = initial.String(&l.issues)
	if initial.Exists() {
		l.targets = append(l.targets, target{initial, m.Initial})
	}
}

// open creates the scopes in which guards are compiled.
func (l *loader) open() error {
	lang, err := rules.NewLanguage(rules.Vocabulary{Objects: Objects()})
	if err != nil {
		return fmt.Errorf("state machine %s: %w", l.m.Name, err)
	}
	scopes := map[string]*rules.Scope{}
	all := map[string]map[string]*cel.Type{"": l.m.kind.roots}
	maps.Copy(all, l.m.kind.sources)
	for source, roots := range all {
		if scopes[source], err = lang.Scope(roots); err != nil {
			return fmt.Errorf("state machine %s: %w", l.m.Name, err)
		}
	}
	l.scopes = scopes
	return nil
}

// expr compiles a guard or another expression. It returns nil if the expression is absent.
func (l *loader) expr(v source.Value, source string, want rules.Kind) *eval.Expr {
	t := v.Text(&l.issues)
	if !v.Exists() || !t.Written() || l.scopes[source] == nil {
		return nil
	}
	e, issues := eval.Compile(l.scopes[source], t, want)
	if source == "" {
		l.misguarded += len(issues.Errors())
	}
	l.issues = append(l.issues, issues...)
	return e
}

func (l *loader) actions(v source.Value) {
	for _, f := range v.Fields(nil, &l.issues) {
		f.Value.Fields(keysOf("action"), &l.issues)
		if f.Name == anyAction {
			l.report(f.Key.Issuef("it stands for every other action, in a phase", "%q is no action", anyAction))
			continue
		}
		l.m.actions = append(l.m.actions, &action{
			name:        f.Name,
			description: f.Value.Get("description").String(&l.issues),
			internal:    f.Value.Get("internal").Bool(&l.issues),
			command:     f.Value.Get("command").Bool(&l.issues),
			of:          l.word(f.Value.Get("of"), "scope", l.m.kind.scopes),
		})
	}
}

func (l *loader) effects(v source.Value) {
	offered := slices.Sorted(maps.Keys(l.m.kind.effects))
	for _, f := range v.Fields(nil, &l.issues) {
		name := l.word(f.Key, "effect", offered)
		if name == "" {
			continue
		}
		e := &effect{name: name, kind: l.m.kind.effects[name]}
		l.m.effects = append(l.m.effects, e)
		if !e.kind.retains {
			f.Value.Fields([]string{}, &l.issues)
			continue
		}
		f.Value.Fields(keysOf("effect"), &l.issues)
		for i, item := range f.Value.Get("retain").Items(&l.issues) {
			item.Fields(keysOf("retain"), &l.issues)
			r := retainRow{name: item.Get("name").String(&l.issues), when: l.expr(item.Get("when"), "", rules.Bool())}
			if r.name == "" {
				r.name = fmt.Sprint(i)
			}
			r.retain = l.word(l.need(item, "retain"), "word of retain", retainWords())
			e.retain = append(e.retain, r)
		}
	}
}

func (l *loader) actionNames() []string {
	var out []string
	for _, a := range l.m.actions {
		out = append(out, a.name)
	}
	return out
}

func (l *loader) effectNames() []string {
	var out []string
	for _, e := range l.m.effects {
		out = append(out, e.name)
	}
	return out
}

func (l *loader) phases(v source.Value) {
	for _, f := range v.Fields(nil, &l.issues) {
		f.Value.Fields(keysOf("phase"), &l.issues)
		p := &phase{
			name:        f.Name,
			description: f.Value.Get("description").String(&l.issues),
			final:       f.Value.Get("final").Bool(&l.issues),
			entry:       f.Value.Get("entry").Bool(&l.issues),
			at:          f.Key,
		}
		if p.name == "" {
			l.report(f.Key.Issuef("give it a name", "a phase has no name"))
		}
		l.m.phases = append(l.m.phases, p)
		for _, a := range l.need(f.Value, "actions").Fields(nil, &l.issues) {
			if r := l.row(p, a); r != nil {
				p.rows = append(p.rows, r)
			}
		}
	}
}

func (l *loader) row(p *phase, f source.Field) *row {
	r := &row{phase: p.name, action: f.Name, at: f.Key}
	if f.Name != anyAction {
		r.action = l.word(f.Key, "action", append(l.actionNames(), anyAction))
	}
	v := f.Value
	if v.Kind() != source.Map {
		l.report(v.Issuef("write {do: EFFECT, to: PHASE}", "a row is wanted"))
		return nil
	}
	v.Fields(keysOf("row"), &l.issues)
	name := l.word(l.need(v, "do"), "effect", l.effectNames())
	if i := slices.IndexFunc(l.m.effects, func(e *effect) bool { return e.name == name }); i >= 0 {
		r.do = l.m.effects[i]
		l.retain(r, v)
	}
	r.to, r.toAt = l.to(v.Get("to")), v.Get("to")
	r.count = l.wordList(v.Get("count"), "counter", l.m.kind.counterNames())
	r.set = l.set(v.Get("set"))
	next := v.Get("next")
	if r.to != "" && next.Exists() {
		l.report(next.Issuef("keep one of them", "the row has both to and next"))
	}
	for i, item := range next.Items(&l.issues) {
		if n := l.next(r, item, i); n != nil {
			r.next = append(r.next, n)
		}
	}
	if r.action == "" {
		return nil
	}
	return r
}

// retain reads which pods stay. It is required for effects that end pods.
func (l *loader) retain(r *row, v source.Value) {
	got := v.Get("retain")
	switch {
	case got.Exists() && !r.do.kind.retains:
		l.report(got.Issuef("leave retain out", "the effect %s ends no pods", r.do.name))
	case r.do.kind.retains:
		if !got.Exists() {
			l.report(v.Issuef("add retain: "+strings.Join(retainWords(), " or retain: "), "retain is missing: the effect %s ends pods", r.do.name))
		}
		r.retain = l.word(got, "word of retain", retainWords())
	}
}

// set reads the fields that a row writes into the object.
func (l *loader) set(v source.Value) map[string]string {
	var out map[string]string
	for _, f := range v.Fields(slices.Sorted(maps.Keys(l.m.kind.sets)), &l.issues) {
		if out == nil {
			out = map[string]string{}
		}
		if l.m.kind.sets[f.Name] {
			out[f.Name] = strconv.FormatBool(f.Value.Bool(&l.issues))
		} else {
			out[f.Name] = f.Value.String(&l.issues)
		}
	}
	return out
}

// to reads the name of a phase. It is checked when all phases are known.
func (l *loader) to(v source.Value) string {
	s := v.String(&l.issues)
	if v.Exists() {
		l.targets = append(l.targets, target{v, s})
	}
	return s
}

func (l *loader) next(r *row, v source.Value, i int) *nextRow {
	if v.Kind() != source.Map {
		l.report(v.Issuef("write {when: GUARD, to: PHASE}", "a row is wanted"))
		return nil
	}
	v.Fields(keysOf("next"), &l.issues)
	n := &nextRow{
		name:    v.Get("name").String(&l.issues),
		when:    l.expr(v.Get("when"), "", rules.Bool()),
		after:   l.duration(v.Get("after")),
		to:      l.to(l.need(v, "to")),
		toAt:    v.Get("to"),
		count:   l.wordList(v.Get("count"), "counter", l.m.kind.counterNames()),
		set:     l.set(v.Get("set")),
		reason:  v.Get("reason").String(&l.issues),
		message: v.Get("message").String(&l.issues),
		at:      v,
	}
	if n.name == "" {
		n.name = fmt.Sprint(i)
	}
	if slices.ContainsFunc(r.next, func(o *nextRow) bool { return o.name == n.name }) {
		l.report(v.Get("name").Issuef("give it a name of its own", "duplicate name %q", n.name))
	}
	return n
}

func (l *loader) duration(v source.Value) time.Duration {
	before := len(l.issues)
	d := v.Duration(&l.issues)
	if v.Exists() && d <= 0 && len(l.issues) == before {
		l.report(v.Issuef("write how long, such as 10m", "a duration above 0 is wanted"))
	}
	return d
}

func exitCodes() rules.Kind {
	return rules.Exactly(cel.ListType(cel.IntType), "a list of ints")
}

func timestamp() rules.Kind {
	return rules.Kind{Name: "a timestamp", Accepts: func(t *cel.Type) bool { return t.Kind() == types.TimestampKind }}
}

func (l *loader) events(v source.Value) {
	sources := slices.Sorted(maps.Keys(l.m.kind.sources))
	for _, item := range v.Items(&l.issues) {
		item.Fields(keysOf("event"), &l.issues)
		r := &eventRow{
			name:        l.need(item, "name").String(&l.issues),
			description: item.Get("description").String(&l.issues),
			from:        l.word(l.need(item, "from"), "source of events", sources),
			event:       l.need(item, "event").String(&l.issues),
			otherwise:   l.word(item.Get("otherwise"), "action", l.actionNames()),
			after:       l.duration(item.Get("after")),
			at:          item,
		}
		if slices.ContainsFunc(l.m.events, func(o *eventRow) bool { return o.name == r.name }) {
			l.report(item.Get("name").Issuef("give it a name of its own", "duplicate name %q", r.name))
		}
		if r.from == "" {
			continue
		}
		r.when = l.expr(item.Get("when"), r.from, rules.Bool())
		r.while = l.expr(item.Get("while"), r.from, rules.Bool())
		r.since = l.expr(item.Get("since"), r.from, timestamp())
		r.exitCodes = l.expr(item.Get("exitCodes"), r.from, exitCodes())
		l.m.events = append(l.m.events, r)
	}
}

func (l *loader) policies(v source.Value) {
	var known []string
	for _, r := range l.m.events {
		known = append(known, r.event)
	}
	known = slices.Compact(slices.Sorted(slices.Values(known)))
	v.Fields(keysOf("policies"), &l.issues)
	l.m.policies = policyRules{
		anyEvent:    v.Get("any").String(&l.issues),
		internal:    l.wordList(v.Get("internal"), "event", known),
		needTimeout: l.wordList(v.Get("needTimeout"), "event", known),
		otherwise:   l.word(l.need(v, "otherwise"), "action", l.actionNames()),
	}
}
