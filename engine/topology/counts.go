package topology

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// Counts counts, by topology domain, the placed tasks that terms of pods select, and the placed tasks whose own terms select others. It
// follows the cluster by its log of tasks. A step updates the tallies that count the changed task, and costs nothing if there are no terms.
// All new terms are counted together in one walk over the placed tasks.
//
// A task counts where it is or is promised. A releasing task counts for affinity until it is gone, but not for spread, as in
// kube-scheduler.
type Counts struct {
	c *model.Cluster
	// memo returns the memory for what is known about a task.
	memo func(*model.Task) *TaskMemo

	asOf
	selecting
	known

	version    uint64 // changes when terms come or go: a context is valid for one version
	changes    uint64 // number of changes of counts
	addedFrom  int    // number of tallies from which sums are cached; tests set it
	apart      bool   // the counts leave out a placed task during a question
	moves      uint64 // number of times that nodes changed their domains
	topologies map[string]*domains
	rows       []seenNode
	labelled   map[string]int // number of nodes that have a label, by its key
	total      int            // number of nodes
	fresher    bool           // everything was counted from scratch, and it is not known yet how much of it is in use
	text       []byte         // scratch
	log        struct {
		of int32
		is float64
	}
}

// asOf is the state of the cluster for which everything was counted.
type asOf struct {
	clock      uint64 // of the cluster
	cursor     follow.Cursor[*model.Task]
	objects    uint64 // ObjectClock
	namespaces uint64 // NamespaceClock
}

// selecting contains the selectors of terms, and the placed tasks that they select.
type selecting struct {
	ids          int // number of ids of selectors and tallies; an id is never reused
	freshFrom    int // selectors with this id or a higher one are not matched with placed tasks yet
	fresh        []*Tally
	byLabels     bool // some selector reads labels of namespaces
	selectors    map[string]*selector
	byLabel      map[model.Label][]*selector
	rest         []*selector // the selectors that name no label
	tallies      map[string]*Tally
	inclusive    []*Tally // the tallies that do not count every node
	inclusions   map[string]*inclusion
	scopes       map[scopeKey]*scope
	conjunctions map[string]*conjunction
	names        map[string]string // short names of long texts, for keys
	images       map[string]*Tally // by image: the images that some task needs
}

// known contains what is known about tasks, by their terms.
type known struct {
	templates map[string]*template
	dead      int // number of templates without tasks
	contexts  map[string]*Context
	records   map[*model.Task]*record
	swept     slab.Swept // for contexts and images
}

// TaskMemo is what Counts remembers about one task; the zero value is empty.
type TaskMemo struct {
	context   *Context
	contextAt uint64
	matched   []*selector
	matchedAt int
}

// New returns empty Counts. memo returns the memory for what is remembered about a task.
func New(c *model.Cluster, memo func(*model.Task) *TaskMemo) *Counts {
	return &Counts{c: c, memo: memo, addedFrom: addedFrom}
}

// seenNode contains the parts of a node's object that the counts depend on.
type seenNode struct {
	object uint64 // the version of the object
	name   string
	labels map[string]string
	taints []corev1.Taint
	images map[string]int64
}

// selector is one selector of pods.
type selector struct {
	model.PodSelector
	id         int
	counted    []*Tally        // tallies of tasks that match the selector
	asking     []*Tally        // tallies of tasks whose terms use the selector
	namespaces map[string]bool // cached results of HasNamespace
}

func (x *selector) matches(c *model.Cluster, t *model.Task) bool {
	in, known := x.namespaces[t.Namespace]
	if !known {
		in = x.HasNamespace(t.Namespace, c.NamespaceLabels(t.Namespace))
		x.namespaces[t.Namespace] = in
	}
	return in && x.HasLabels(t.Labels)
}

// record is the data about one task that counts somewhere, or has terms.
type record struct {
	object    *corev1.Pod
	template  *template
	matched   []*selector
	matchedAt int // freshFrom at the time of the match

	row     int32
	leaving bool
}

// counts reports whether a task affects the counts: it has terms, or it is on a node and terms select it.
func (p *Counts) counts(t *model.Task) bool {
	if finished(t) || p.c.Tasks[t.Key] != t {
		return false
	}
	return t.PodTerms != nil || len(p.selectors) > 0 && t.Node != model.NoNode && len(p.matched(t)) > 0
}

// finished reports whether a task is on no node and will never be on one, so that its terms have no effect.
func finished(t *model.Task) bool { return t.Status == model.Succeeded || t.Status == model.Failed }

// stands reports whether a task counts in the same way as before. Among unfinished statuses, only Releasing makes a difference.
func (rec *record) stands(t *model.Task) bool {
	return rec != nil && !finished(t) && rec.object == t.Object && rec.row == t.Node && rec.leaving == (t.Status == model.Releasing)
}

