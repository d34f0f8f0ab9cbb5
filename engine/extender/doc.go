// Package extender is what services outside that are asked for their opinion are asked, and what they said: inputs of a decision, with an
// age.
//
//	policy + cluster --Decide--> Plan.Asks --live--> a service --> Answer --delta--> model.Cluster, for the next cycle
//	files --sim--------------------------------------------------> Answer --delta--> model.Cluster
//
// It asks nobody: engine/live does, between cycles. Who is asked what is said by attributes of tables (policy.Asks).
package extender
