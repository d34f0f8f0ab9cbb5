package language

// Workspace is what evaluations use one after the other. Goroutines that evaluate at once have one each.
type Workspace struct {
	Variables []HeldValue
	// The scratch of one column.
	codes       []int32
	answers     []Opinion
	left, right []float64
	names       []string
	offers      []offer
}

// Stamp says since when a value holds: the cycle, a clock within it, and for what reads the action, how many have run.
type Stamp struct{ Cycle, Clock, Action uint64 }

// HeldValue is a variable's value with what it was computed for.
type HeldValue struct {
	Memo
	On any
}
