// Package extender contains the questions to external services, and their answers. An answer is an input of a decision, and has an age.
//
//	policy + cluster --Decide--> Plan.Asks --live--> a service --> Answer --delta--> model.Cluster, for the next cycle
//	files --sim--------------------------------------------------> Answer --delta--> model.Cluster
//
// It asks nobody: engine/live does, between cycles. Who is asked what is said by attributes of tables (policy.Asks).
package extender