// reset forgets everything except the used ids.
func (p *Counts) reset() {
	p.ids++ // so that no cached match of a task seems valid
	p.fresh, p.dead, p.byLabels, p.freshFrom = nil, 0, false, p.ids+1
	p.topologies, p.selectors, p.tallies = map[string]*domains{}, map[string]*selector{}, map[string]*Tally{}
	p.byLabel, p.rest, p.inclusive = map[model.Label][]*selector{}, nil, nil
	p.conjunctions = map[string]*conjunction{}
	p.inclusions, p.scopes, p.names = map[string]*inclusion{}, map[scopeKey]*scope{}, map[string]string{}
	p.templates, p.contexts, p.records = map[string]*template{}, map[string]*Context{}, map[*model.Task]*record{}
	p.images, p.total = map[string]*Tally{}, 0
	p.rows, p.labelled = p.rows[:0], map[string]int{}
	p.version++
	p.moves++
}

// sync updates the counts. If nothing changed, it costs one comparison.
func (p *Counts) sync() {
	c := p.c
	if p.cursor.Begun() && p.clock == c.Clock {
		return
	}
	entries, ok := p.cursor.Read(&c.TaskLog)
	const many = 64
	switch {
	case !ok, p.byLabels && p.namespaces != c.NamespaceClock, p.dead > many && 2*p.dead > len(p.templates):
		p.reset()
		p.remap()
		for _, t := range c.Tasks {
			if t.PodTerms != nil {
				c.Breathe()
				p.update(t)
			}
		}
	default:
		p.growRows()
		for _, t := range entries {
			c.Breathe()
			p.update(t)
		}
		if p.objects != c.ObjectClock {
			p.remap()
		}
	}
	p.fill()
	p.clock, p.objects, p.namespaces = c.Clock, c.ObjectClock, c.NamespaceClock
}

// update updates the counts of one task.
func (p *Counts) update(t *model.Task) {
	rec := p.records[t]
	switch {
	case rec == nil && !p.counts(t), rec.stands(t) && p.c.Tasks[t.Key] == t:
		return
	}
	if rec != nil && rec.row != model.NoNode {
		p.count(rec, -1, true)
		rec.row = model.NoNode
	}
	switch {
	case p.c.Tasks[t.Key] != t || finished(t):
		if rec != nil {
			p.assign(rec, nil)
			delete(p.records, t)
		}
		return
	case rec == nil:
		rec = &record{row: model.NoNode, matchedAt: -1}
		p.records[t] = rec
	}
	if rec.object != t.Object {
		p.assign(rec, p.template(t)) // the template in the record belongs to the older object
		rec.object, rec.matchedAt = t.Object, -1
	}
	if t.Node == model.NoNode {
		return
	}
	if rec.matchedAt != p.freshFrom {
		rec.matched, rec.matchedAt = slices.Clone(p.matched(t)), p.freshFrom
	}
	rec.row, rec.leaving = t.Node, t.Status == model.Releasing
	p.count(rec, 1, true)
}

// assign sets the template of a task.
func (p *Counts) assign(rec *record, to *template) {
	if rec.template == to {
		return
	}
	if rec.template != nil {
		if rec.template.owners--; rec.template.owners == 0 {
			p.dead++
			p.noteUse(rec.template, -1)
		}
	}
	if rec.template = to; to == nil {
		return
	}
	if to.owners++; to.owners == 1 {
		if to.counted {
			p.dead--
		}
		p.noteUse(to, 1)
	}
	to.counted = true
}

// noteUse records that a template came into use, or is no longer used. If no other template has its terms, the contexts of the tasks that
// they select change.
func (p *Counts) noteUse(x *template, by int) {
	for _, ta := range x.asks {
		if ta.askers += by; ta.askers == max(by, 0) {
			p.version++
		}
	}
}

// count adds a task to the tallies that count it, or removes it. filled selects the complete tallies, or those that are being filled.
func (p *Counts) count(rec *record, sign int64, filled bool) {
	p.changes++
	var last *conjunction // the tallies of one pod's affinity share one
	in := false
	for _, x := range rec.matched {
		for _, ta := range x.counted {
			if ta.filled != filled || ta.staying && rec.leaving {
				continue
			}
			if ta.also != nil {
				if ta.also != last {
					last, in = ta.also, ta.also.in(rec.matched)
				}
				if !in {
					continue
				}
			}
			ta.bump(rec.row, sign)
		}
	}
	if rec.template == nil {
		return
	}
	for _, ta := range rec.template.asks {
		if ta.filled == filled {
			ta.bump(rec.row, sign)
		}
	}
}

