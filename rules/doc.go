// Package rules is the rule language: YAML in, typed expressions out, every mistake at its place. It knows nothing of
// scheduling; what may be read, called and asked comes from the caller.
//
//	text --source.Parse--> source.Value (its line and column known)
//	                               |  ReadTable(Value, Shape): params, variables, attributes, rows
//	                               v
//	                             Table --> source.Text (which character of the file each character of an expression is)
//	                                         |
//	Vocabulary --NewLanguage--> Language --Scope(roots, objects)--> Scope --Compile(Text, Kind)--> Expr --Eval--> value
//	(objects, functions)        (dialect: Libraries, operators)                                     |
//	                                                                                                +-- Reads, Cost, NowParts
//	source.Issues: all mistakes at once, as file:line:column, with the line and a caret under the place
//
// The dialect is that of Kubernetes' ValidatingAdmissionPolicy, in which int and double mix. Objects are declared types
// with members, never maps, so a misspelt member is found when a rule is compiled. From the checked syntax tree the compiler
// derives what an expression reads, through computed members and functions as well, and how often that changes: callers
// decide by it how long a value holds.
//
// A Language and an Expr are immutable and safe to share.
package rules
