package verdict

// classStore contains the classes that are in use, by key.
type classStore struct {
	ByKey   map[string]*Class
	spare   []*Class // unused classes, whose memory is used again
	Entries int      // maximum number of entries of all classes together
	turn    uint64   // the turn of the last class that was used
	cycle   uint64
	// refusals is the number of different reasons of classes so far.
	refusals uint64
}

// mostEntries is the maximum number of entries of all classes together, one per node and class: some 100 bytes each.
const mostEntries = 1 << 23

// of returns the class with a key. If it is new, it has no results.
func (x *classStore) of(v *Verdicts, key string) *Class {
	c := x.ByKey[key]
	if c == nil {
		if c = x.vacant(len(v.nodes.Rows)); c == nil {
			c = newClass(v)
		}
		c.key, x.ByKey[key] = key, c
	}
	x.turn++
	c.used, c.turn = x.cycle, x.turn
	return c
}

// vacant returns a class whose memory can be used for another: an unused class or, if the maximum is reached, the least recently used
// class. nil: there is none.
func (x *classStore) vacant(rows int) *Class {
	var out *Class
	if last := len(x.spare) - 1; len(x.ByKey) < 1+x.Entries/(rows+1) {
		if last < 0 {
			return nil
		}
		out, x.spare = x.spare[last], x.spare[:last]
	} else {
		for _, c := range x.ByKey {
			if out == nil || c.turn < out.turn {
				out = c
			}
		}
		delete(x.ByKey, out.key)
	}
	out.Cells = out.Cells[:0] // everything is computed again
	return out
}

// begin starts a cycle. It drops classes that the last cycles did not use, and reports whether there were any.
func (x *classStore) begin(cycle uint64) (some bool) {
	x.cycle = cycle
	for key, c := range x.ByKey {
		if c.used+2 < cycle {
			delete(x.ByKey, key)
			some = true
			if len(x.spare) < mostSpare {
				x.spare = append(x.spare, c)
			}
		}
	}
	return some
}
