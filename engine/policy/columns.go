package policy

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// What stands in a verdict column beside 0 (fit) and the numbers of rules.
const (
	notOffered = -1 // no node in this row, or not ready
	noDevices  = -2
)

// Fit says how a task's request meets a node.
type fit uint8

const (
	noFit     fit = iota
	fitsNow       // within idle
	fitsLater     // within what will be idle when all that is releasing is gone
)

// columns is the plan of what the active predicate and score rows read, and the classes in use.
type columns struct {
	predicates, scores []*rowPlan
	// class lists what a class is: the task, job and queue fields that active rows read.
	class []rules.Read
	// globals are reads of the cluster; nowParts are the parts that move with time.
	globals  []rules.Read
	nowParts []*rules.Expr
	nowMoves bool
	// volatile says that some row reads other objects through a node's tasks: nothing can be kept.
	volatile bool
	// single says that every task is a class of its own, so that nothing is stored.
	single  bool
	moving  bool // class fields move within a cycle
	classes map[string]*Class
	scratch *Class
}

// rowPlan is one row with what its value depends on.
type rowPlan struct {
	*Rule
	static bool // of the node, only its object is read
}

func (cs *columns) init(s *Session) {
	cs.classes = map[string]*Class{}
	all := &rules.Reads{}
	for _, r := range s.p.rules[Predicates] {
		cs.predicates = append(cs.predicates, cs.plan(r, all))
	}
	for _, r := range s.p.rules[Scores] {
		if r.Weight != 0 {
			cs.scores = append(cs.scores, cs.plan(r, all))
		}
	}
	for _, r := range s.p.rules[DeviceScores] {
		cs.plan(r, all)
	}
	for _, read := range all.All {
		switch read.Root {
		case "task", "job", "queue":
			if read.Through {
				continue
			}
			cs.class = append(cs.class, read)
			cs.moving = cs.moving || read.Changes > rules.ByCycle
			cs.single = cs.single || read.Root == "task" && len(read.Steps) == 1 && (read.Steps[0].Member.Name == "name" || read.Steps[0].Member.Name == "uid")
		case "action", "pipeline":
			cs.class = append(cs.class, read)
		case "cluster":
			cs.globals = append(cs.globals, read)
		}
	}
}

func (cs *columns) plan(r *Rule, all *rules.Reads) *rowPlan {
	all.Add(r.Reads)
	p := &rowPlan{Rule: r, static: true}
	for _, read := range r.Reads.All {
		if read.Root == "node" || read.Root == "gpu" {
			p.static = p.static && read.Changes <= rules.ByObject
			cs.volatile = cs.volatile || beyond(read)
		}
	}
	for _, e := range []*rules.Expr{r.When, r.Expression} {
		if e != nil {
			cs.nowParts = append(cs.nowParts, e.NowParts...)
			cs.nowMoves = cs.nowMoves || e.NowMoves
		}
	}
	return p
}

// beyond says that a read goes through a node's tasks to their jobs, queues or nodes.
func beyond(r rules.Read) bool {
	for _, step := range r.Steps {
		if n := step.Member.Name; n == "job" || n == "queue" || n == "node" {
			return true
		}
	}
	return false
}

func (cs *columns) begin() {
	for key, c := range cs.classes {
		if c.used+2 < c.s.cycle {
			delete(cs.classes, key)
		}
	}
}

// Class is the tasks that agree on everything that the active rows read, with its verdict columns,
// one entry a row of the node table.
type Class struct {
	s    *Session
	task *model.Task
	used uint64 // cycle

	cursor  uint64
	epoch   string
	verdict []int16 // 0 is fit, else the rule that rejected, or notOffered, noDevices
	fits    []fit
	statics []int16 // verdict of the static rows
	object  []uint64
	version []uint64
	scored  []bool      // static scores are computed
	raw     [][]float64 // by score row: NaN where the row has no opinion
	base    []float64   // sum of the rows without normalisation
	uniform []bool      // by score row: every value so far is the same
	first   []float64   // that value
	any     bool
	now     int // rows that fit now
	later   int

	rankings   []ranking // reused
	rejected   []model.NodeCount
	rejectedAt uint64 // of the log, plus 1
}

// Class gives the class of a task, its columns brought up to date.
func (s *Session) Class(t *model.Task) *Class {
	cs := &s.columns
	if cs.single || s.NoCache {
		if cs.scratch == nil || s.NoCache {
			cs.scratch = &Class{s: s}
		}
		cs.scratch.task, cs.scratch.used = t, s.cycle
		cs.scratch.refreshAll()
		return cs.scratch
	}
	key := s.classKey(t)
	c := cs.classes[key]
	if c == nil {
		c = &Class{s: s, task: t}
		cs.classes[key] = c
	}
	c.task, c.used = t, s.cycle
	c.catchUp()
	return c
}