// fill counts the placed tasks in the new tallies.
func (p *Counts) fill() {
	if len(p.fresh) == 0 && p.freshFrom > p.ids {
		return
	}
	n, spoken := &p.c.Nodes, p.freshNamespaces()
	for row := range n.Rows {
		for _, t := range n.Tasks[row] {
			p.c.Breathe()
			rec := p.records[t]
			if rec == nil && spoken != nil && !spoken[t.Namespace] {
				continue
			}
			found := p.candidates(nil, t, p.freshFrom)
			if rec == nil {
				if len(found) == 0 {
					continue
				}
				rec = &record{object: t.Object, row: int32(row), leaving: t.Status == model.Releasing}
				p.records[t] = rec
			}
			rec.matched = append(rec.matched, found...)
			p.count(rec, 1, false)
		}
	}
	for _, rec := range p.records {
		if rec.row != model.NoNode {
			rec.matchedAt = p.ids + 1
		}
	}
	for _, ta := range p.fresh {
		ta.filled = true
		if ta.limit != nil {
			ta.limit.settle(ta)
		}
	}
	p.fresh, p.freshFrom = nil, p.ids+1
	p.version++
}

// freshNamespaces returns the namespaces that the new selectors select; nil: any namespace.
func (p *Counts) freshNamespaces() map[string]bool {
	out := map[string]bool{}
	for _, x := range p.selectors {
		switch {
		case x.id < p.freshFrom:
		case x.ByLabels != nil:
			return nil
		default:
			for _, name := range x.Namespaces {
				out[name] = true
			}
		}
	}
	return out
}

// matched lists the selectors that select a task, without those that are not matched with placed tasks yet.
func (p *Counts) matched(t *model.Task) []*selector {
	v := p.memo(t)
	if v.matchedAt != p.freshFrom {
		v.matched, v.matchedAt = slices.DeleteFunc(p.candidates(nil, t, 0), func(x *selector) bool { return x.id >= p.freshFrom }), p.freshFrom
	}
	return v.matched
}

// candidates appends the selectors with an id of at least from that select a task. It finds them by the task's labels.
func (p *Counts) candidates(out []*selector, t *model.Task, from int) []*selector {
	for key, value := range t.Labels {
		out = p.match(out, p.byLabel[model.Label{Key: key, Value: value}], t, from)
	}
	return p.match(out, p.rest, t, from)
}

func (p *Counts) match(out, among []*selector, t *model.Task, from int) []*selector {
	for i := len(among) - 1; i >= 0 && among[i].id >= from; i-- {
		if among[i].matches(p.c, t) {
			out = append(out, among[i])
		}
	}
	return out
}

func (p *Counts) growRows() {
	for row := len(p.rows); row < len(p.c.Nodes.Rows); row++ {
		p.rows = append(p.rows, seenNode{})
		for _, x := range p.inclusions {
			x.rows = append(x.rows, false)
		}
	}
}

// remap updates the nodes' domains, and the counts of the tasks on them.
func (p *Counts) remap() {
	p.growRows()
	n := &p.c.Nodes
	moved := false
	for row, node := range n.Rows {
		seen := &p.rows[row]
		if seen.object == n.Object[row]+1 {
			continue
		}
		next := seenNode{object: n.Object[row] + 1}
		if node != nil {
			next.name, next.labels, next.taints, next.images = node.Name, node.Labels, node.Taints, node.Images
		}
		p.imagesOf(int32(row), seen.images, next.images)
		if next.name != seen.name || !maps.Equal(next.labels, seen.labels) || !slices.EqualFunc(next.taints, seen.taints, sameTaint) {
			moved = true
			p.moveRow(int32(row), next.labels)
		}
		*seen = next
	}
	if !moved {
		return
	}
	p.moves++
	for _, x := range p.scopes {
		x.settle()
	}
	for _, ta := range p.inclusive {
		if ta.filled && ta.limit != nil {
			ta.limit.settle(ta)
		}
	}
	if total := len(n.Index); total != p.total {
		p.total = total
		for _, ta := range p.images {
			ta.note(0)
		}
	}
}

// moveRow sets the domains of a row from a node's labels, and moves the tasks on it.
func (p *Counts) moveRow(row int32, labels map[string]string) {
	p.countRow(row, -1)
	for key := range p.rows[row].labels {
		p.labelled[key]--
	}
	for key := range labels {
		p.labelled[key]++
	}
	for _, topo := range p.topologies {
		topo.place(row, labels)
	}
	node := p.c.Nodes.Rows[row]
	for _, x := range p.inclusions {
		x.rows[row] = node != nil && x.node(node)
	}
	p.countRow(row, 1)
}

