package jobplugin

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/celsius-scheduler/celsius/crds"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/jobplugins"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/rules/typed"
)

const (
	fileVersion = "rules.celsius.dev/v1alpha1"
	fileKind    = "JobPlugin"
)

// Plugin is a compiled job plugin. It is immutable and safe to share.
type Plugin struct {
	Name, Description string
	// Needs are the plugins that a Job with this plugin gets, too.
	Needs []string

	digest      [sha256.Size]byte // of the content of its file
	last        bool              // its rows run after the rows of other plugins
	params      []*param
	variables   typed.Variables
	validations []*validation
	pods        []*podRow
	objects     []*object
}

// asked contains what rows of every section have.
type asked struct {
	name, doc string

	loops []typed.Loop
	when  *eval.Expr
}

// validation is a row that reports a mistake in a Job.
type validation struct {
	asked
	expression         *eval.Expr // nil: the row reports a mistake for each element
	fieldPath, message *typed.Text
}

// object is a row that creates an object in addition to a Job's pods.
type object struct {
	asked
	kind     string // apiVersion and kind, for example "v1 ConfigMap"
	template *template
	called   *typed.Text // its name
	once     bool        // the object is never updated
}

// kinds are the kinds that a plugin may create. The controllers have permissions for these kinds.
var kinds = map[string]reflect.Type{ //nolint:gochecknoglobals // a table that never changes
	"v1 ConfigMap":                       reflect.TypeFor[corev1.ConfigMap](),
	"v1 Secret":                          reflect.TypeFor[corev1.Secret](),
	"v1 Service":                         reflect.TypeFor[corev1.Service](),
	"networking.k8s.io/v1 NetworkPolicy": reflect.TypeFor[networkingv1.NetworkPolicy](),
}

// Kinds lists the kinds of objects that a plugin may create, for example "v1 ConfigMap".
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// language is the language of all plugins, with the types that rows read.
type language struct {
	*rules.Language
	job, task, pod, container *typed.Schema
}

var theLanguage = sync.OnceValues(func() (*language, error) { //nolint:gochecknoglobals // made once, as it is dear, and never changed
	l := &language{}
	var err error
	if l.job, err = typed.FromCRD(crds.JobManifest, "Job"); err != nil {
		return nil, err
	}
	for path, into := range map[string]**typed.Schema{
		"spec.tasks[0]": &l.task, "spec.tasks[0].template": &l.pod, "spec.tasks[0].template.spec.containers[0]": &l.container,
	} {
		steps, err := typed.ParsePath(path)
		if err != nil {
			return nil, err
		}
		if *into = l.job.At(steps); *into == nil {
			return nil, fmt.Errorf("schema of Job: there is no %s", path)
		}
	}
	byName := map[string]*rules.Object{}
	l.job.Objects(byName)
	var objects []*rules.Object
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		objects = append(objects, byName[name])
	}
	l.Language, err = rules.NewLanguage(rules.Vocabulary{Objects: objects, Functions: functions(l.job)})
	return l, err
})

// Set contains the plugins of a cluster.
type Set struct{ plugins map[string]*Plugin }

// Default returns the built-in plugins.
var Default = sync.OnceValues(func() (*Set, source.Issues) { //nolint:gochecknoglobals // made once, as it is dear, and never changed
	set, _, issues := (&Set{}).with(jobplugins.FS, "rules/jobplugins/")
	return set, issues
})

// LoadFS returns the built-in plugins, and those of the files *.yaml and *.yml of a folder, which replace built-in plugins of the same
// name. own lists the names of the folder's plugins. It returns the mistakes of all files at once. If one has severity Error, it returns no
// Set.
func LoadFS(fsys fs.FS) (set *Set, own []string, issues source.Issues) {
	shipped, issues := Default()
	if shipped == nil {
		return nil, nil, issues
	}
	return shipped.with(fsys, "")
}

