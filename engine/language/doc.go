// Package language defines what a policy can read from a cluster. It contains the types of the language, their fields and functions, and
// the World for evaluations. Each field and function has documentation, and declares what it reads.
//
//	fields.go, nodefields.go, namespaces.go ...   the fields of each type, declared with the constructors of members.go
//	functions.go, allocation.go, claims.go ...    the functions, and their forms for many nodes at once (native.go)
//	origin.go                                     the origins of fields: they decide what may be cached
//	world.go, values.go, amounts.go               a cluster at one moment, its objects and amounts as values
//	frame.go                                      the values of the roots (task, job, queue, node ...) in one evaluation
//
// It does not know tables or rows. A policy adds computed fields and variables through a Layout, and computes them through Values.
package language
