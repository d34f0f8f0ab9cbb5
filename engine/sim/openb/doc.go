// Package openb replays the Alibaba GPU cluster trace of 2023 under a SchedulingPolicy and
// compares what it allocates with the published experiments of Weng et al., "Beware of
// Fragmentation" (USENIX ATC 2023), seed by seed.
//
//	openb_node_list, openb_pod_list --Load--> Trace --arrivals(seed)--> pods in arrival order
//	                                                                      |
//	            one Decide over nodes, pods and a PodGroup a pod  <-------+
//	                         |
//	                    plan.Binds --checked against the nodes, replayed in arrival order--> Result.Curve
//	                                                                      |
//	expected-allocation.csv --LoadPublished--> Published --Result.Compare-+--> CSV, SVG
//
// A whole run is one cycle: each pod is a PodGroup of its own whose creation time is its place in
// the order of arrival, so the policy's one action meets the pods in that order, each once; a pod
// that fits nowhere is dropped for good. Nothing ever leaves.
package openb
