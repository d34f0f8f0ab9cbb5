package policy

// workspace is what evaluations use one after the other. Goroutines that evaluate at once have one each.
type workspace struct {
	variables []heldValue
	// The scratch of one column.
	codes       []int32
	answers     []Opinion
	left, right []float64
	names       []string
	offers      []offer
}

// stamp says since when a value holds: the cycle, a clock within it, and for what reads the action, how many have run.
type stamp struct{ cycle, clock, action uint64 }

// heldValue is a variable's value with what it was computed for.
type heldValue struct {
	memo
	on any
}