func (c *Class) catchUp() {
	n := &c.s.c.Nodes
	epoch := c.s.epoch()
	entries, ok := n.Log.Since(c.cursor)
	if !ok || epoch != c.epoch || len(c.verdict) != len(n.Rows) || c.s.columns.volatile {
		c.epoch = epoch
		c.refreshAll()
		return
	}
	c.cursor = n.Log.Next()
	for _, row := range entries {
		if c.version[row] != n.Version[row] {
			c.refresh(row)
		}
	}
}

func (c *Class) refreshAll() {
	rows, scores := len(c.s.c.Nodes.Rows), len(c.s.columns.scores)
	c.cursor = c.s.c.Nodes.Log.Next()
	c.verdict, c.fits, c.statics = resized(c.verdict, rows), resized(c.fits, rows), resized(c.statics, rows)
	c.object, c.version, c.scored, c.base = resized(c.object, rows), resized(c.version, rows), resized(c.scored, rows), resized(c.base, rows)
	c.raw = resized(c.raw, scores)
	c.uniform, c.first, c.any, c.now, c.later = resized(c.uniform, scores), resized(c.first, scores), false, 0, 0
	for k := range c.raw {
		c.raw[k] = resized(c.raw[k], rows)
		c.uniform[k] = true
	}
	for row := range rows {
		c.refresh(int32(row))
	}
}

// resized is a zeroed slice of that length, the old one where it is large enough.
func resized[T any](old []T, n int) []T {
	if cap(old) >= n {
		old = old[:n]
		clear(old)
		return old
	}
	return make([]T, n)
}

// refresh brings one node's entry up to date: static rows first, and only where the object changed.
func (c *Class) refresh(row int32) {
	n := &c.s.c.Nodes
	c.count(row, -1)
	c.version[row] = n.Version[row]
	fresh := c.object[row] != n.Object[row]+1
	if fresh {
		c.object[row], c.scored[row] = n.Object[row]+1, false
	}
	node := n.Rows[row]
	if node == nil || !node.Ready {
		c.verdict[row], c.fits[row] = notOffered, noFit
		return
	}
	f := c.s.frame().ofTask(c.task)
	defer c.s.done()
	f.node = c.s.nodeView(row)
	if fresh {
		c.statics[row] = c.rejects(f, true)
	}
	v := c.statics[row]
	if v == 0 {
		v = c.rejects(f, false)
	}
	c.fits[row] = c.fit(row)
	if v == 0 && c.task.GPUCount > 0 && !devicesFit(c.task, n.GPUs[row]) {
		v = noDevices
	}
	c.verdict[row] = v
	c.count(row, 1)
	if v == 0 && c.fits[row] != noFit {
		c.score(f, row)
	}
}

func (c *Class) count(row int32, by int) {
	if c.verdict[row] != 0 {
		return
	}
	switch c.fits[row] {
	case fitsNow:
		c.now += by
	case fitsLater:
		c.later += by
	case noFit:
	}
}

func (c *Class) fit(row int32) fit {
	n := &c.s.c.Nodes
	switch {
	case n.FitsIdle(c.task.InitRequest, row):
		return fitsNow
	case n.FitsFuture(c.task.InitRequest, row):
		return fitsLater
	}
	return noFit
}

// rejects gives the first of the static or dynamic predicates that says no, 0 if none does.
func (c *Class) rejects(f *Frame, static bool) int16 {
	for _, r := range c.s.columns.predicates {
		if r.static != static {
			continue
		}
		c.s.Evaluations++
		if c.s.opinion(r.Rule, f) == No {
			return int16(r.Number)
		}
	}
	return 0
}

func (c *Class) score(f *Frame, row int32) {
	base := 0.0
	for k, r := range c.s.columns.scores {
		if !r.static || !c.scored[row] {
			c.raw[k][row] = c.s.score(r.Rule, f)
		}
		raw := c.raw[k][row]
		if !c.any {
			c.first[k] = raw
		}
		c.uniform[k] = c.uniform[k] && (raw == c.first[k] || raw != raw && c.first[k] != c.first[k])
		if !r.normalises() {
			base += r.weighted(raw)
		}
	}
	c.any, c.scored[row] = true, true
	c.base[row] = base
}

