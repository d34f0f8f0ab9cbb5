package dashboard

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/policy/parts"
)

// The limits of long lists. Searches find the rest.
const (
	mostQueues  = 500
	mostInLine  = 100
	mostReasons = 12
	mostRows    = 600
)

// unknown stands for an unknown amount.
const unknown = -1

// overview is the section with data of the whole cluster.
type overview struct {
	Cluster   string         `json:"cluster"`
	Namespace string         `json:"namespace,omitempty"` // the only namespace whose jobs are shown; "": all
	Try       bool           `json:"try,omitempty"`       // whether the page for trying policies is served
	Gaps      []Gap          `json:"gaps"`
	Resources []string       `json:"resources"`
	Used      []float64      `json:"used"`
	Offered   []float64      `json:"offered"`
	Nodes     int            `json:"nodes"`
	NotReady  int            `json:"notReady"`
	Cordoned  int            `json:"cordoned"`
	Pods      map[string]int `json:"pods"` // by phase; those that have no node are "Waiting"
	Jobs      map[string]int `json:"jobs"` // PodGroups by phase
}

// queueView is the view of a queue. Amounts are in the order of the overview's resources, and -1 means unknown.
type queueView struct {
	Name       string    `json:"name"`
	Parent     string    `json:"parent,omitempty"`
	State      string    `json:"state"`
	Weight     int32     `json:"weight"`
	Waiting    int       `json:"waiting"`
	Running    int       `json:"running"`
	Allocated  []float64 `json:"allocated"`
	Deserved   []float64 `json:"deserved"`
	Capability []float64 `json:"capability"`
	Guarantee  []float64 `json:"guarantee"`
}

// queuesView is the section of queues.
type queuesView struct {
	Queues []queueView `json:"queues"`
	Total  int         `json:"total"`
}

// jobView is a job in a line or a search result.
type jobView struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Group     string    `json:"group"` // the PodGroup's own name; a Job may have several
	Queue     string    `json:"queue"`
	Priority  string    `json:"priority,omitempty"`
	Phase     string    `json:"phase"`
	Since     time.Time `json:"since"`
	Pods      int       `json:"pods"`
	Placed    int       `json:"placed"`
	Min       int32     `json:"min"`
	Why       string    `json:"why,omitempty"`
}

// lineView is the section of waiting jobs, the oldest first.
type lineView struct {
	Jobs    []jobView    `json:"jobs"`
	Total   int          `json:"total"`
	Reasons []reasonView `json:"reasons"`
}

// reasonView is a reason without its numbers, and how many jobs have it.
type reasonView struct {
	Why  string `json:"why"`
	Jobs int    `json:"jobs"`
}

// policyView is a SchedulingPolicy.
type policyView struct {
	Name       string    `json:"name"`
	Generation int64     `json:"generation"`
	Mode       string    `json:"mode,omitempty"`
	Active     bool      `json:"active"`
	Serves     bool      `json:"serves"` // the figures belong to this policy
	Says       []string  `json:"says"`
	Rows       []rowView `json:"rows"`
	Total      int       `json:"total"`
}

// rowView is a row of a policy with its figures.
type rowView struct {
	Site        string  `json:"site"`
	Table       string  `json:"table"`
	Name        string  `json:"name"`
	Text        string  `json:"text,omitempty"`
	Cost        float64 `json:"cost"` // maximum of one evaluation
	Waits       int     `json:"waits"`
	Waited      float64 `json:"waited"` // seconds
	Evictions   float64 `json:"evictions"`
	Evaluations float64 `json:"evaluations"`
	Rate        float64 `json:"rate"`
	Errors      float64 `json:"errors"`
	OverBudget  float64 `json:"overBudget"`
	LastError   string  `json:"lastError,omitempty"`
}

// gang is the number of a job's pods by state.
type gang struct {
	pods, placed, running, over int
	waits                       string // why one of them waits
}

// sums are the results of one pass over all pods.
type sums struct {
	used  []amounts // by node, in the order of their names
	gangs map[string]*gang
	pods  map[string]int
}

// The caller must hold the lock for all functions from here on.

func (s *state) sum() sums {
	names := s.nodeNames()
	at := make(map[string]int, len(names))
	for i, name := range names {
		at[name] = i
	}
	out := sums{make([]amounts, len(names)), make(map[string]*gang, len(s.groups)), map[string]int{}}
	for _, p := range s.pods {
		phase := string(p.phase)
		if p.phase == corev1.PodPending && p.node == "" {
			phase = "Waiting"
		}
		out.pods[phase]++
		if i, ok := at[p.node]; ok && !p.over() {
			out.used[i] = out.used[i].plus(p.asks)
		}
		if p.group == "" {
			continue
		}
		key := p.Namespace + "/" + p.group
		g := out.gangs[key]
		if g == nil {
			g = &gang{}
			out.gangs[key] = g
		}
		g.add(p)
	}
	return out
}

