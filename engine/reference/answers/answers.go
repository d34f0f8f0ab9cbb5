// Package answers says what sites answer in a cycle, which node is best for a task, and who may go for it. It is the part of
// engine/reference between what expressions give and what is decided.
//
//	sites.go    how the answers of rows combine, and how things are put in order
//	node.go     one task: predicates, scores, the best node, or why there is none
//	victims.go  who may go for a task, and in which order
package answers

import (
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/values"
)

// Answers is what sites answer in one cycle.
type Answers struct {
	*values.Values
	c *model.Cluster
	p *policy.Policy
	// Warnings are of conditions that erred, each once.
	Warnings []string
}

// New begins a cycle, with what settled as the run began.
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
