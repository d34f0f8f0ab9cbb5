// Package compare shows how the decisions of two policies differ for the same jobs.
//
//	a world ------> both decide, each in a world of its own --+
//	                                                          +--> Book --> Differences, Text
//	a recording --> the recorded decisions, and those of the -+
//	                other policy, cycle by cycle, undone each time
//	objects, time, both policies --Counterexample--> the smallest world in which their decisions differ, as a scenario
package compare
