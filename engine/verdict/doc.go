// Package verdict says on which nodes a task can be placed, which of them is best, on which devices, and why not on the others.
//
// Tasks that agree in all that the active rows of predicates and scores read are of one class, and a class has an entry for each node:
// the verdict, whether the task fits now or later, and its score. What is in the entries holds until something that the rows read has
// changed, which the logs and versions of the model tell. One pipeline brings a class up to date: all nodes, those that changed, those
// with peers of the task in their topology domains, or those that its volumes leave.
//
//	Plan       which rows there are, and what follows from what they read
//	Verdicts   all classes of a session, and what they share: what rows said of which node
//	Class      one of them, brought up to date
//	Choice     the node that was chosen; a tournament finds the best and the runner-up
//
// A row is asked by whoever is given as Asker, which counts evaluations and errors.
package verdict
