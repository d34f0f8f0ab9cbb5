// Package verdict determines on which nodes a task can be placed, which node is best, on which devices, and why other nodes are rejected.
//
// Tasks that agree on everything that the active rows of predicates and scores read form a class. A class has an entry for each node: the
// verdict, whether the task fits now or later, and its score. An entry is valid until something that the rows read changes. The logs and
// versions of the model report such changes. One pipeline updates a class: for all nodes, for changed nodes, for nodes whose topology
// domains contain peers of the task, or for the nodes that the volumes of a task allow.
//
//	Plan       the active rows, and what follows from what they read
//	Verdicts   all classes of a session, and their shared data: the results of rows by node
//	Class      one class, updated
//	Choice     the chosen node; a tournament finds the best and the second-best node
//
// The caller passes an Asker, which evaluates rows and counts evaluations and errors.
package verdict
