package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Objects is the content of a set of sources.
type Objects struct {
	// Policies are the SchedulingPolicies, and JobPlugins the JobPlugins, in the order of the sources.
	Policies, JobPlugins []Uncompiled

	// Items are all other objects.
	Items []Item
}

// Uncompiled is a SchedulingPolicy or a JobPlugin as its author wrote it.
type Uncompiled struct {
	Name   string
	Doc    *source.Document
	Stored bool // it was read from a cluster
}

// LeftOut converts the mistakes of an object of a cluster to warnings that the object is left out.
func (u *Uncompiled) LeftOut(kindName string, issues source.Issues) source.Issues {
	l := loader{issues: issues.Errors()}
	l.forgive(0, ID{Kind: kindName, Name: u.Name}, false)
	return l.issues
}

// Item is one object and its place in a source.
type Item struct {
	Kind   string
	Object metav1.Object
	Value  source.Value
	Comes  time.Time // when it is created; zero: at once
	Stored bool      // it was read from a cluster
	OfJob  bool      // a pod of a job of the short format
}

// ID returns the ID of the object.
func (i Item) ID() ID {
	return ID{i.Kind, i.Object.GetNamespace(), i.Object.GetName()}
}

// ID identifies an object.
type ID struct{ Kind, Namespace, Name string }

// String returns the kind and the name with its namespace, for messages.
func (id ID) String() string {
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}

// Load reads sources into objects. It returns all mistakes of all sources, and warnings. If there is a mistake, the objects are incomplete.
func Load(o Options, sources ...Source) (*Objects, source.Issues) {
	l := loader{
		now: o.Now, scheduler: OurSchedulers(o.SchedulerNames)[0], limit: cmp.Or(o.MaxObjects, maxObjects), out: &Objects{},
		foreign: map[string]int{},
	}
	l.shape = newShape(&l.issues)
	for _, s := range sources {
		docs, issues := source.ParseShallow(s.Name, s.Data)
		l.issues = append(l.issues, issues...)
		for _, d := range docs {
			l.document(d)
		}
		if len(docs) == 0 && len(issues) == 0 {
			l.issues = append(l.issues, source.Issue{File: s.Name, Severity: source.Warning, Message: "the file holds no object"})
		}
		l.skipped(s.Name)
	}
	l.duplicates()
	l.boundPods()
	l.issues.Sort()
	return l.out, l.issues
}

// Options contains defaults for the sources.
type Options struct {
	// Now is the time from which durations in the short format count back.
	Now time.Time
	// SchedulerNames are the names of our schedulers. The first one is the default for pods; none: celsius, volcano.
	SchedulerNames []string
	// MaxObjects is the maximum number of pods that the Jobs of all sources create. It is also the maximum number of objects in their
	// short-format documents; 0: 200,000.
	MaxObjects int
}

// OurSchedulers returns the names of our schedulers: the given ones, or the defaults.
func OurSchedulers(names []string) []string {
	if len(names) == 0 {
		return []string{"celsius", "volcano"}
	}
	return names
}

type loader struct {
	now       time.Time
	scheduler string
	limit     int
	out       *Objects
	issues    source.Issues
	shape     *shape
	foreign   map[string]int // kinds that were skipped in lists of the current source
	made      int            // number of objects in the short-format documents
}

func (l *loader) document(d *source.Document) {
	if name, _ := HeadOf(d.Root); name == worldKind {
		if !l.isTooDeep(d.Root, worldKind) {
			l.world(d.Root)
		}
		return
	}
	l.object(d, d.Root, "", false)
}

// HeadOf returns kind and apiVersion, without reporting mistakes.
func HeadOf(v source.Value) (kindName, apiVersion string) {
	kindName, _ = v.Get("kind").Any().(string)
	apiVersion, _ = v.Get("apiVersion").Any().(string)
	return kindName, apiVersion
}

// object reads one object. Items of a typed list (PodList) need not repeat their kind: implied contains it. An unknown kind inside a list
// is skipped.
func (l *loader) object(d *source.Document, v source.Value, implied string, inList bool) {
	name, version, ok := l.head(v, implied)
	if !ok {
		return
	}
	if item, isList := listed(name); isList && !inList {
		l.list(d, v, item)
		return
	}
	if name == PolicyKind && version == PolicyVersion {
		l.uncompiled(d, v, name, &l.out.Policies)
		return
	}
	if name == jobPluginKind && version == jobPluginVersion {
		l.uncompiled(d, v, name, &l.out.JobPlugins)
		return
	}
	k, known, right := findKind(version, name)
	switch {
	case right:
		l.add(k, v)
	case inList:
		l.foreign[strings.TrimSuffix(name+" of "+version, " of ")]++
	default:
		l.unknownKind(v, k, known, name, version)
	}
}

