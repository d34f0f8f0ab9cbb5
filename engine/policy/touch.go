package policy

// asks lists what of the policy a class asks of a node whose object is what it was: numbers of scores. It is made when the class
// has computed all.
type asks struct {
	made   bool
	moving []int // scores that a node is asked for again when it changed
	fixed  []int // those that it is asked for until its object changes
	added  []int // of both, those that are not normalised
}

// toAsk lists them.
func (c *Class) toAsk(f *Frame) *asks {
	x := &c.asks
	if x.made {
		return x
	}
	*x = asks{made: true, moving: x.moving[:0], fixed: x.fixed[:0], added: x.added[:0]}
	first := len(c.s.columns.predicates)
	for k, r := range c.s.columns.scores {
		if r.own || c.guard(first+k, r, f) == stays {
			continue
		}
		if c.layers[first+k] == ofObject {
			x.fixed = append(x.fixed, k)
		} else {
			x.moving = append(x.moving, k)
		}
		if !r.Normalises() {
			x.added = append(x.added, k)
		}
	}
	return x
}

// touch brings the entries of nodes up to date that changed in another way than by their objects, and that nobody's terms but their own
// concern: a node that the rows of its object reject stays rejected. The rows may be in any order, as what errs is computed again in the nodes'.
func (c *Class) touch(rows []int32) {
	f := c.s.frame().OfTask(c.task)
	defer c.s.done()
	w := &c.s.sweep
	w.begin(len(c.at))
	live := w.only(rows, func(_ int, row int32) bool {
		if c.at[row].statics != 0 {
			return false
		}
		c.contest.move(row)
		c.count(row, -1)
		c.at[row].plain = 0
		return true
	})
	c.sift(f, ofNode, live)
	scored := true
	left := w.only(live, func(_ int, row int32) bool {
		c.at[row].fits = c.fit(row)
		c.at[row].verdict = c.withDevices(row, c.at[row].plain)
		fits := c.at[row].verdict == 0 && c.at[row].fits != noFit
		scored = scored && (c.at[row].scored || !fits)
		return fits
	})
	asks := c.toAsk(f)
	if !scored {
		unscored := w.only(left, func(_ int, row int32) bool { return !c.at[row].scored })
		c.sweepColumns(f, asks.fixed, unscored)
	}
	c.sweepColumns(f, asks.moving, left)
	for _, row := range left {
		if w.marks[row] != w.round {
			c.at[row].scored = true
			c.addUp(row, asks.added)
		}
	}
	for _, row := range live {
		if w.marks[row] != w.round {
			c.count(row, 1)
		}
	}
	c.takeBack(f)
}

// sweepColumns computes some rows of scores on some nodes.
func (c *Class) sweepColumns(f *Frame, scores []int, rows []int32) {
	w := &c.s.sweep
	for _, k := range scores {
		c.sweepScore(f, k, rows)
		if !c.s.columns.scores[k].Normalises() {
			continue
		}
		for _, row := range rows {
			if w.marks[row] != w.round {
				c.note(k, c.raw[k][row])
			}
		}
	}
}

// addUp sums the rows without normalisation.
func (c *Class) addUp(row int32, scores []int) {
	base := 0.0
	for _, k := range scores {
		base += c.s.columns.scores[k].Weighted(c.raw[k][row])
	}
	c.at[row].base = base
}
