package model

// logLimit is how many entries a Log holds before its older half is cut.
const logLimit = 1 << 16

// Add appends an entry, in constant time on the average.
func (l *Log[T]) Add(entry T) {
	if len(l.Entries) >= logLimit {
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
