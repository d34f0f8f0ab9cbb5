package follow

import "slices"

// A Log holds so many entries before its older half is cut: at most LogLimit, at least logLeast.
const (
	LogLimit = 1 << 16
	logLeast = 1 << 12
	// logShare is how many times as long as what it is about a log may be: to read that anew costs a reader no more than a log of
	// that length, and the entries keep what is long gone.
	logShare = 4
)

// Log is an append-only list, which each reader follows by a Cursor of its own. When it grows past
// its limit it is cut, and a reader whose cursor lies before Start must read everything again.
type Log[T any] struct {
	Start   uint64
	Entries []T
}

// Add appends an entry, in constant time on the average.
func (l *Log[T]) Add(entry T) { l.AddOf(entry, LogLimit) }

// AddOf is Add to a log about so many things.
func (l *Log[T]) AddOf(entry T, things int) {
	if len(l.Entries) >= min(max(logShare*things, logLeast), LogLimit) {
		cut := len(l.Entries) / 2
		n := copy(l.Entries, l.Entries[cut:])
		clear(l.Entries[n:]) // so that what is cut can be collected
		l.Entries = l.Entries[:n]
		l.Start += uint64(cut)
	}
	if n := len(l.Entries); n == cap(l.Entries) {
		l.Entries = slices.Grow(l.Entries, n+1) // the built-in one gives a long list but a quarter more
	}
	l.Entries = append(l.Entries, entry)
}

// Next is the number of the next entry.
func (l *Log[T]) Next() uint64 { return l.Start + uint64(len(l.Entries)) }

// End is a cursor past all that there is.
func (l *Log[T]) End() (c Cursor[T]) {
	c.Skip(l)
	return c
}

// since lists the entries from cursor on. Where ok is false the log was cut behind the cursor, or the cursor is not of this log.
func (l *Log[T]) since(cursor uint64) (entries []T, ok bool) {
	if cursor < l.Start || cursor > l.Next() {
		return nil, false
	}
	return l.Entries[cursor-l.Start:], true
}

// Cursor is how far one reader has read a log. Its zero value is that of a reader who has not begun.
type Cursor[T any] struct{ past uint64 } // the log's Next, plus 1

// Read lists the entries that came since the last Read or Skip, and goes past them. They may repeat, and are valid until the next
// change of the cluster. Where ok is false they are not known, or the reader has not begun: it must read anew all that the log
// is about.
func (c *Cursor[T]) Read(l *Log[T]) (entries []T, ok bool) {
	entries, ok = c.Peek(l)
	c.Skip(l)
	return entries, ok
}

// Peek is Read, but stays where it is.
func (c *Cursor[T]) Peek(l *Log[T]) (entries []T, ok bool) {
	if c.past == 0 {
		return nil, false
	}
	return l.since(c.past - 1)
}

// Skip goes past all that there is, for a reader who has read everything anew.
func (c *Cursor[T]) Skip(l *Log[T]) { c.past = l.Next() + 1 }

// Reset has the reader begin again.
func (c *Cursor[T]) Reset() { c.past = 0 }

// Begun says that the reader has read everything once.
func (c *Cursor[T]) Begun() bool { return c.past > 0 }

// AtEnd says that nothing came since.
func (c *Cursor[T]) AtEnd(l *Log[T]) bool { return c.past == l.Next()+1 }

// Follow brings a reader up to date: by each entry that came since the last time, or where these are not known by everything anew.
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