// score evaluates a row of scores: NaN where it has no opinion, or erred.
func (s *Session) score(r *Rule, f *Frame) float64 {
	s.Evaluations++
	has, err := s.guard(r, f)
	if err == nil {
		if !has {
			return math.NaN()
		}
		v := r.Expression.Eval(f)
		x, ok := number(v)
		if ok && !math.IsNaN(x) && !math.IsInf(x, 0) {
			return x
		}
		err = v
		if ok {
			err = types.NewErr("the score is %v", x)
		}
	}
	s.fault(r, f, err)
	return math.NaN()
}

// weighted rounds and weighs a value that is normalised already.
func (r *Rule) weighted(v float64) float64 {
	if v != v {
		return 0
	}
	switch r.RoundMode {
	case "trunc":
		v = math.Trunc(v/r.RoundStep) * r.RoundStep
	case "floor":
		v = math.Floor(v/r.RoundStep) * r.RoundStep
	case "nearest":
		v = math.RoundToEven(v/r.RoundStep) * r.RoundStep
	}
	return v * r.Weight
}

// span is the range of a column over the group that is chosen from.
type span struct{ min, max float64 }

// normalised maps a raw value to 0..100 (policy-schema S11).
func (r *Rule) normalised(v float64, g span) float64 {
	if v != v {
		return v
	}
	switch r.Normalize {
	case "max":
		if g.max == 0 {
			return 0
		}
		return 100 * v / g.max
	case "inverseMax":
		if g.max == 0 {
			return 100
		}
		return 100 - 100*v/g.max
	case "minMax":
		if g.max == g.min {
			return 0
		}
		return 100 * (v - g.min) / (g.max - g.min)
	case "inverseSum":
		if g.max == 0 {
			return 100
		}
		return 100 * (g.max + g.min - v) / g.max
	}
	return v
}

// Choice is the node chosen for a task.
type Choice struct {
	Row      int32
	Later    bool // it fits only when what is releasing is gone
	Score    float64
	Feasible int // nodes in the group chosen from
	RunnerUp int32
	RunScore float64

	class *Class
	ranks []ranking
}

// ranking is a normalised score row with the range of its column over the group that is chosen from.
type ranking struct {
	column int
	rule   *Rule
	span   span
	// same says that the whole column has one value; part is what it adds to every score.
	same bool
	part float64
}

// Choose takes the node with the largest score among those that fit now, or, where there are none,
// among those that fit later; ties go to the lowest rank. false: no node.
func (c *Class) Choose() (Choice, bool) {
	want, count := fitsNow, c.now
	if count == 0 {
		want, count = fitsLater, c.later
	}
	if count == 0 {
		return Choice{}, false
	}
	best := Choice{Row: model.NoNode, RunnerUp: model.NoNode, Later: want == fitsLater, Feasible: count, class: c, ranks: c.ranks(want)}
	order := c.s.c.Nodes.Order
	for i, v := range c.verdict {
		if v != 0 || c.fits[i] != want {
			continue
		}
		row, score := int32(i), c.total(i, best.ranks)
		switch {
		case best.Row == model.NoNode || score > best.Score || score == best.Score && order[row] < order[best.Row]:
			best.RunnerUp, best.RunScore = best.Row, best.Score
			best.Row, best.Score = row, score
		case best.RunnerUp == model.NoNode || score > best.RunScore || score == best.RunScore && order[row] < order[best.RunnerUp]:
			best.RunnerUp, best.RunScore = row, score
		}
	}
	return best, true
}

// ranks computes the ranges of the normalised columns over a group.
func (c *Class) ranks(want fit) []ranking {
	out := c.rankings[:0]
	for k, r := range c.s.columns.scores {
		if !r.normalises() {
			continue
		}
		rank := ranking{column: k, rule: r.Rule, same: c.uniform[k]}
		if rank.same {
			rank.span = span{c.first[k], c.first[k]}
			rank.part = r.weighted(r.normalised(c.first[k], rank.span))
		} else {
			rank.span = c.span(k, want)
		}
		out = append(out, rank)
	}
	c.rankings = out
	return out
}

func (c *Class) span(column int, want fit) span {
	g := span{math.Inf(1), math.Inf(-1)}
	for row, v := range c.raw[column] {
		if c.verdict[row] == 0 && c.fits[row] == want && v == v {
			g.min, g.max = min(g.min, v), max(g.max, v)
		}
	}
	return g
}

