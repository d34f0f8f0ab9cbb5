// Package asks puts to extenders, between cycles, what plans would have answered, and feeds what they say back.
//
//	Plan.Asks --Ask--> questions, written while the cluster holds still --Run--> POST --> extender.Answer --tell--> the feed, and a cycle
//
// It is bounded in each respect: how many questions wait for a server and how many requests to it are under way, for how long an answer is
// waited for, how much of it is read, and how much of that is kept. A question that finds no room is dropped: the next plan asks it again,
// before those that were answered since. Servers are apart, so that one that hangs holds up no other.
package asks
