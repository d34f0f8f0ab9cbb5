package follow

import (
	"fmt"
	"slices"
)

// Slots assigns numbers to objects of a kind: each existing object has its own slot. Slots are small numbers, beginning with 0, because a
// new object gets the slot of a deleted one. So data about each object fits in a slice: see BySlot.
type Slots struct {
	// Changed lists the slots whose objects were deleted or changed: data that was computed from them is no longer valid.
	Changed Log[int32]

	count int32   // number of slots that were ever taken
	free  []int32 // to be taken again
	left  []int32 // left by objects that were deleted since Settle
}

// Take returns a slot for a new object.
func (s *Slots) Take() int32 {
	if last := len(s.free) - 1; last >= 0 {
		slot := s.free[last]
		s.free = s.free[:last]
		return slot
	}
	s.count++
	return s.count - 1
}

// Leave returns the slot of a deleted object.
func (s *Slots) Leave(slot int32) {
	s.left = append(s.left, slot)
	s.Change(slot)
}

// Change records that the object in a slot changed.
func (s *Slots) Change(slot int32) { s.Changed.AddOf(slot, int(s.count)) }

// Settle allows slots that were left to be taken again. It runs later than Leave, so that readers learn of the deletion before the slot has
// a new object.
func (s *Slots) Settle() {
	s.free = append(s.free, s.left...)
	s.left = s.left[:0]
}

// Len returns the number of slots, taken and free.
func (s *Slots) Len() int { return int(s.count) }

// Check checks that each slot has one object or is free. used are the slots of the objects.
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

// BySlot stores a value for each object of a kind. The zero value is empty.
type BySlot[T any] struct {
	kept   []T
	cursor Cursor[int32]
	slots  int // number of slots at the last Follow
}

// Get returns the value of a slot; the zero value if there is none.
func (b *BySlot[T]) Get(slot int32) (x T) {
	if int(slot) < len(b.kept) {
		return b.kept[slot]
	}
	return x
}

// Set stores a value in a slot.
func (b *BySlot[T]) Set(slot int32, x T) {
	b.Grow(max(int(slot)+1, b.slots)) // for all slots at once, because the others are usually set as well
	b.kept[slot] = x
}

// Grow allocates memory for n slots, so that later calls of Set move nothing.
func (b *BySlot[T]) Grow(n int) {
	if more := n - len(b.kept); more > 0 {
		b.kept = append(b.kept, make([]T, more)...)
	}
}

// Follow drops the values of objects that were deleted or changed since the last call.
func (b *BySlot[T]) Follow(s *Slots) {
	b.slots = s.Len()
	b.cursor.Follow(&s.Changed, func(slot int32) {
		if int(slot) < len(b.kept) {
			clear(b.kept[slot : slot+1])
		}
	}, func() { clear(b.kept) })
}
