// Package rules is the rule language: YAML in, checked expressions out, every mistake at its place. It knows nothing of
// scheduling; what may be read, called and asked comes from the caller. Package eval below it compiles and evaluates.
//
//	text --source.Parse--> source.Value (its line and column known)
//	                               |  ReadTable(Value, Shape): params, variables, attributes, rows
//	                               v
//	                             Table --> source.Text (which character of the file each character of an expression is)
//	                                         |
//	Vocabulary --NewLanguage--> Language --Scope(roots, objects)--> Scope --Check(Text, Kind)--> checked syntax tree
//	(objects, functions)        (dialect: Libraries, operators)       |                                 |
//	                                                                  +-- Reads, Estimate, NowParts     +--eval.Compile--> eval.Expr
//	source.Issues: all mistakes at once, as file:line:column, with the line and a caret under the place
//
// The dialect is that of Kubernetes' ValidatingAdmissionPolicy, in which int and double mix. Objects are declared types
// with members, never maps, so a misspelt member is found when a rule is compiled. From the checked syntax tree a Scope
// derives what an expression reads, through computed members and functions as well, and how often that changes: callers
// decide by it how long a value holds.
//
// A Language and a Scope are immutable and safe to share.
package rules
