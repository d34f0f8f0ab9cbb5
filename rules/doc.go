// Package rules implements the rule language. It reads YAML, returns checked expressions, and reports every mistake with its position. It
// knows nothing about scheduling: the caller declares which objects can be read, which functions can be called, and which sites exist.
// Package eval compiles and evaluates the checked expressions.
//
//	text --source.Parse--> source.Value (with its line and column)
//	                               |  ReadTable(Value, Shape): params, variables, attributes, rows
//	                               v
//	                             Table --> source.Text (maps each character of an expression to its place in the file)
//	                                         |
//	Vocabulary --NewLanguage--> Language --Scope(roots, objects)--> Scope --Check(Text, Kind)--> checked syntax tree
//	(objects, functions)        (dialect: Libraries, operators)       |                                 |
//	                                                                  +-- Reads, Estimate, NowParts     +--eval.Compile--> eval.Expr
//	source.Issues: all mistakes at once, as file:line:column, with the line and a caret under the place
//
// The dialect is the one of Kubernetes' ValidatingAdmissionPolicy, except that int and double mix. Objects are declared types with members,
// never maps. Therefore a misspelled member is found when a rule is compiled. A Scope derives from the checked syntax tree what an
// expression reads, including reads through computed members and functions. It also derives how often these inputs change. Callers use this
// to decide how long a value stays valid.
//
// A Language and a Scope are immutable and safe to share.
package rules
