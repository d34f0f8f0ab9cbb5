// Package eval compiles checked expressions of the rule language, and evaluates them.
//
//	rules.Scope --Compile(Text, Kind)--> Expr --Eval, Holds, Number--> value
//	                                      |
//	                                      +-- kernels: the expression as Go closures; cel-go evaluates expressions without such a form
//	                                      +-- columns: the same for many rows of a table at once, in a Batch
//	                                      +-- Reads, Estimate, Passage, Doubts: what is known about it before it runs
//
// All forms give the same results as cel-go. A Meter counts evaluations that may be expensive. They end with an error when their Budget is
// used up.
//
// An Expr is immutable and safe to share.
package eval
