// Package jobplugin computes what a Job's plugins add to its pods, and which objects they create in addition. A plugin is a file of rows
// that contain CEL. The built-in plugins are in rules/jobplugins. The package stores nothing and sends no request.
//
//	rules/jobplugins/*.yaml, a cluster's own --Load--> Plugin; all plugins of a cluster are a Set
//	Job --Set.For--> Run --Pod--> the pod with what its plugins add
//	                     --Objects, Made.Render--> ConfigMaps, Services, Secrets, NetworkPolicies
//	Job --Set.Mistakes--> mistakes in the arguments, for admission
//
//	load.go      reads and compiles a file
//	template.go  values with CEL in them, checked against the types of the API
//	params.go    the arguments of a Job, in the form of command lines
//	functions.go functions for what an expression cannot state
//	run.go       runs the plugins of one Job
//	pod.go       adds to a pod what rows define
package jobplugin
