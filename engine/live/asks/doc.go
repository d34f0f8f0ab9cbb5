// Package asks sends requests to extenders between cycles, for answers that plans lacked, and feeds the answers back.
//
//	Plan.Asks --Ask--> questions, written while the cluster does not change --Run--> POST --> extender.Answer --tell--> the feed, and a cycle
//
// There are limits for the waiting questions and the concurrent requests of a server. There are also limits for the time for an answer, and
// for the number of bytes that are read and stored. If there is no capacity, a question is dropped. The next plan asks it again, before
// questions that were answered since. Each server has its own limits, so that a server that hangs delays no other.
package asks
