package model

import "slices"

// slabSize is how many values a Slab makes at once. While one of them is used the others are kept with it, so it is small.
const slabSize = 32

// Slab makes values by the chunk, for what is made by the ten thousand: the allocator is asked less often, and what is made together
// lies together. The zero value is ready.
type Slab[T any] struct{ free []T }

// New is a zero value.
func (s *Slab[T]) New() *T { return &s.Slice(1)[0] }

// Slice is n zero values, which no append grows in place.
func (s *Slab[T]) Slice(n int) []T {
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

// Append appends one, with twice the room where there is none: the built-in one gives a long list but a quarter more, and so
// copies it more often.
func Append[T any](list []T, x T) []T {
	if n := len(list); n == cap(list) {
		list = slices.Grow(list, n+1)
	}
	return append(list, x)
}
