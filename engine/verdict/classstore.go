package verdict

// classStore has the classes that are in use, by what they agree in.
type classStore struct {
	ByKey   map[string]*Class
	spare   []*Class // of the past; their memory is used again
	Entries int      // the most that all of them have
	turn    uint64   // of the last class that was used
	cycle   uint64
	// refusals is how many reasons of classes were told apart so far.
	refusals uint64
}

// mostEntries is how many entries, one a node each, all classes have together: some 100 bytes each.
const mostEntries = 1 << 23

// of is the class of a key, that of a new one with nothing known.
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

// vacant is a class of which the memory can be used for another: one of the past, or where there are as many as may be, the one
// that was not used for the longest time; nil: there is none.
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
	out.Cells = out.Cells[:0] // so that all is computed anew
	return out
}

// begin starts a cycle: classes that were not used in the last ones are let go. It says whether there were any.
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
