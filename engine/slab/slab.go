// Package slab allocates values, texts and lists in chunks, for callers that need tens of thousands of them.
package slab

import (
	"slices"
	"strings"
)

// slabSize is the number of values in a chunk. One value that is in use keeps the whole chunk in memory, so it is small.
const slabSize = 32

// Of allocates values in chunks. The allocator is called less often, and values that are created together are adjacent in memory. The zero
// value is ready.
type Of[T any] struct{ free []T }

// New returns a pointer to a zero value.
func (s *Of[T]) New() *T { return &s.Slice(1)[0] }

// Slice returns n zero values. Its capacity is n, so append never extends it in place.
func (s *Of[T]) Slice(n int) []T {
	if n > len(s.free) {
		if n >= slabSize {
			return make([]T, n)
		}
		s.free = make([]T, slabSize)
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

// textRoom is the size of a chunk of texts in bytes. One text that is in use keeps the whole chunk in memory.
const textRoom = 1 << 10

// Texts allocates strings in chunks, as Of does with values. The zero value is ready. Do not copy it.
type Texts struct{ b strings.Builder }

// New returns text as a string.
func (t *Texts) New(text []byte) string {
	if len(text) > t.b.Cap()-t.b.Len() {
		if len(text) > textRoom/4 {
			return string(text)
		}
		t.b.Reset()
		t.b.Grow(textRoom)
	}
	start := t.b.Len()
	t.b.Write(text) // the capacity suffices, so earlier texts do not move
	return t.b.String()[start:]
}

// Append appends a value. If the capacity is used up, it doubles it. The built-in append extends a long list only by a quarter, and so
// copies it more often.
func Append[T any](list []T, x T) []T {
	if n := len(list); n == cap(list) {
		list = slices.Grow(list, n+1)
	}
	return append(list, x)
}

// Resized returns a zeroed slice with that length. It uses the old one if that is large enough.
func Resized[T any](old []T, n int) []T {
	if cap(old) >= n {
		old = old[:n]
		clear(old)
		return old
	}
	return make([]T, n)
}

// Swept is the size of a collection after its last cleanup.
type Swept int

// Due reports whether the size is more than twice the last size plus keep. A cleanup then costs no more than the growth.
func (w Swept) Due(size, keep int) bool { return size > 2*int(w)+keep }