func sameTaint(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

func (p *Counts) countRow(row int32, sign int64) {
	for _, t := range p.c.Nodes.Tasks[row] {
		if rec := p.records[t]; rec != nil && rec.row != model.NoNode {
			p.count(rec, sign, true)
		}
	}
}

// Context is what the verdicts and scores of a task depend on in addition to the task and the node. It contains the tallies of the task's
// own terms, and those of the terms that select it. Tasks with the same Context get the same answers.
type Context struct {
	template  *template // nil without terms
	against   others    // tallies of the required anti-affinity of other tasks
	preferred others    // weighted tallies of the other terms of other tasks that affect scores
	images    []*Tally  // the tallies of its images that some node has
	watched   []*Tally  // all tallies that are watched
	// For the key of a class: the tallies of other tasks, and the images.
	matched, imagesKey string
}

// Watched returns the tallies that the answers depend on; none: the answers do not change.
func (co *Context) Watched() []*Tally { return co.watched }

// Terms identifies the task's own terms; "" if it has none.
func (co *Context) Terms() string {
	if co.template == nil {
		return ""
	}
	return co.template.name
}

// Matched identifies the terms of other tasks that select the task.
func (co *Context) Matched() string { return co.matched }

// Images identifies the task's images that some node has.
func (co *Context) Images() string { return co.imagesKey }

// HasImages reports whether some node has an image of the task.
func (co *Context) HasImages() bool { return len(co.images) > 0 }

// HasAffinity reports whether the task has terms of affinity or anti-affinity, or terms of other tasks select it.
func (co *Context) HasAffinity() bool {
	return len(co.against.tallies)+len(co.preferred.tallies) > 0 || co.template != nil && co.template.terms.HasAffinity()
}

// Of returns the context of a task in the present cluster.
func (p *Counts) Of(t *model.Task) *Context {
	p.sync()
	v := p.memo(t)
	if v.context == nil || v.contextAt != p.version {
		v.context, v.contextAt = p.contextOf(t), p.version
	}
	return v.context
}

func (p *Counts) contextOf(t *model.Task) *Context {
	tmpl := p.template(t)
	p.fill() // a task that the cluster does not contain may have new terms
	var ids []int
	var seen map[*Tally]bool
	var against, preferred []*Tally
	for _, x := range p.matched(t) {
		for _, ta := range x.asking {
			if seen[ta] || ta.askers == 0 {
				continue
			}
			if seen == nil {
				seen = map[*Tally]bool{}
			}
			seen[ta] = true
			ids = append(ids, ta.id)
			if ta.use == presence {
				against = append(against, ta)
			} else {
				preferred = append(preferred, ta)
			}
		}
	}
	slices.Sort(ids)
	key := p.text[:0]
	for _, id := range ids {
		key = append(strconv.AppendInt(key, int64(id), 10), ' ')
	}
	matched := len(key)
	images, imagesKey := p.imagesFor(t)
	key = append(append(append(key, '\n'), imagesKey...), '\n')
	if tmpl != nil {
		key = append(key, tmpl.name...)
	}
	p.text = key
	if known := p.contexts[string(key)]; known != nil {
		return known
	}
	co := &Context{
		template: tmpl, against: others{tallies: against}, preferred: others{tallies: preferred}, images: images, imagesKey: imagesKey,
		matched: string(key[:matched]),
	}
	if tmpl != nil {
		co.watched = append(co.watched, tmpl.tallies...)
	}
	co.watched = slices.Concat(co.watched, against, preferred, images)
	p.contexts[string(key)] = co
	return co
}

// Version updates the counts, and returns a number that changes when terms come or go. Contexts are valid while it is the same.
func (p *Counts) Version() uint64 {
	p.sync()
	return p.version
}

// Moves returns how often nodes changed their domains.
func (p *Counts) Moves() uint64 { return p.moves }

// Size returns the number of known contexts and images.
func (p *Counts) Size() int { return len(p.contexts) + len(p.images) }

// Forget starts counting from scratch if most contexts and images may belong to tasks that are gone. keep is how many are allowed in any
// case. The next cycle shows how many are in use.
func (p *Counts) Forget(keep int) {
	if p.fresher {
		p.swept, p.fresher = slab.Swept(p.Size()), false
	}
	if p.swept.Due(p.Size(), keep) {
		p.fresher = true
		p.cursor.Reset()
		p.clock = 0
	}
}

// without calls ask as if a task were not placed on its node, because a task is not its own peer.
func (p *Counts) without(t *model.Task, ask func()) {
	rec := p.records[t]
	if t.Node == model.NoNode || rec == nil || rec.row == model.NoNode {
		ask()
		return
	}
	at := p.changes
	p.count(rec, -1, true)
	p.apart = true
	ask()
	p.apart = false
	p.count(rec, 1, true)
	p.changes = at // earlier sums are valid again
}
