// Package asks puts to extenders, between cycles, what plans would have answered, and feeds what they say back.
//
//	Plan.Asks --Ask--> questions, written while the cluster holds still --Run--> POST --> extender.Answer --tell--> the feed, and a cycle
//
// It is bounded in each respect: how many questions wait and how many requests are under way, for how long an answer is waited for and how
// much of it is read. A question that finds no room is dropped: the next plan asks it again.
package asks
