// Package openb replays the Alibaba GPU cluster trace of 2023 under a SchedulingPolicy. It compares the allocation, seed by seed, with the
// published experiments of Weng et al., "Beware of Fragmentation" (USENIX ATC 2023).
//
//	openb_node_list, openb_pod_list --Load--> Trace --arrivals(seed)--> pods in arrival order
//	                                                                      |
//	            one Decide over nodes, pods and a PodGroup a pod  <-------+
//	                         |
//	                    plan.Binds --checked against the nodes, replayed in arrival order--> Result.Curve
//	                                                                      |
//	expected-allocation.csv --LoadPublished--> Published --Result.Compare-+--> CSV, SVG
//
// A whole run is one cycle. Each pod has its own PodGroup, and the creation time is its position in the order of arrival. So the policy's
// only action visits each pod once, in this order. A pod that does not fit on any node is dropped permanently. No pod ever ends.
package openb
