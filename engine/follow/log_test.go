package follow

import (
	"slices"
	"testing"
)

// TestCursorFollows checks that a reader gets each entry once. A reader that has not begun, or that fell behind, must read everything
// again.
func TestCursorFollows(t *testing.T) {
	t.Parallel()
	var l Log[int]
	var c Cursor[int]
	var read []int
	anew := 0
	follow := func() {
		read, anew = nil, 0
		c.Follow(&l, func(x int) { read = append(read, x) }, func() { anew++ })
	}
	expect := func(when string, wantAnew int, want ...int) {
		t.Helper()
		follow()
		if anew != wantAnew || !slices.Equal(read, want) {
			t.Errorf("%s: %d entries, anew %d times; want %v, %d", when, len(read), anew, want, wantAnew)
		}
		if !c.AtEnd(&l) || !c.Begun() {
			t.Errorf("%s: something is left", when)
		}
	}
	l.Add(1)
	if c.Begun() || c.AtEnd(&l) {
		t.Error("it has begun before it read anything")
	}
	expect("before it has begun", 1)
	expect("without anything new", 0)
	l.Add(2)
	l.Add(3)
	if entries, ok := c.Peek(&l); !ok || !slices.Equal(entries, []int{2, 3}) || c.AtEnd(&l) {
		t.Errorf("a look ahead gives %v, %t", entries, ok)
	}
	expect("with two more", 0, 2, 3)
	l.Add(4)
	c.Skip(&l)
	expect("past what was left out", 0)
	if end := l.End(); end != c {
		t.Errorf("the end is %v, not %v", end, c)
	}
	for i := range 2 * LogLimit {
		l.Add(i)
	}
	expect("after a cut", 1)
	c.Reset()
	expect("from the beginning", 1)
	var other Log[int]
	c.Follow(&other, func(int) { t.Error("an entry of no log") }, func() { anew++ })
	if anew != 2 {
		t.Error("it goes on in the middle of another log")
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	var l Log[int]
	fill := func(n int) {
		for range n {
			l.Add(int(l.Next())) // each entry is its own cursor
		}
	}
	since := func(cursor uint64, ok bool, length uint64) {
		t.Helper()
		entries, got := l.since(cursor)
		if got != ok || uint64(len(entries)) != length {
			t.Errorf("since %d: %d entries, %t; want %d, %t", cursor, len(entries), got, length, ok)
		}
		if len(entries) > 0 && entries[0] != int(cursor) {
			t.Errorf("since %d: the first entry is %d", cursor, entries[0])
		}
	}
	since(0, true, 0)
	fill(LogLimit)
	since(10, true, LogLimit-10)
	fill(1) // the log drops its older half
	since(10, false, 0)
	since(LogLimit/2, true, LogLimit/2+1)
	since(LogLimit+1, true, 0)
	since(LogLimit+2, false, 0) // this log never gave out this cursor
}
