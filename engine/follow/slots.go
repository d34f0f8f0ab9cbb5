package follow

import (
	"fmt"
	"slices"
)

// Slots numbers objects of a kind: each has a slot of its own while it is there. They are small numbers, from 0 on, as one that goes leaves
// its slot to one that comes, so that what is known of each object fits a slice: see BySlot.
type Slots struct {
	// Changed names the slots whose objects went, or are others than they were: what was made of these holds no more.
	Changed Log[int32]

	count int32   // how many were ever taken
	free  []int32 // to be taken again
	left  []int32 // by those that went since Settle
}

// Take gives a slot to an object that comes.
func (s *Slots) Take() int32 {
	if last := len(s.free) - 1; last >= 0 {
		slot := s.free[last]
		s.free = s.free[:last]
		return slot
	}
	s.count++
	return s.count - 1
}

// Leave takes its slot from an object that goes.
func (s *Slots) Leave(slot int32) {
	s.left = append(s.left, slot)
	s.Change(slot)
}

// Change says that the object in a slot is another.
func (s *Slots) Change(slot int32) { s.Changed.AddOf(slot, int(s.count)) }

// Settle lets slots be taken again that were left: later than that, so that who goes is heard of before who comes.
func (s *Slots) Settle() {
	s.free = append(s.free, s.left...)
	s.left = s.left[:0]
}

// Len is how many slots there are, taken and free.
func (s *Slots) Len() int { return int(s.count) }

// Check holds slots to being of one object each, and to being lost by none; used are those of the objects.
func (s *Slots) Check(used []int32) error {
	for i, slot := range slices.Sorted(slices.Values(slices.Concat(used, s.free, s.left))) {
		if slot != int32(i) {
			return fmt.Errorf("of slot %d and slot %d one is lost, or is of two", i, slot)
		}
	}
	if n := len(used) + len(s.free) + len(s.left); n != s.Len() {
		return fmt.Errorf("%d slots of %d are lost", s.Len()-n, s.Len())
	}
	return nil
}

// BySlot keeps something of each object of a kind. Its zero value keeps nothing.
type BySlot[T any] struct {
	kept   []T
	cursor Cursor[int32]
	slots  int // as many as there were at the last Follow
}

// Get is what is kept in a slot; the zero value: nothing is.
func (b *BySlot[T]) Get(slot int32) (x T) {
	if int(slot) < len(b.kept) {
		return b.kept[slot]
	}
	return x
}

// Set keeps something in a slot.
func (b *BySlot[T]) Set(slot int32, x T) {
	b.Grow(max(int(slot)+1, b.slots)) // at once, as the others are set as well in general
	b.kept[slot] = x
}

// Grow makes room for so many slots: what is set in them from then on moves nothing.
func (b *BySlot[T]) Grow(n int) {
	if more := n - len(b.kept); more > 0 {
		b.kept = append(b.kept, make([]T, more)...)
	}
}

// Follow drops what is kept of objects that went or are others, as far as that was not done yet.
func (b *BySlot[T]) Follow(s *Slots) {
	b.slots = s.Len()
	b.cursor.Follow(&s.Changed, func(slot int32) {
		if int(slot) < len(b.kept) {
			clear(b.kept[slot : slot+1])
		}
	}, func() { clear(b.kept) })
}
