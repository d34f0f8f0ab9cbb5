package policy

import "github.com/celsius-scheduler/celsius/engine/model"

// sizes are the most that any node has of each dimension when it is empty, as of a clock of the objects, plus 1.
type sizes struct {
	at   uint64
	most model.Resources
}

// largest is the most that any node has of a dimension.
func (s *Session) largest(dim int) float64 {
	n, x := &s.c.Nodes, &s.ofNodes
	if at := s.c.ObjectClock + 1; x.at != at {
		x.at, x.most = at, x.most[:0]
		for dim, column := range n.Allocatable {
			most := 0.0
			for row, has := range column {
				if has > most && n.Rows[row] != nil {
					most = has
				}
			}
			x.most.Set(dim, most)
		}
	}
	return x.most.Get(dim)
}

// NeverFits says of a task that asks for more than any node has when it is empty that it does; "" of any other.
func (s *Session) NeverFits(t *model.Task) string {
	if len(s.c.Nodes.Index) == 0 {
		return ""
	}
	for _, dim := range s.c.Nodes.Dims() {
		if t.InitRequest.Has(dim) {
			if never := s.misfit(t, dim); never != "" {
				return never
			}
		}
	}
	return ""
}

// misfit is never of a task that asks for more of a dimension than any node has; "" of any other.
func (s *Session) misfit(t *model.Task, dim int) string {
	if t.InitRequest[dim] > s.largest(dim)+model.Slack {
		return s.never(t, dim)
	}
	return ""
}

func (s *Session) never(t *model.Task, dim int) string {
	text := "it asks for " + s.c.Dims.Name(dim) + " " + s.c.Dims.AmountText(dim, t.InitRequest[dim]) + " and can never fit: "
	if most := s.largest(dim); most > 0 {
		return text + "the largest node has " + s.c.Dims.AmountText(dim, most)
	}
	return text + "no node has any"
}
