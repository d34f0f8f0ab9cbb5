// Package answers defines the answers of sites in a cycle, the best node for a task, and which tasks may be evicted for a task. It is the
// part of engine/reference between the values of expressions and the decisions.
//
//	sites.go    how the answers of rows are combined, and how objects are ordered
//	node.go     one task: predicates, scores, the best node, or why there is none
//	victims.go  which tasks may be evicted for a task, and in which order
package answers

import (
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/values"
)

// Answers computes the answers of sites in one cycle.
type Answers struct {
	*values.Values
	c *model.Cluster
	p *policy.Policy
	// Warnings contains the errors of conditions, each once.
	Warnings []string
}

// New begins a cycle. settled contains the values that settled when the run began.
func New(c *model.Cluster, p *policy.Policy, now time.Time, settled values.Settled) *Answers {
	x := &Answers{c: c, p: p}
	x.Values = values.New(c, p, now, settled, x.Starving, x.IsReady)
	return x
}

func (x *Answers) warn(text string) {
	if !slices.Contains(x.Warnings, text) {
		x.Warnings = append(x.Warnings, text)
	}
}
