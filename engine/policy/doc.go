// Package policy compiles a SchedulingPolicy. It contains the closed list of decision sites, and compiles tables to rules over the fields
// of engine/language.
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
//	  Policy (immutable, safe to share) --> engine/session evaluates it on a cluster, engine/reference defines what it means
//
//	  Facts, Show, Resolve: questions of users about a policy
//
// The file dependency.go derives from the reads of a row what may be cached. Each accounting function has its own file, with its compiled
// form and the data that a session keeps for it.
//
// Types of CEL leave the package only in the declarations (Vocabulary, Roots, Sites), from which the language reference is generated.
package policy
