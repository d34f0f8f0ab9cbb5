package language

// Workspace is memory that consecutive evaluations reuse. Each goroutine that evaluates needs its own.
type Workspace struct {
	Variables []HeldValue
	// Scratch memory of one column.
	codes       []int32
	answers     []Opinion
	left, right []float64
	names       []string
	offers      []offer
}

// Stamp is when a value was computed: the cycle, a clock within it, and the number of actions that ran, if it reads the action.
type Stamp struct{ Cycle, Clock, Action uint64 }

// HeldValue is a variable's value, with the object that it was computed for.
type HeldValue struct {
	Memo
	On any
}
