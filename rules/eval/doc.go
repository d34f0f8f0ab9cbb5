// Package eval compiles checked expressions of the rule language, and evaluates them.
//
//	rules.Scope --Compile(Text, Kind)--> Expr --Eval, Holds, Number--> value
//	                                      |
//	                                      +-- kernels: the expression as Go closures; what has no such form is left to cel-go
//	                                      +-- columns: the same of many rows of a table at once, in a Batch
//	                                      +-- Reads, Estimate, Passage, Doubts: what is known of it before it runs
//
// All forms give what cel-go gives. What may be expensive is counted by a Meter, and ends with an error when its Budget is used up.
//
// An Expr is immutable and safe to share.
package eval
