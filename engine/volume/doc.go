// Package volume determines on which nodes a task's volumes can be used, and what must be done there. It makes no decisions itself: the
// scheduler plugins of Kubernetes do, as a library.
//
//	 model.Cluster.Storage                  PersistentVolumes, claims, classes, CSINodes ...,
//	  |          |                          and the promises of placements
//	  | Log      | Promised
//	  v          v
//	catchUp: objects, with the promises written into them as a binding would do
//	  |
//	  v
//	indexers of informers that are never started
//	  |
//	  v
//	volumebinding, volumezone, nodevolumelimits, volumerestrictions
//	  |                                              |
//	  | PreFilter once per task, Filter per node     | Reserve, PreBind, Unreserve on the chosen node
//	  v                                              v
//	Trouble, Fits, ZoneFits, LimitsFit, Free        notebook: a client that records the requested updates
//	  |                                              |
//	  v                                              v
//	rows of engine/policy                           Bindings -> model.Txn.Reserve -> Plan -> live, sim
//
// The package stores nothing that the cluster does not contain. Promises are in the model, as a part of a task's placement, so they are
// undone with it. Assumptions of the plugins are undone before a call returns.
//
// There is no I/O, no clock and no goroutine. Lists are in name order, while those of an informer have no order.
package volume
