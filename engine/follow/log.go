package follow

import "slices"

// Maximum lengths of a Log, before its older half is removed: at most LogLimit, at least logLeast.
const (
	LogLimit = 1 << 16
	logLeast = 1 << 12
	// logShare is the maximum ratio between the length of a log and the number of its objects. Reading all objects again costs no more than
	// reading such a log, and old entries keep deleted objects in memory.
	logShare = 4
)

// Log is an append-only list, which each reader follows with its own Cursor. If it grows past its limit, its older half is removed. A
// reader whose cursor is before Start must then read everything again.
type Log[T any] struct {
	Start   uint64
	Entries []T
}

// Add appends an entry, in constant time on average.
func (l *Log[T]) Add(entry T) { l.AddOf(entry, LogLimit) }

// AddOf does what Add does, for a log about this number of objects.
func (l *Log[T]) AddOf(entry T, things int) {
	if len(l.Entries) >= min(max(logShare*things, logLeast), LogLimit) {
		cut := len(l.Entries) / 2
		n := copy(l.Entries, l.Entries[cut:])
		clear(l.Entries[n:]) // so that the removed entries can be garbage-collected
		l.Entries = l.Entries[:n]
		l.Start += uint64(cut)
	}
	if n := len(l.Entries); n == cap(l.Entries) {
		l.Entries = slices.Grow(l.Entries, n+1) // append would extend a long list only by a quarter
	}
	l.Entries = append(l.Entries, entry)
}

// Next returns the number of the next entry.
func (l *Log[T]) Next() uint64 { return l.Start + uint64(len(l.Entries)) }

// End returns a cursor after the last entry.
func (l *Log[T]) End() (c Cursor[T]) {
	c.Skip(l)
	return c
}

// since lists the entries from cursor on. ok is false if the log was cut after the cursor, or the cursor belongs to another log.
func (l *Log[T]) since(cursor uint64) (entries []T, ok bool) {
	if cursor < l.Start || cursor > l.Next() {
		return nil, false
	}
	return l.Entries[cursor-l.Start:], true
}

// Cursor is the position of one reader in a log. The zero value belongs to a reader that has not begun.
type Cursor[T any] struct{ past uint64 } // the log's Next, plus 1

// Read lists the entries since the last Read or Skip, and moves past them. Entries may repeat, and are valid until the next change of the
// cluster. ok is false if the entries are unknown, or the reader has not begun. The reader must then read all objects of the log again.
func (c *Cursor[T]) Read(l *Log[T]) (entries []T, ok bool) {
	entries, ok = c.Peek(l)
	c.Skip(l)
	return entries, ok
}

// Peek does what Read does, but does not move the cursor.
func (c *Cursor[T]) Peek(l *Log[T]) (entries []T, ok bool) {
	if c.past == 0 {
		return nil, false
	}
	return l.since(c.past - 1)
}

// Skip moves past all entries. It is for a reader that has read everything from scratch.
func (c *Cursor[T]) Skip(l *Log[T]) { c.past = l.Next() + 1 }

// Reset moves the cursor back to its zero value.
func (c *Cursor[T]) Reset() { c.past = 0 }

// Begun reports whether the reader has read everything once.
func (c *Cursor[T]) Begun() bool { return c.past > 0 }

// AtEnd reports whether there are no newer entries.
func (c *Cursor[T]) AtEnd(l *Log[T]) bool { return c.past == l.Next()+1 }

// Follow updates a reader: it calls each for each new entry, or anew if the new entries are unknown.
func (c *Cursor[T]) Follow(l *Log[T], each func(T), anew func()) {
	entries, ok := c.Read(l)
	if !ok {
		anew()
		return
	}
	for _, entry := range entries {
		each(entry)
	}
}
