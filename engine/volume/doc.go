// Package volume says which nodes a task's volumes let it go to, and what must be done for them there. It decides nothing itself:
// Kubernetes' own scheduler plugins do, used as a library.
//
//	 model.Cluster.Storage                  PersistentVolumes, claims, classes, CSINodes ... as they are,
//	  |          |                          and what placements promise of them
//	  | Log      | Promised
//	  v          v
//	catchUp: objects, promises written into them as a binding would
//	  |
//	  v
//	indexers of informers that are never started
//	  |
//	  v
//	volumebinding, volumezone, nodevolumelimits, volumerestrictions
//	  |                                              |
//	  | PreFilter once a task, Filter a node         | Reserve, PreBind, Unreserve on the chosen node
//	  v                                              v
//	Trouble, Fits, ZoneFits, LimitsFit, Free        notebook: a client that writes down what it is asked to update
//	  |                                              |
//	  v                                              v
//	rows of engine/policy                           Bindings -> model.Txn.Reserve -> Plan -> live, sim
//
// Nothing is remembered here that the cluster does not say: promises live in the model, as a part of a task's placement,
// so they are undone with it. What the plugins would assume on their own is taken back before a call returns.
//
// There is no I/O, no clock and no goroutine: lists come in the order of names, where an informer's come in any.
package volume
