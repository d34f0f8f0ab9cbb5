// Package digest identifies plans by numbers. Two runs can be compared by one number: before and after a change, or with two
// implementations.
package digest

import (
	"encoding/json"
	"fmt"
	"hash"
	"hash/fnv"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// decisions are the parts of a plan that a digest of decisions covers: the names of objects, nodes and devices, the scores, and the rows
// that decided, but no texts.
type decisions struct {
	Admits    []model.Admit
	Binds     []model.Bind
	Evicts    []model.Evict
	Pipelines []model.Bind
	Holds     []model.Bind
	Phases    [][2]string // job and phase
}

func decisionsOf(p *model.Plan) decisions {
	d := decisions{
		Admits: slices.Clone(p.Admits), Binds: withoutTexts(p.Binds), Evicts: slices.Clone(p.Evicts),
		Pipelines: withoutTexts(p.Pipelines), Holds: withoutTexts(p.Holds),
	}
	for i := range d.Admits {
		d.Admits[i].Reason.Text = ""
	}
	for i := range d.Evicts {
		d.Evicts[i].Reason.Text, d.Evicts[i].Needed.Text = "", ""
	}
	for _, j := range p.Jobs {
		d.Phases = append(d.Phases, [2]string{j.Job, j.Phase})
	}
	return d
}

func withoutTexts(binds []model.Bind) []model.Bind {
	out := slices.Clone(binds)
	for i := range out {
		out[i].Reason.Text = ""
	}
	return out
}

// Sum is the digest of some plans, in the order in which they were added.
type Sum struct {
	plans            int
	decisions, texts hash.Hash64
}

// New returns the digest of these plans.
func New(plans ...*model.Plan) (*Sum, error) {
	s := &Sum{decisions: fnv.New64a(), texts: fnv.New64a()}
	for _, p := range plans {
		if err := s.Add(p); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Add adds a plan. An error is a number in the plan that JSON cannot express.
func (s *Sum) Add(p *model.Plan) error {
	s.plans++
	if err := json.NewEncoder(s.decisions).Encode(decisionsOf(p)); err != nil {
		return fmt.Errorf("encode the decisions of a plan: %w", err)
	}
	if err := json.NewEncoder(s.texts).Encode(p); err != nil {
		return fmt.Errorf("encode a plan: %w", err)
	}
	return nil
}

// Decisions returns the digest of what the plans decide.
func (s *Sum) Decisions() uint64 { return s.decisions.Sum64() }

// Texts returns the digest of everything in the plans, including texts.
func (s *Sum) Texts() uint64 { return s.texts.Sum64() }

// String returns the number of plans and both digests.
func (s *Sum) String() string {
	return fmt.Sprintf("plans %d decisions %016x texts %016x", s.plans, s.Decisions(), s.Texts())
}