func (g *gang) add(p *pod) {
	g.pods++
	if p.node != "" {
		g.placed++
	}
	if p.phase == corev1.PodRunning {
		g.running++
	}
	if p.over() {
		g.over++
	}
	if p.node == "" && p.waits != "" && (g.waits == "" || p.waits < g.waits) { // choose the same one each time
		g.waits = p.waits
	}
}

// show returns the resources to show: cpu, memory, pods, and device or other extended resources that a node offers or a queue uses.
func (s *state) show() []int {
	names := s.all()
	offered := make([]bool, len(names))
	for _, n := range s.nodes {
		for r, v := range n.offers {
			offered[r] = offered[r] || v > 0
		}
	}
	for _, q := range s.queues {
		for _, of := range []amounts{q.allocated, q.deserved, q.capability} {
			for r, v := range of {
				offered[r] = offered[r] || v > 0
			}
		}
	}
	for r, is := range offered {
		if is && strings.Contains(names[r], "/") && len(s.shown) < mostRemember && !slices.Contains(s.shown, r) {
			s.shown = append(s.shown, r)
		}
	}
	return s.shown
}

func (s *state) overview(x sums, shown []int, now time.Time) overview {
	names := s.all()
	o := overview{Gaps: s.lacking(now), Nodes: len(s.nodes), Pods: x.pods, Jobs: map[string]int{}}
	if o.Gaps == nil {
		o.Gaps = []Gap{}
	}
	var used, offered amounts
	for i, name := range s.nodeNames() {
		n := s.nodes[name]
		switch {
		case !n.ready:
			o.NotReady++
			continue
		case n.cordoned:
			o.Cordoned++
		}
		used, offered = used.plus(x.used[i]), offered.plus(n.offers) // both only for ready nodes
	}
	for _, g := range s.groups {
		o.Jobs[string(g.phase)]++
	}
	for _, r := range shown {
		o.Resources = append(o.Resources, names[r])
		o.Used, o.Offered = append(o.Used, tidy(used.of(r))), append(o.Offered, tidy(offered.of(r)))
	}
	return o
}

// tidy rounds to three decimal places, because users do not read more.
func tidy(v float64) float64 { return math.Round(v*1000) / 1000 }

func of(a amounts, shown []int, otherwise float64) []float64 {
	out := make([]float64, len(shown))
	for i, r := range shown {
		out[i] = otherwise
		if r < len(a) && (a[r] != 0 || otherwise == 0) {
			out[i] = tidy(a[r])
		}
	}
	return out
}

// tree returns the queues, each below its parent. Queues without an existing parent are at the top, and so is one queue of each circle.
func (s *state) tree(shown []int) queuesView {
	names := s.all()
	waiting := map[string]int{}
	for _, g := range s.groups {
		if g.waits() {
			waiting[g.queue]++
		}
	}
	below := map[string][]*queue{}
	for _, q := range s.queues {
		parent := q.parent
		if s.queues[parent] == nil || parent == q.Name {
			parent = ""
		}
		below[parent] = append(below[parent], q)
	}
	out := queuesView{Queues: []queueView{}, Total: len(s.queues)}
	seen := map[string]bool{}
	var add func(list []*queue, parent string)
	add = func(list []*queue, parent string) {
		slices.SortFunc(list, func(a, b *queue) int { return strings.Compare(a.Name, b.Name) })
		for _, q := range list {
			if seen[q.Name] || len(out.Queues) == mostQueues {
				continue
			}
			seen[q.Name] = true
			v := queueView{
				Name: q.Name, Parent: parent, State: q.state, Weight: q.weight, Waiting: int(q.pending + q.inqueue),
				Running: int(q.running), Allocated: of(q.allocated, shown, 0), Deserved: of(q.deserved, shown, unknown),
				Capability: of(q.capability, shown, unknown), Guarantee: of(q.reserved, shown, unknown),
			}
			if len(s.groups) > 0 {
				v.Waiting = waiting[q.Name]
			}
			for i, r := range shown {
				if due, ok := s.figures.due[q.Name][names[r]]; ok {
					v.Deserved[i] = tidy(due)
				}
			}
			out.Queues = append(out.Queues, v)
			add(below[q.Name], q.Name)
		}
	}
	add(below[""], "")
	for _, name := range slices.Sorted(maps.Keys(s.queues)) { // the rest are circles and the queues below them
		if !seen[name] && len(out.Queues) < mostQueues {
			add([]*queue{s.circling(name)}, "")
		}
	}
	return out
}