func (l *loader) head(v source.Value, implied string) (name, version string, ok bool) {
	if v.Kind() != source.Map {
		l.report(v.Issuef("every object opens with apiVersion and kind", "must be an object"))
		return "", "", false
	}
	if implied != "" && !v.Get("kind").Exists() {
		if implied == PolicyKind {
			return PolicyKind, PolicyVersion, true
		}
		k, _, _ := findKind("", implied)
		return implied, k.apiVersion, true
	}
	before := len(l.issues)
	for _, field := range []string{"apiVersion", "kind"} {
		if f := v.Get(field); f.Exists() {
			f.String(&l.issues)
		} else {
			l.report(v.Issuef("every object opens with apiVersion and kind", "lacks %s", field))
		}
	}
	name, version = HeadOf(v)
	return name, version, len(l.issues) == before
}

func (l *loader) unknownKind(v source.Value, k kind, known bool, name, version string) {
	right := k.apiVersion
	switch name {
	case PolicyKind:
		known, right = true, PolicyVersion
	case jobPluginKind:
		known, right = true, jobPluginVersion
	case worldKind:
		known, right = true, WorldVersion
	}
	if known {
		l.report(v.Get("apiVersion").Issuef("write "+right, "%s is not of %s", name, version))
		return
	}
	hint := "known are " + strings.Join(kindNames(), ", ")
	if near := source.Nearest(name, kindNames()); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	l.report(v.Get("kind").Issuef(hint, "%s of %s is no kind that can be simulated", name, version))
}

func (l *loader) list(d *source.Document, v source.Value, implied string) {
	items := v.Get("items")
	if !items.Exists() {
		l.report(v.Issuef("", "a list lacks items"))
		return
	}
	for _, f := range v.Fields(nil, &l.issues) {
		if issue, found := f.Value.TooDeep(); found && (f.Name != "items" || items.Kind() != source.List) {
			l.report(issue)
		}
	}
	for _, i := range items.Items(&l.issues) {
		l.object(d, i, implied, true)
	}
}

// isTooDeep reports an object with a field that is nested too deeply to be read. Such an object is left out.
func (l *loader) isTooDeep(v source.Value, kindName string) bool {
	issue, found := v.TooDeep()
	if !found {
		return false
	}
	before := len(l.issues)
	l.report(issue)
	if isStored(v) {
		l.forgive(before, writtenID(kindName, v), false)
	}
	return true
}

// writtenID returns the ID of an object that may not be decodable.
func writtenID(kindName string, v source.Value) ID {
	namespace, _ := v.Get("metadata").Get("namespace").Any().(string)
	name, _ := v.Get("metadata").Get("name").Any().(string)
	return ID{kindName, namespace, name}
}

// uncompiled stores an object that other packages compile.
func (l *loader) uncompiled(d *source.Document, v source.Value, kindName string, into *[]Uncompiled) {
	if l.isTooDeep(v, kindName) {
		return
	}
	name := v.Get("metadata").Get("name")
	if !name.Exists() {
		l.report(v.Issuef("", "the %s lacks metadata.name", kindName))
		return
	}
	doc := *d
	doc.Root = v
	*into = append(*into, Uncompiled{Name: name.String(&l.issues), Doc: &doc, Stored: isStored(v)})
}

// add decodes one object of a known kind, and checks its own text. The mistakes of an object that was read from a cluster are warnings: one
// object must not hide the decisions for all others. add decodes such an object as the caches of the scheduler do: it ignores unknown
// fields, and leaves out the object if a field cannot be decoded.
func (l *loader) add(k kind, v source.Value) {
	if l.isTooDeep(v, k.name) {
		return
	}
	object := k.empty()
	before, stored := len(l.issues), isStored(v)
	fine := l.shape.decode(v, object)
	if !fine && stored {
		fine = decoded(v, object) == nil && object.GetName() != ""
	}
	if fine {
		checked := len(l.issues)
		l.named(k, v, object)
		l.content(v, object)
		fine = len(l.issues) == checked || stored && !l.tooLarge(object)
	}
	if stored {
		l.forgive(before, writtenID(k.name, v), fine)
	}
	if fine {
		l.out.Items = append(l.out.Items, Item{Kind: k.name, Object: object, Value: v, Stored: stored})
	}
}

// isStored reports whether an object was read from a cluster: only the API server sets a UID.
func isStored(v source.Value) bool {
	uid, _ := v.Get("metadata").Get("uid").Any().(string)
	return uid != ""
}

