package verdict

import (
	"encoding/binary"
	"math"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// classRows contains the rows of predicates and scores as they are evaluated for one class, and their results. Rows are identified by their
// index in the plan.
type classRows struct {
	c           *Class
	predicates  [layers][]int // the predicates to evaluate at each layer
	scoreLayers []layer
	guards      []guard // of the predicates, then of the scores, if they are evaluated once per class
	asked       askedScores

	// opinions and values are the results that classes share if a row reads the same of them; nil: they are not shared.
	opinions []*rowResults[language.Opinion]
	values   []*rowResults[float64]
	Raw      [][]float64 // by score: NaN if the row has no opinion; shared if values contains it
	ranges   []oneValue  // by score
}

// askedScores contains the scores that have an opinion on some node, as far as that is known for all nodes at once.
type askedScores struct {
	made  bool
	all   []int
	added []int // the scores that are not normalised
	fixed bool  // some of them read only the object of a node
}

// oneValue records whether a score is the same for all nodes.
type oneValue struct {
	same  bool // every value so far equals first
	known bool // there was a value
	first float64
}

// guard is the known result of a row's guard for a class.
type guard uint8

const (
	unknown guard = iota
	holds
	stays // the row has no opinion on any node
	varies
)

// begin forgets all results, because everything is computed again.
func (x *classRows) begin() {
	plan := x.c.v.Plan
	x.guards, x.ranges = slab.Resized(x.guards, len(plan.predicates)+len(plan.Scores)), slab.Resized(x.ranges, len(plan.Scores))
	for k := range x.ranges {
		x.ranges[k].same = true
	}
	x.asked.made = false
	for at := range x.predicates {
		x.predicates[at] = x.predicates[at][:0]
	}
	for k, r := range plan.predicates {
		at := min(x.layer(r), ofDomains)
		if r.Volumes && x.c.Task.HasVolumes {
			at = ofTaskVolumes
		}
		x.predicates[at] = append(x.predicates[at], k)
	}
	x.scoreLayers = x.scoreLayers[:0]
	for _, r := range plan.Scores {
		x.scoreLayers = append(x.scoreLayers, x.layer(r))
	}
	x.join()
}

// layer returns the layer of a row for this class. If no terms apply to the class, the topology domains of nodes do not matter.
func (x *classRows) layer(r *Row) layer {
	switch near := &x.c.domains; {
	case r.Static && !r.Volumes:
		return OfObject
	case near.context == nil || !r.Peers && !r.Volumes: // predicates that read volumes are evaluated last
		return ofNode
	case r.Candidates && near.group != nil:
		return ofGroup
	}
	return ofDomains
}

// shares reports whether the result of a row depends only on the node, on what the row reads of the class, and on the epoch. If no terms
// apply to the class, the topology domains of nodes do not matter.
func (x *classRows) shares(r *Row) bool {
	return !r.own && !r.Volumes && !r.Beyond && (x.c.domains.context == nil || !r.Peers)
}

// join gives a class the columns of its rows: those that it shares with others, and those of its own.
func (x *classRows) join() {
	v, plan, rows := x.c.v, x.c.v.Plan, len(x.c.Cells)
	x.opinions, x.values = language.RoomFor(x.opinions, len(plan.predicates)), language.RoomFor(x.values, len(plan.Scores))
	x.Raw = language.RoomFor(x.Raw, len(plan.Scores))
	var key []byte
	for k, r := range plan.predicates {
		x.opinions[k] = nil
		if x.shares(r) {
			key = x.key(key[:0], r)
			x.opinions[k] = v.Results.Opinions.of(key, rows)
		}
	}
	for k, r := range plan.Scores {
		if x.shares(r) {
			key = x.key(key[:0], r)
			x.values[k] = v.Results.Values.of(key, rows)
			x.Raw[k] = x.values[k].what
			continue
		}
		if x.values[k] != nil {
			x.values[k], x.Raw[k] = nil, nil
		}
		x.Raw[k] = slab.Resized(x.Raw[k], rows)
	}
	v.joined()
}

// hold marks the columns of the class as in use.
func (x *classRows) hold() {
	for _, kept := range x.opinions {
		if kept != nil {
			kept.held = true
		}
	}
	for _, kept := range x.values {
		if kept != nil {
			kept.held = true
		}
	}
}

// key returns a text of a row and of everything that it reads in addition to the nodes.
func (x *classRows) key(b []byte, r *Row) []byte {
	b = binary.AppendVarint(b, int64(r.Number))
	if r.byEpoch {
		b = append(b, x.c.epoch...)
	}
	return x.c.v.encodeReads(b, x.c.Task, r.Class)
}

// guard evaluates a row's guard once, if the result is the same for all nodes. A guard that fails is evaluated for each node, because the
// error names the node.
func (x *classRows) guard(k int, r *Row, f *language.Frame) guard {
	if x.guards[k] != unknown {
		return x.guards[k]
	}
	x.guards[k] = varies
	if r.byClass {
		switch has, err := x.c.v.ask.Guard(r.Rule, f); {
		case err != nil:
		case has:
			x.guards[k] = holds
		default:
			x.guards[k] = stays
		}
	}
	return x.guards[k]
}

// scoreGuard does what guard does, for a row of scores.
func (x *classRows) scoreGuard(k int, r *Row, f *language.Frame) guard {
	return x.guard(len(x.c.v.Plan.predicates)+k, r, f)
}

// scores lists the scores to evaluate.
func (x *classRows) scores(f *language.Frame) *askedScores {
	out := &x.asked
	if out.made {
		return out
	}
	*out = askedScores{made: true, all: out.all[:0], added: out.added[:0]}
	for k, r := range x.c.v.Plan.Scores {
		if r.own {
			continue
		}
		if x.scoreGuard(k, r, f) == stays {
			x.silence(k)
			continue
		}
		out.all, out.fixed = append(out.all, k), out.fixed || x.scoreLayers[k] == OfObject
		if !r.Normalises() {
			out.added = append(out.added, k)
		}
	}
	return out
}

// silence records that a score has no opinion on any node.
func (x *classRows) silence(k int) {
	for row := range x.Raw[k] {
		x.Raw[k][row] = math.NaN()
	}
	x.ranges[k].first, x.ranges[k].known = math.NaN(), true
}

// opinion returns the opinion of a predicate on a row's node.
func (x *classRows) opinion(f *language.Frame, k int, row int32) language.Opinion {
	v := x.c.v
	r, kept := v.Plan.predicates[k], x.opinions[k]
	at := v.versionsOf(r)[row] + 1
	if kept != nil && (kept.at[row] == at || kept.recall(&v.Alike, r, row, at)) {
		return kept.what[row]
	}
	errors := v.ask.Errors()
	look(f, row)
	var said language.Opinion
	if x.guards[k] == holds {
		said = v.ask.Says(r.Rule, f)
	} else {
		said = v.ask.Opinion(r.Rule, f)
	}
	if kept != nil && v.ask.Errors() == errors {
		kept.learn(&v.Alike, r, row, said, at)
	}
	return said
}

// look points a frame to a node, unless the frame has one already.
func look(f *language.Frame, row int32) {
	if f.Node == nil {
		f.Point(row)
	}
}

// value evaluates a score for a row's node: NaN if it has no opinion, or failed.
func (x *classRows) value(f *language.Frame, k int, row int32) {
	v := x.c.v
	r, kept := v.Plan.Scores[k], x.values[k]
	at := v.versionsOf(r)[row] + 1
	if kept == nil || kept.at[row] != at && !kept.recall(&v.Alike, r, row, at) {
		errors := v.ask.Errors()
		look(f, row)
		x.Raw[k][row] = x.valueAfresh(f, k, r)
		if kept != nil && v.ask.Errors() == errors {
			kept.learn(&v.Alike, r, row, x.Raw[k][row], at)
		}
	}
	x.note(k, row)
}

// valuesLater writes the values of a score for some nodes, which need not be in the present group to choose from.
func (x *classRows) valuesLater(f *language.Frame, k int, nodes []int32, out []float64) {
	v := x.c.v
	r, kept, versions := v.Plan.Scores[k], x.values[k], v.versionsOf(v.Plan.Scores[k])
	if r.own || r.Candidates {
		kept = nil // the value differs among other nodes
	}
	for i, row := range nodes {
		at := versions[row] + 1
		if kept != nil && (kept.at[row] == at || kept.recall(&v.Alike, r, row, at)) {
			out[i] = kept.what[row]
			continue
		}
		errors := v.ask.Errors()
		f.Point(row)
		out[i] = v.ask.Score(r.Rule, f)
		if kept != nil && v.ask.Errors() == errors {
			kept.learn(&v.Alike, r, row, out[i], at)
		}
	}
}

func (x *classRows) valueAfresh(f *language.Frame, k int, r *Row) float64 {
	switch x.scoreGuard(k, r, f) {
	case stays:
		return math.NaN()
	case holds:
		return x.c.v.ask.Value(r.Rule, f)
	default:
		return x.c.v.ask.Score(r.Rule, f)
	}
}

// note records whether all values of a score are equal.
func (x *classRows) note(k int, row int32) {
	raw, one := x.Raw[k][row], &x.ranges[k]
	if !one.known {
		one.first, one.known = raw, true
	}
	one.same = one.same && (raw == one.first || raw != raw && one.first != one.first)
}

// sum returns the sum of the scores without normalisation.
func (x *classRows) sum(row int32) float64 {
	base := 0.0
	for _, k := range x.asked.added {
		base += x.c.v.Plan.Scores[k].Weighted(x.Raw[k][row])
	}
	return base
}