// circling returns a queue of the circle into which the parents of a queue lead. It is the first queue that the path upward reaches for the
// second time.
func (s *state) circling(name string) *queue {
	q := s.queues[name]
	for passed := map[string]bool{}; !passed[q.Name]; q = s.queues[q.parent] {
		passed[q.Name] = true
	}
	return q
}

// waits reports whether a job has not started completely.
func (g *group) waits() bool {
	return g.phase != schedulingv1beta1.PodGroupRunning && g.phase != schedulingv1beta1.PodGroupCompleted
}

// why returns why a job waits: the text of its scheduler, or a visible cause.
func (g *group) why(x *gang) string {
	for i := range g.conditions {
		c := &g.conditions[i]
		if c.Type == schedulingv1beta1.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue {
			return cmp.Or(c.Message, c.Reason)
		}
	}
	switch {
	case x.waits != "":
		return x.waits
	case g.phase == schedulingv1beta1.PodGroupPending:
		return "it is not admitted to its queue yet"
	case x.pods == 0:
		return "it was admitted, and its pods do not exist yet"
	case x.placed < x.pods:
		return fmt.Sprintf("%d of %d pods have a node; nothing was said of the others yet", x.placed, x.pods)
	}
	return "its pods have nodes and start"
}

func (s *state) job(g *group, x *gang) jobView {
	if x == nil {
		x = &gang{}
	}
	v := jobView{
		Namespace: g.Namespace, Name: g.title(), Group: g.Name, Queue: g.queue, Priority: g.priority, Phase: string(g.phase),
		Since: g.CreationTimestamp.Time, Pods: x.pods, Placed: x.placed, Min: g.min,
	}
	if g.waits() {
		v.Why = g.why(x)
		// The controllers know causes that the scheduler does not: pods that the API server refuses, images that cannot be pulled.
		if j := s.jobs[g.Namespace+"/"+g.job]; j != nil && g.job != "" && j.state.Message != "" {
			v.Why = j.state.Message
		}
	}
	return v
}

// begun reports whether a Job is in a phase in which it does not wait for its PodGroup.
func (j *job) begun() bool {
	return !slices.Contains([]batchv1alpha1.JobPhase{"", batchv1alpha1.Pending, batchv1alpha1.Restarting}, j.state.Phase)
}

// ours reports whether Celsius serves the scheduler that a Job names.
func (j *job) ours() bool { return slices.Contains([]string{"", "celsius", "volcano"}, j.scheduler) }

// why returns why a Job without a PodGroup waits: the message of the controllers, or a cause that its status and spec show.
func (j *job) why() string {
	switch {
	case j.state.Phase == "" && !j.ours():
		return fmt.Sprintf("no controllers have written to the Job, whose spec.schedulerName is %q; Celsius serves celsius and volcano",
			j.scheduler)
	case j.state.Phase == "":
		return "no controllers have written to the Job since it was created; see its events"
	}
	return cmp.Or(j.state.Message, j.state.Reason, "its PodGroup does not exist yet")
}

// withoutGroup returns the view of a Job that has no PodGroup.
func (j *job) withoutGroup() jobView {
	v := jobView{
		Namespace: j.Namespace, Name: j.Name, Queue: j.queue, Phase: string(j.state.Phase), Since: j.CreationTimestamp.Time, Min: j.min,
	}
	if !j.begun() {
		v.Why = j.why()
	}
	return v
}

func byAge(a, b *group) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name))
}

// line returns the jobs that wait in queue in, or in any queue if in is empty. It includes Jobs that have no PodGroup yet.
func (s *state) line(x sums, in string) lineView {
	type waiting struct {
		since time.Time
		name  string
		view  func() jobView
	}
	var all []waiting
	owned := map[string]bool{}
	for _, g := range s.groups {
		owned[g.Namespace+"/"+g.job] = true
		if g.waits() && (in == "" || g.queue == in) {
			all = append(all, waiting{g.CreationTimestamp.Time, g.key(), func() jobView { return s.job(g, x.gangs[g.key()]) }})
		}
	}
	for key, j := range s.jobs {
		if !j.begun() && j.ours() && !owned[key] && (in == "" || j.queue == in) {
			all = append(all, waiting{j.CreationTimestamp.Time, key, j.withoutGroup})
		}
	}
	slices.SortFunc(all, func(a, b waiting) int { return cmp.Or(a.since.Compare(b.since), strings.Compare(a.name, b.name)) })
	out := lineView{Jobs: []jobView{}, Total: len(all), Reasons: []reasonView{}}
	reasons := map[string]int{}
	for i, w := range all {
		v := w.view()
		if i < mostInLine {
			out.Jobs = append(out.Jobs, v)
		}
		reasons[unnumbered(v.Why)]++
	}
	for why, n := range reasons {
		out.Reasons = append(out.Reasons, reasonView{why, n})
	}
	slices.SortFunc(out.Reasons, func(a, b reasonView) int { return cmp.Or(b.Jobs-a.Jobs, strings.Compare(a.Why, b.Why)) })
	out.Reasons = out.Reasons[:min(len(out.Reasons), mostReasons)]
	return out
}

