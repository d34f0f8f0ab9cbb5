package eviction

import (
	"encoding/binary"
	"math"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// together contains caches for GiveBack.
type together struct {
	vacant vacant
	gated  []int // the promises for which the gate allocatable is evaluated
}

// vacant stores on which nodes a request fits by its amounts, for one content of the cluster. Among many promises there are few different
// requests, and few promises are moved.
type vacant struct {
	content uint64
	rows    map[string][2]int32 // the first two, because one may be the task's own
	text    []byte
}

// beside reports whether a node other than own has enough free resources for a request.
func (v *vacant) beside(c *model.Cluster, asked model.Resources, own int32) bool {
	if v.rows == nil || v.content != c.Content() {
		v.content, v.rows = c.Content(), map[string][2]int32{}
	}
	v.text = v.text[:0]
	for _, amount := range asked {
		v.text = binary.LittleEndian.AppendUint64(v.text, math.Float64bits(amount))
	}
	rows, known := v.rows[string(v.text)]
	if !known {
		rows = firstTwo(&c.Nodes, asked)
		v.rows[string(v.text)] = rows
	}
	return rows[0] != model.NoNode && (rows[0] != own || rows[1] != model.NoNode)
}

// firstTwo returns the first two nodes with enough free resources for a request.
func firstTwo(nodes *model.Nodes, asked model.Resources) [2]int32 {
	out, n := [2]int32{model.NoNode, model.NoNode}, 0
	for row := range int32(len(nodes.Rows)) {
		if nodes.FitsFuture(asked, row) {
			out[n] = row
			if n++; n == len(out) {
				break
			}
		}
	}
	return out
}

// gatedApart returns the promises for which the gate allocatable must be evaluated. The gate gives equal answers for promises of the same
// kind, so only the first of each kind is evaluated.
func gatedApart(s *session.Session, done []Room) (out []int) {
	gates, asked := session.NewGates(s), map[string]bool{}
	for i := range done {
		if !done[i].by.allocatable {
			continue
		}
		kind, known := gates.Kind(done[i].Task)
		if known && asked[kind] {
			continue
		}
		asked[kind] = true
		out = append(out, i)
	}
	return out
}
