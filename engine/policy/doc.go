// Package policy is a SchedulingPolicy, compiled: the closed list of decision sites, and tables compiled into rules in the words of
// engine/language.
//
//	SchedulingPolicy, rules/tables/*.yaml
//	     | source.Parse
//	     v
//	  loader: tiers, tables, switches, params
//	     |
//	     v
//	  compiler: scopes by site, attributes and accounting functions, variables, rows, actions; every mistake at its place
//	     |
//	     v
//	  Policy (immutable, safe to share) --> engine/session puts it to work on a cluster, engine/reference says what is meant
//
//	  Facts, Show, Resolve: what people ask about a policy
//
// What follows from the reads of a row, and so may be remembered, is said in dependency.go. An accounting function is a file of its own:
// what it compiles to, and what a session keeps of it.
//
// No type of CEL leaves the package but in the declarations (Vocabulary, Roots, Sites) that the reference of the language is written from.
package policy