// LoadFile does the same as LoadFS with one file.
func LoadFile(name string, data []byte) (set *Set, own []string, issues source.Issues) {
	shipped, issues := Default()
	if shipped == nil {
		return nil, nil, issues
	}
	add := shipped.adding()
	add.file(name, data)
	return add.done()
}

// LoadDocuments does the same as LoadFS with parsed documents.
func LoadDocuments(docs ...*source.Document) (set *Set, own []string, issues source.Issues) {
	shipped, issues := Default()
	if shipped == nil {
		return nil, nil, issues
	}
	add := shipped.adding()
	for _, doc := range docs {
		add.document(doc)
	}
	return add.done()
}

func (s *Set) with(fsys fs.FS, prefix string) (*Set, []string, source.Issues) {
	add := s.adding()
	unread := source.ReadFolder(fsys, func(name string, data []byte) { add.file(prefix+name, data) })
	add.issues = append(add.issues, unread...)
	return add.done()
}

// adding is a Set to which plugins are added.
type adding struct {
	set    *Set
	from   map[string]source.Value // position of each added plugin, by name
	issues source.Issues
}

func (s *Set) adding() *adding {
	out := &adding{set: &Set{maps.Clone(s.plugins)}, from: map[string]source.Value{}}
	if out.set.plugins == nil {
		out.set.plugins = map[string]*Plugin{}
	}
	return out
}

func (a *adding) file(name string, data []byte) {
	docs, found := source.Parse(name, data)
	a.issues = append(a.issues, found...)
	if len(docs) == 0 && found.Err() == nil {
		a.issues = append(a.issues, source.Issue{File: name, Message: "holds no document; a JobPlugin is wanted"})
	}
	for _, doc := range docs {
		a.document(doc)
	}
}

func (a *adding) document(doc *source.Document) {
	p, found := Load(doc)
	a.issues = append(a.issues, found...)
	if p == nil {
		return
	}
	at := doc.Root.Get("metadata").Get("name")
	if first, twice := a.from[p.Name]; twice {
		line, _ := first.Pos()
		a.issues = append(a.issues, at.Issuef("give it a name of its own", "there is a plugin %q already, on line %d of %s", p.Name, line,
			first.Issuef("", "").File))
	}
	a.from[p.Name], a.set.plugins[p.Name] = at, p
}

func (a *adding) done() (*Set, []string, source.Issues) {
	own := slices.Sorted(maps.Keys(a.from))
	for _, name := range own {
		for _, needed := range a.set.plugins[name].Needs {
			if a.set.plugins[needed] == nil {
				hint := source.Suggest(needed, a.set.Names())
				a.issues = append(a.issues, a.from[name].Issuef(hint, "it needs the plugin %q, and there is none", needed))
			}
		}
	}
	a.issues.Sort()
	if a.issues.Err() != nil {
		return nil, nil, a.issues
	}
	return a.set, own, a.issues
}

// Names lists the plugins, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.plugins)) }

// Plugin returns the plugin of that name, or nil.
func (s *Set) Plugin(name string) *Plugin { return s.plugins[name] }