// forgive converts the mistakes of an object that was read from a cluster to warnings. They name the object, and state whether it is left
// out.
func (l *loader) forgive(before int, id ID, taken bool) {
	for n := range l.issues[before:] {
		i := &l.issues[before+n]
		if i.Severity != source.Error {
			continue
		}
		i.Severity = source.Warning
		what := ": "
		if !taken {
			what = " is left out: "
		}
		i.Message = id.String() + what + strings.TrimPrefix(i.Message, id.String()+": ")
	}
}

func (l *loader) named(k kind, v source.Value, object metav1.Object) {
	name := v.Get("metadata").Get("name")
	if object.GetName() == "" {
		l.report(v.Issuef("", "the %s lacks metadata.name", k.name))
		return
	}
	if bad := validation.NameIsDNSSubdomain(object.GetName(), false); len(bad) > 0 {
		l.report(name.Issuef("small letters, digits, - and . only", "%q is no name of a %s", object.GetName(), k.name))
	}
	switch namespace := v.Get("metadata").Get("namespace"); {
	case !k.namespaced && object.GetNamespace() != "":
		l.report(namespace.Issuef("leave it out", "a %s has no namespace", k.name))
	case k.namespaced && object.GetNamespace() == "":
		object.SetNamespace(metav1.NamespaceDefault)
	}
}

// skipped warns about the kinds that were skipped in lists of one source.
func (l *loader) skipped(file string) {
	for _, name := range slices.Sorted(maps.Keys(l.foreign)) {
		l.issues = append(l.issues, source.Issue{
			File: file, Severity: source.Warning,
			Message: fmt.Sprintf("%d x %s in a list: passed over", l.foreign[name], name),
			Hint:    "known are " + strings.Join(kindNames(), ", "),
		})
	}
	clear(l.foreign)
}

// duplicates reports the second of two objects with one name. If both were read from a cluster, it leaves out the second one.
func (l *loader) duplicates() {
	seen := map[ID]source.Value{}
	isSecond := func(id ID, v source.Value) (leftOut bool) {
		first, twice := seen[id]
		if !twice {
			seen[id] = v
			return false
		}
		before := len(l.issues)
		l.report(v.Issuef("", "%s is there twice; the first is at %s", id, placeOf(first)))
		if leftOut = isStored(v) && isStored(first); leftOut {
			l.forgive(before, id, false)
		}
		return leftOut
	}
	l.out.Items = slices.DeleteFunc(l.out.Items, func(i Item) bool { return isSecond(i.ID(), i.Value) })
	l.out.Policies = slices.DeleteFunc(l.out.Policies, func(p Uncompiled) bool {
		return isSecond(ID{Kind: PolicyKind, Name: p.Name}, p.Doc.Root)
	})
	l.out.JobPlugins = slices.DeleteFunc(l.out.JobPlugins, func(p Uncompiled) bool {
		return isSecond(ID{Kind: jobPluginKind, Name: p.Name}, p.Doc.Root)
	})
}

// placeOf returns a value's place, for messages.
func placeOf(v source.Value) string {
	i := v.Issuef("", "")
	return fmt.Sprintf("%s:%d", i.File, i.Line)
}

func (l *loader) report(i source.Issue) { l.issues = append(l.issues, i) }

// CompareIDs orders objects by kind, namespace, name.
func CompareIDs(a, b ID) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// IDOf returns the ID of an object in a world.
func IDOf(o metav1.Object) ID {
	id := ID{storageKind(o), o.GetNamespace(), o.GetName()}
	if id.Kind != "" {
		return id
	}
	switch o.(type) {
	case *corev1.Node:
		id.Kind = "Node"
	case *corev1.Pod:
		id.Kind = "Pod"
	case *corev1.Namespace:
		id.Kind = "Namespace"
	case *corev1.ResourceQuota:
		id.Kind = "ResourceQuota"
	case *corev1.LimitRange:
		id.Kind = "LimitRange"
	case *policyv1.PodDisruptionBudget:
		id.Kind = "PodDisruptionBudget"
	case *metricsv1beta1.NodeMetrics:
		id.Kind = "NodeMetrics"
	case *nodeinfov1alpha1.Numatopology:
		id.Kind = "Numatopology"
	case *extender.Answer:
		id.Kind = extender.Kind
	case *schedulingv1beta1.PodGroup:
		id.Kind = "PodGroup"
	case *schedulingv1beta1.Queue:
		id.Kind = "Queue"
	case *batchv1alpha1.Job:
		id.Kind = "Job"
	default:
		id.Kind = "PriorityClass"
	}
	return id
}
