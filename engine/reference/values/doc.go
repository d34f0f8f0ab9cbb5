// Package values defines the values of expressions in a cycle: rows, computed fields, variables, and accounting functions. It is the part
// of engine/reference below the decisions. It remembers only values that settle once per cycle, or at the start of a run.
//
//	values.go      the world as rows see it; computed fields, and when they settle
//	rows.go        evaluation with cel-go: a row's opinion, number, keys and text
//	accounting.go  the accounting functions, by name
//	sums.go        sum
//	fills.go       waterFill
//	trees.go       quotaTree, hdrf
//	faults.go      errors
package values