// Needs lists the plugins that a Job with this plugin gets, too, directly or indirectly, sorted.
func (s *Set) Needs(name string) []string {
	seen := map[string]bool{name: true}
	var out []string
	for todo := []string{name}; len(todo) > 0; todo = todo[1:] {
		p := s.plugins[todo[0]]
		if p == nil {
			continue
		}
		for _, needed := range p.Needs {
			if !seen[needed] {
				seen[needed] = true
				out, todo = append(out, needed), append(todo, needed)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Load compiles a plugin. It returns all mistakes at once, each with its position. If one has severity Error, it returns no Plugin.
func Load(doc *source.Document) (*Plugin, source.Issues) {
	lang, err := theLanguage()
	if err != nil {
		return nil, source.Issues{doc.Root.Issuef("", "%v", err)}
	}
	c := &compiler{plugin: &Plugin{}, lang: lang, names: map[string]source.Value{}}
	c.read(doc.Root)
	if text, err := json.Marshal(doc.Root.Any()); err == nil {
		c.plugin.digest = sha256.Sum256(text)
	}
	c.issues.Sort()
	if c.issues.Err() != nil {
		return nil, c.issues
	}
	return c.plugin, c.issues
}

// compiler is the state of one Load.
type compiler struct {
	plugin *Plugin
	lang   *language
	names  map[string]source.Value
	// same states that no expression since the beginning of the row depends on the pod.
	same   bool
	issues source.Issues
}

// ofPods are the roots that differ between the pods of a Job.
var ofPods = []string{"task", "index", "pod", "container"} //nolint:gochecknoglobals // a table that never changes

func (c *compiler) report(i source.Issue) { c.issues = append(c.issues, i) }

// need reports missing keys.
func (c *compiler) need(v source.Value, keys ...string) {
	for _, key := range keys {
		if !v.Get(key).Exists() && v.Kind() == source.Map {
			c.report(v.Issuef("add "+key, "%s is missing", key))
		}
	}
}

// unique reads a name and reports it if the section already contains it.
func (c *compiler) unique(v source.Value) string {
	name := v.String(&c.issues)
	if first, twice := c.names[name]; twice {
		line, _ := first.Pos()
		c.report(v.Issuef("give it a name of its own", "duplicate name %q (first on line %d)", name, line))
	}
	c.names[name] = v
	return name
}

// section begins a section. Names are unique within a section.
func (c *compiler) section(v source.Value) []source.Value {
	c.names = map[string]source.Value{}
	return v.Items(&c.issues)
}

func (c *compiler) read(root source.Value) {
	for _, want := range [][2]string{{"apiVersion", fileVersion}, {"kind", fileKind}} {
		if got := root.Get(want[0]).String(&c.issues); got != want[1] {
			c.report(root.Get(want[0]).Issuef("write "+want[1], "%s is %q", want[0], got))
		}
	}
	root.Fields(keysOf(partFile), &c.issues)
	c.need(root, "metadata", "description")
	root.Get("metadata").Fields([]string{"name"}, &c.issues)
	p := c.plugin
	name := root.Get("metadata").Get("name")
	if p.Name = name.String(&c.issues); p.Name == "" {
		c.report(name.Issuef("give it the name by which Jobs ask for it", "the name is empty"))
	}
	p.Description, p.Needs = root.Get("description").String(&c.issues), root.Get("needs").Strings(&c.issues)
	p.last = root.Get("last").Bool(&c.issues)
	p.params = c.readParams(root.Get("params"))
	for _, item := range c.section(root.Get("variables")) {
		item.Fields([]string{"name", "description", "expression"}, &c.issues)
		c.need(item, "name", "expression")
		name := c.unique(item.Get("name"))
		if e := c.compileWith(c.jobRoots(), item.Get("expression").Text(&c.issues), rules.Anything()); e != nil {
			p.variables.Add(name, e)
		}
	}
	for _, item := range c.section(root.Get("validations")) {
		c.readValidation(item)
	}
	for _, item := range c.section(root.Get("pods")) {
		c.readPodRow(item)
	}
	for _, item := range c.section(root.Get("objects")) {
		c.readObject(item)
	}
}

// jobRoots returns the roots that every row can read.
func (c *compiler) jobRoots() map[string]*cel.Type {
	return map[string]*cel.Type{"job": c.lang.job.Type(), "params": paramsType(), "variables": typed.VariablesType()}
}

// podRoots returns the roots that rows of pods can read.
func (c *compiler) podRoots() map[string]*cel.Type {
	roots := c.jobRoots()
	maps.Copy(roots, map[string]*cel.Type{
		"task": c.lang.task.Type(), "index": cel.IntType, "pod": c.lang.pod.Type(), "container": c.lang.container.Type(),
	})
	return roots
}

func (c *compiler) compileWith(roots map[string]*cel.Type, t source.Text, want rules.Kind) *eval.Expr {
	scope, err := c.lang.Scope(roots, paramsObject(c.plugin.params), c.plugin.variables.Object())
	if err != nil {
		c.report(t.Issue(0, 1, err.Error(), ""))
		return nil
	}
	e, issues := eval.Compile(scope, t, want)
	c.issues = append(c.issues, issues...)
	if e != nil && slices.ContainsFunc(e.Reads.All, func(r rules.Read) bool { return slices.Contains(ofPods, r.Root) }) {
		c.same = false
	}
	return e
}

// seeing returns a function that compiles expressions with these roots and additional ones.
func (c *compiler) seeing(roots map[string]*cel.Type) typed.Compile {
	return func(t source.Text, extra map[string]*cel.Type, want rules.Kind) *eval.Expr {
		all := maps.Clone(roots)
		maps.Copy(all, extra)
		return c.compileWith(all, t, want)
	}
}

// text compiles a text whose CEL parts can read these roots.
func (c *compiler) text(t source.Text, roots map[string]*cel.Type) *typed.Text {
	compile := func(part source.Text) *eval.Expr { return c.compileWith(roots, part, rules.Anything()) }
	return typed.ParseText(t, compile, c.report)
}

// readAsked reads the keys that rows of every section have. It also returns the roots for the rest of the row, or false if they are
// unknown.
func (c *compiler) readAsked(item source.Value, roots map[string]*cel.Type) (a asked, sees map[string]*cel.Type, ok bool) {
	a.name, a.doc = c.unique(item.Get("name")), item.Get("description").String(&c.issues)
	loops, extra, ok := typed.ReadLoops(item.Get("forEach"), c.seeing(roots), roots, &c.issues)
	if !ok {
		return a, nil, false
	}
	a.loops, sees = loops, maps.Clone(roots)
	maps.Copy(sees, extra)
	if when := item.Get("when"); when.Exists() {
		a.when = c.compileWith(sees, when.Text(&c.issues), rules.Bool())
	}
	return a, sees, true
}

func (c *compiler) readValidation(item source.Value) {
	item.Fields(keysOf(partValidation), &c.issues)
	c.need(item, "name", "message")
	a, sees, ok := c.readAsked(item, c.jobRoots())
	if !ok {
		return
	}
	v := &validation{asked: a}
	if e := item.Get("expression"); e.Exists() {
		v.expression = c.compileWith(sees, e.Text(&c.issues), rules.Bool())
	}
	if at := item.Get("fieldPath"); at.Exists() {
		v.fieldPath = c.text(at.Text(&c.issues), sees)
	}
	v.message = c.text(item.Get("message").Text(&c.issues), sees)
	c.plugin.validations = append(c.plugin.validations, v)
}

func (c *compiler) readObject(item source.Value) {
	item.Fields(keysOf(partObject), &c.issues)
	c.need(item, "name", "object")
	a, sees, ok := c.readAsked(item, c.jobRoots())
	v := item.Get("object")
	if !ok || !v.Exists() {
		return
	}
	o := &object{asked: a, kind: v.Get("apiVersion").String(&c.issues) + " " + v.Get("kind").String(&c.issues)}
	t := kinds[o.kind]
	if t == nil {
		c.report(v.Issuef("", "a plugin makes no %s; it may make %s", strings.TrimSpace(o.kind), strings.Join(Kinds(), ", ")))
		return
	}
	meta := v.Get("metadata")
	meta.Fields([]string{"name", "labels", "annotations"}, &c.issues)
	c.need(v, "metadata")
	c.need(meta, "name")
	o.called = c.text(meta.Get("name").Text(&c.issues), sees)
	o.template = c.readTemplate(v, t, sees)
	o.once = item.Get("once").Bool(&c.issues)
	if !o.once && o.kind == "v1 Secret" {
		c.report(item.Issuef("add once: true, and put what changes into a ConfigMap",
			"the controllers read no Secret, so one is made once and stays as it is"))
	}
	c.plugin.objects = append(c.plugin.objects, o)
}
