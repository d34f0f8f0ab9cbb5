package model

// A Log holds so many entries before its older half is cut: at most logLimit, at least logLeast.
const (
	logLimit = 1 << 16
	logLeast = 1 << 12
	// logShare is how many times as long as what it is about a log may be: to read that anew costs a reader no more than a log of
	// that length, and the entries keep what is long gone.
	logShare = 4
)

// Add appends an entry, in constant time on the average.
func (l *Log[T]) Add(entry T) { l.AddOf(entry, logLimit) }

// AddOf is Add to a log about so many things.
func (l *Log[T]) AddOf(entry T, things int) {
	if len(l.Entries) >= min(max(logShare*things, logLeast), logLimit) {
		cut := len(l.Entries) / 2
		n := copy(l.Entries, l.Entries[cut:])
		clear(l.Entries[n:]) // so that what is cut can be collected
		l.Entries = l.Entries[:n]
		l.Start += uint64(cut)
	}
	l.Entries = Append(l.Entries, entry)
}

// Next is the cursor past the end: what a reader that has read everything keeps.
func (l *Log[T]) Next() uint64 { return l.Start + uint64(len(l.Entries)) }

// Since lists the entries from cursor on; they may repeat. They are shared and valid until
// the next change of the cluster. Where ok is false the log was cut behind the cursor, or the
// cursor is not of this log, and the reader must read everything, then go on from Next.
func (l *Log[T]) Since(cursor uint64) (entries []T, ok bool) {
	if cursor < l.Start || cursor > l.Next() {
		return nil, false
	}
	return l.Entries[cursor-l.Start:], true
}
