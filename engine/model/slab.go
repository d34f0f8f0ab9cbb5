package model

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
