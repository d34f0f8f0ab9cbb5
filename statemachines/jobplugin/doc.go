// Package jobplugin makes of a Job's plugins what they add to its pods, and which objects they make beside it. A plugin is a file of
// rows with CEL in them (rules/jobplugins has those that ship); nothing is asked or stored here.
//
//	rules/jobplugins/*.yaml, a cluster's own --Load--> Plugin, of which a Set is what a cluster has
//	Job --Set.For--> Run --Pod--> the pod with what its plugins add
//	                     --Objects, Made.Render--> ConfigMaps, Services, Secrets, NetworkPolicies
//	Job --Set.Mistakes--> what is wrong with the arguments, for admission
//
//	load.go      a file, read and compiled
//	template.go  values with CEL in them, checked against the types of the API
//	params.go    the arguments of a Job, as command lines give them
//	functions.go what an expression cannot say
//	run.go       the plugins of one Job at work
//	pod.go       what rows add to a pod
package jobplugin