// unnumbered replaces numbers with #, because jobs that lack different amounts wait for the same reason.
func unnumbered(text string) string {
	var b strings.Builder
	in := false
	for _, c := range text {
		digit := c >= '0' && c <= '9' || in && (c == '.' || c == '/')
		if !digit {
			b.WriteRune(c)
		} else if !in {
			b.WriteByte('#')
		}
		in = digit
	}
	return b.String()
}

// policiesView returns the policies of the cluster, with the served one first. If no policy has the served name, the scheduler uses the
// built-in one.
func (s *state) policiesView() []policyView {
	out := []policyView{}
	for _, p := range s.policies {
		v := policyView{
			Name: p.Name, Generation: p.Generation, Mode: p.mode, Says: []string{}, Serves: p.Name == s.figures.serves,
			Active: meta.IsStatusConditionTrue(p.status.Conditions, policyv1alpha1.ConditionActive),
		}
		for _, c := range p.status.Conditions {
			if c.Message != "" {
				v.Says = append(v.Says, c.Type+": "+short(c.Message))
			}
		}
		v.Rows, v.Total = s.rowsView(p, v.Serves, v.Active), len(p.rows)
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b policyView) int {
		if a.Serves != b.Serves {
			return map[bool]int{true: -1, false: 1}[a.Serves]
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// rowsView returns the rows of a policy, with their figures if the policy is served.
func (s *state) rowsView(p *policyObject, serves, active bool) []rowView {
	of := "" // if the policy applies to some queues, the scheduler uses this prefix for its tables
	if p.part {
		of = p.Name + parts.Sign
	}
	erred := map[row]policyv1alpha1.RuleErrors{}
	for _, scheduler := range p.status.Schedulers {
		for _, e := range scheduler.RuleErrors {
			erred[row{e.Site, e.Table, e.Rule}] = e
		}
	}
	out := []rowView{}
	for _, r := range p.rows[:min(len(p.rows), mostRows)] {
		v := rowView{Site: r.site, Table: r.table, Name: r.name, Text: r.text, Cost: float64(r.cost)}
		if serves || p.part && active {
			f := s.figures.of(row{r.site, of + r.table, r.name})
			v.Waits, v.Waited, v.Evictions, v.Evaluations = f.waits, f.waited.Seconds(), f.evictions, f.evaluations
			v.Rate, v.Errors, v.OverBudget = tidy(f.rate), f.errors, f.overBudget
		}
		if e, ok := erred[r.row]; ok {
			v.LastError = short(e.LastObject + ": " + e.LastError)
			v.Errors, v.OverBudget = max(v.Errors, float64(e.Count)), max(v.OverBudget, float64(e.OverBudget))
		}
		out = append(out, v)
	}
	return out
}

// part is a section in the form that is sent, with the number of the picture in which it last changed.
type part struct {
	name  string
	data  []byte
	since uint64
}

// picture is the view of a moment. It is immutable.
type picture struct {
	number uint64
	parts  []part
	heat   *heat
}

// draw returns the next picture, or nil if nothing has changed.
func (s *state) draw(before *picture, about overview, now time.Time) *picture {
	s.mu.Lock()
	defer s.mu.Unlock()
	sample := s.history.due(now)
	if !s.changed && !sample {
		return nil
	}
	s.changed = false
	x, shown := s.sum(), s.show()
	top, queues := s.overview(x, shown, now), s.tree(shown)
	top.Cluster, top.Namespace, top.Try = about.Cluster, about.Namespace, about.Try
	if about.Namespace != "" {
		top.Gaps = append(top.Gaps, Gap{Of: kindPods + " of other namespaces", Why: "they are not read, and so what is taken of nodes, and the " +
			"pods on them, are those of namespace " + about.Namespace + " alone: start without -n to see all"})
	}
	if sample {
		s.history.add(now, queues.Queues)
	}
	next := &picture{number: before.number + 1, heat: s.heat(x, shown, before.heat)}
	for _, section := range []struct {
		name string
		view any
	}{{"overview", top}, {"queues", queues}, {"line", s.line(x, "")}, {"policies", s.policiesView()}} {
		data, err := visibleJSON(section.view)
		if err != nil { // the value is not a valid number: it is sent when it is corrected
			continue
		}
		p := part{section.name, data, next.number}
		if i := slices.IndexFunc(before.parts, func(o part) bool { return o.name == p.name }); i >= 0 && bytes.Equal(before.parts[i].data, data) {
			p.since = before.parts[i].since
		}
		next.parts = append(next.parts, p)
	}
	return next
}