// total is the score of a node: the rows without normalisation, then the others in their order.
func (c *Class) total(row int, ranks []ranking) float64 {
	sum := c.base[row]
	for i := range ranks {
		rank := &ranks[i]
		if rank.same {
			sum += rank.part
			continue
		}
		sum += rank.rule.weighted(rank.rule.normalised(c.raw[rank.column][row], rank.span))
	}
	return sum
}

// normalises says whether the row's value depends on the group that is chosen from.
func (r *Rule) normalises() bool { return r.Normalize != "" && r.Normalize != "none" }

// Scores gives each row's part of a node's score, over the group that was chosen from.
func (ch *Choice) Scores(node int32) []model.RowScore {
	c := ch.class
	var out []model.RowScore
	for k, r := range c.s.columns.scores {
		v := c.raw[k][node]
		if v != v {
			continue
		}
		for i := range ch.ranks {
			if ch.ranks[i].column == k {
				v = r.normalised(v, ch.ranks[i].span)
			}
		}
		out = append(out, model.RowScore{Table: r.Table, Rule: r.Name, Score: r.weighted(v)})
	}
	return out
}

// Rejections counts, over all nodes, which row said no, most nodes first.
func (c *Class) Rejections() []model.NodeCount {
	if at := c.s.c.Nodes.Log.Next() + 1; c.rejectedAt != at || c.s.NoCache || c.s.columns.single {
		c.rejected, c.rejectedAt = c.reject(), at
	}
	return c.rejected
}

func (c *Class) reject() []model.NodeCount {
	type at struct {
		row   int32
		count int
	}
	n := &c.s.c.Nodes
	counts := map[int]*at{}
	for row := range c.verdict {
		if n.Rows[row] == nil {
			continue
		}
		code := int(c.verdict[row])
		if code == 0 {
			dim, misfit := n.Misfit(c.task.InitRequest, int32(row))
			if !misfit {
				continue
			}
			code = -100 - dim
		}
		switch a := counts[code]; {
		case a == nil:
			counts[code] = &at{int32(row), 1}
		default:
			a.count++
			if n.Order[row] < n.Order[a.row] {
				a.row = int32(row)
			}
		}
	}
	var out []model.NodeCount
	for code, a := range counts {
		out = append(out, c.rejection(code, a.row, a.count))
	}
	slices.SortFunc(out, func(a, b model.NodeCount) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.Table+"/"+a.Rule+a.Text, b.Table+"/"+b.Rule+b.Text)
	})
	return out
}

func (c *Class) rejection(code int, row int32, count int) model.NodeCount {
	out := model.NodeCount{Table: "builtin", Count: count}
	switch {
	case code == notOffered:
		out.Rule, out.Text = "ready-node", "node(s) were not ready"
	case code == noDevices:
		out.Rule, out.Text = "devices", "node(s) had too few free devices"
	case code <= -100:
		out.Rule, out.Text = "fit", "Insufficient "+c.s.c.Dims.Name(-100-code)
	default:
		r := c.s.p.all[code-1]
		f := c.s.frame().ofTask(c.task)
		defer c.s.done()
		f.node = c.s.nodeView(row)
		out.Table, out.Rule, out.Text = r.Table, r.Name, c.s.text(r, f)
	}
	return out
}

// Devices chooses the devices of a node for a task: those with the largest sums of deviceScores among
// those that are free enough, lowest index on ties. Where no row has an opinion, a part of a device comes from
// the fullest that has it, and whole devices are the first.
func (s *Session) Devices(t *model.Task, row int32) []int {
	if t.GPUCount == 0 {
		return nil
	}
	type device struct {
		index int
		score float64
	}
	var fit []device
	gpus := s.c.Nodes.GPUs[row]
	f := s.frame().ofTask(t)
	defer s.done()
	f.node = s.nodeView(row)
	for i := range gpus {
		if g := &gpus[i]; g.Free >= t.GPUMilli && g.MemoryFree >= t.GPUMemory {
			f.gpu = s.gpuView(g)
			fit = append(fit, device{g.Index, s.deviceScore(t, g, f)})
		}
	}
	slices.SortStableFunc(fit, func(a, b device) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return a.index - b.index
	})
	var out []int
	for _, d := range fit[:min(len(fit), int(t.GPUCount))] {
		out = append(out, d.index)
	}
	slices.Sort(out)
	return out
}

func (s *Session) deviceScore(t *model.Task, g *model.GPU, f *Frame) float64 {
	sum, asked := 0.0, false
	for _, r := range s.p.rules[DeviceScores] {
		if v := s.score(r, f); v == v {
			sum, asked = sum+v*r.Weight, true
		}
	}
	if !asked && t.GPUMilli < 1000 {
		return -float64(g.Free)
	}
	return sum
}

