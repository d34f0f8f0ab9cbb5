// Package compare shows how the decisions of two policies differ for the same jobs.
//
//	a world ------> both decide, each in a world of its own --+
//	                                                          +--> Book --> Differences, Text
//	a recording --> what was decided, and the other in its ---+
//	                place, cycle by cycle, undone each time
//	objects, time, both policies --Counterexample--> the smallest world in which they decide otherwise, as a scenario
package compare
