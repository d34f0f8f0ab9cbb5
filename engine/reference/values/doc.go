// Package values says what expressions give in a cycle: rows, computed fields, variables, and what accounting functions add up. It is the
// part of engine/reference below the decisions: nothing is remembered but what settles once a cycle, or at the start of a run.
//
//	values.go      the world as rows see it; computed fields and when they settle
//	rows.go        expressions by cel-go: what a row says, its number, its keys, its words
//	accounting.go  the accounting functions, by name
//	sums.go        sum
//	fills.go       waterFill
//	trees.go       quotaTree, hdrf
//	faults.go      what erred
package values