func devicesFit(t *model.Task, gpus []model.GPU) bool {
	count := int64(0)
	for i := range gpus {
		if gpus[i].Free >= t.GPUMilli && gpus[i].MemoryFree >= t.GPUMemory {
			count++
		}
	}
	return count >= t.GPUCount
}

// epoch is a text of all that columns depend on besides classes and nodes: figures of the cluster, and time.
func (s *Session) epoch() string {
	cs := &s.columns
	if len(cs.globals) == 0 && len(cs.nowParts) == 0 && !cs.nowMoves {
		return ""
	}
	var b []byte
	for _, r := range cs.globals {
		b = encode(b, follow(s.cluster, r.Steps))
	}
	f := s.frame()
	defer s.done()
	for _, e := range cs.nowParts {
		b = encode(b, e.Eval(f))
	}
	if cs.nowMoves {
		b = encode(b, s.now)
	}
	return string(b)
}

// classKey is a text of what the active rows, and the built-in fit, read of a task.
func (s *Session) classKey(t *model.Task) string {
	v := s.taskView(t)
	at := stamp{s.cycle, s.c.ObjectClock}
	if s.columns.moving {
		at.clock = s.c.Clock
	}
	if v.classKey != "" && v.classAt == at && !s.readsAction() {
		return v.classKey
	}
	var b []byte
	b = encodeAmounts(b, t.InitRequest)
	for _, x := range []int64{t.GPUCount, t.GPUMilli, t.GPUMemory} {
		b = binary.AppendVarint(b, x)
	}
	for _, r := range s.columns.class {
		switch r.Root {
		case "task":
			b = encode(b, follow(v, r.Steps))
		case "job":
			b = encode(b, follow(s.jobView(t.Job), r.Steps))
		case "queue":
			b = encode(b, follow(s.queueView(t.Job.Queue), r.Steps))
		case "action":
			b = encode(b, s.action)
		}
	}
	v.classKey, v.classAt = string(b), at
	return v.classKey
}

func (s *Session) readsAction() bool {
	for _, r := range s.columns.class {
		if r.Root == "action" {
			return true
		}
	}
	return false
}

// follow reads a path from an object; through a list it gives the list of what each element has.
func follow(v ref.Val, steps []rules.Step) ref.Val {
	for i, step := range steps {
		v = step.Member.Get(v.Value())
		l, ok := v.(traits.Lister)
		if !step.Each || !ok {
			continue
		}
		var out []ref.Val
		for it := l.Iterator(); it.HasNext() == types.True; {
			out = append(out, follow(it.Next(), steps[i+1:]))
		}
		return list(out)
	}
	return v
}

// encode appends a value so that equal values, and only they, have equal bytes.
func encode(b []byte, v ref.Val) []byte {
	switch x := v.(type) {
	case types.Int:
		return binary.AppendVarint(append(b, 'i'), int64(x))
	case types.Double:
		return binary.LittleEndian.AppendUint64(append(b, 'd'), math.Float64bits(float64(x)))
	case types.Bool:
		if x {
			return append(b, 't')
		}
		return append(b, 'f')
	case types.String:
		return append(binary.AppendVarint(append(b, 's'), int64(len(x))), x...)
	case types.Timestamp:
		return binary.AppendVarint(append(b, 'T'), x.UnixNano())
	case types.Duration:
		return binary.AppendVarint(append(b, 'D'), int64(x.Duration))
	case *amounts:
		return encodeAmounts(append(b, 'r'), x.r)
	case traits.Mapper:
		return encodeMap(b, x)
	case traits.Lister:
		b = append(b, '[')
		for it := x.Iterator(); it.HasNext() == types.True; {
			b = encode(b, it.Next())
		}
		return append(b, ']')
	case interface{ name() string }:
		return encode(append(b, 'o'), types.String(x.name()))
	}
	return append(append(b, '?'), text(v)...)
}

func encodeMap(b []byte, m traits.Mapper) []byte {
	var entries []string
	for it := m.Iterator(); it.HasNext() == types.True; {
		k := it.Next()
		entries = append(entries, string(encode(encode(nil, k), m.Get(k))))
	}
	slices.Sort(entries)
	b = binary.AppendVarint(append(b, 'm'), int64(len(entries)))
	for _, e := range entries {
		b = append(b, e...)
	}
	return b
}

func encodeAmounts(b []byte, r model.Resources) []byte {
	b = binary.AppendVarint(b, int64(len(r)))
	for _, x := range r {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}
