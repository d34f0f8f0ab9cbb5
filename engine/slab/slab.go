// Package slab makes values, texts and lists by the chunk, for what there is by the ten thousand.
package slab

import (
	"slices"
	"strings"
)

// slabSize is how many values an Of makes at once. While one of them is used the others are kept with it, so it is small.
const slabSize = 32

// Of makes values by the chunk, for what is made by the ten thousand: the allocator is asked less often, and what is made together
// lies together. The zero value is ready.
type Of[T any] struct{ free []T }

// New is a zero value.
func (s *Of[T]) New() *T { return &s.Slice(1)[0] }

// Slice is n zero values, which no append grows in place.
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

// textRoom is how many bytes of texts lie together at most. Who keeps one of them keeps the others.
const textRoom = 1 << 10

// Texts makes strings that lie together, as Of does with values. The zero value is ready; it is not to be copied.
type Texts struct{ b strings.Builder }

// New is text as a string.
func (t *Texts) New(text []byte) string {
	if len(text) > t.b.Cap()-t.b.Len() {
		if len(text) > textRoom/4 {
			return string(text)
		}
		t.b.Reset()
		t.b.Grow(textRoom)
	}
	start := t.b.Len()
	t.b.Write(text) // there is room, so what was made before stays where it is
	return t.b.String()[start:]
}

// Append appends one, with twice the room where there is none: the built-in one gives a long list but a quarter more, and so
// copies it more often.
func Append[T any](list []T, x T) []T {
	if n := len(list); n == cap(list) {
		list = slices.Grow(list, n+1)
	}
	return append(list, x)
}

// Resized is a zeroed slice of that length, the old one where it is large enough.
func Resized[T any](old []T, n int) []T {
	if cap(old) >= n {
		old = old[:n]
		clear(old)
		return old
	}
	return make([]T, n)
}

// Swept is the size of something when it was swept last of what is gone.
type Swept int

// Due says whether it has outgrown that by as much again and keep: sweeping then costs what growing did.
func (w Swept) Due(size, keep int) bool { return size > 2*int(w)+keep }
