package policy

// classStore has the classes that are in use, by what they agree in.
type classStore struct {
	byKey   map[string]*Class
	spare   []*Class // of the past; their memory is used again
	entries int      // the most that all of them have
	turn    uint64   // of the last class that was used
	cycle   uint64
}

// mostEntries is how many entries, one a node each, all classes have together: some 100 bytes each.
const mostEntries = 1 << 23

// of is the class of a key, that of a new one with nothing known.
func (x *classStore) of(v *verdicts, key string) *Class {
	c := x.byKey[key]
	if c == nil {
		if c = x.vacant(len(v.nodes.Rows)); c == nil {
			c = newClass(v)
		}
		c.key, x.byKey[key] = key, c
	}
	x.turn++
	c.used, c.turn = x.cycle, x.turn
	return c
}

// vacant is a class of which the memory can be used for another: one of the past, or where there are as many as may be, the one
// that was not used for the longest time; nil: there is none.
func (x *classStore) vacant(rows int) *Class {
	var out *Class
	if last := len(x.spare) - 1; len(x.byKey) < 1+x.entries/(rows+1) {
		if last < 0 {
			return nil
		}
		out, x.spare = x.spare[last], x.spare[:last]
	} else {
		for _, c := range x.byKey {
			if out == nil || c.turn < out.turn {
				out = c
			}
		}
		delete(x.byKey, out.key)
	}
	out.cells = out.cells[:0] // so that all is computed anew
	return out
}

// begin starts a cycle: classes that were not used in the last ones are let go. It says whether there were any.
func (x *classStore) begin(cycle uint64) (some bool) {
	x.cycle = cycle
	for key, c := range x.byKey {
		if c.used+2 < cycle {
			delete(x.byKey, key)
			some = true
			if len(x.spare) < mostSpare {
				x.spare = append(x.spare, c)
			}
		}
	}
	return some
}
