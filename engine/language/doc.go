// Package language is what a policy can say of a cluster: the types of the language, their fields and functions, each with its
// documentation and with what of the world it reads, and the World in which expressions are evaluated.
//
//	fields.go, nodefields.go, namespaces.go ...   the fields of each type, made by the constructors of members.go
//	functions.go, allocation.go, claims.go ...    the functions, and their forms for many nodes at once (native.go)
//	origin.go                                     what of the world a field may be made of: what may be remembered follows from that
//	world.go, values.go, amounts.go               a cluster at one moment, its objects and amounts as values
//	frame.go                                      what the roots (task, job, queue, node ...) stand for in one evaluation
//
// It knows no tables and no rows: what a policy adds (computed fields, variables) it is given a Layout for, and asked by way of Values.
package language
