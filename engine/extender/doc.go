// Package extender contains the questions to external services, and their answers. An answer is an input of a decision, and has an age.
//
//	policy + cluster --Decide--> Plan.Asks --live--> a service --> Answer --delta--> model.Cluster, for the next cycle
//	files --sim--------------------------------------------------> Answer --delta--> model.Cluster
//
// The package sends no requests: engine/live does, between cycles. Attributes of tables state which questions to ask (policy.Asks).
package extender
