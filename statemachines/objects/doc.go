// Package objects creates the objects that controllers derive from users' objects: the PodGroup and the pods of a Job, and the PodGroup of
// a pod that has none. It stores nothing and sends no request. Therefore a simulator creates the same objects as a cluster.
//
//	Job ------PodGroup, FillPodGroup--> PodGroup, which waits for its admission
//	    ------Pod, index by index-----> its pods, after the admission
//	bare pod--BareGroup---------------> PodGroup
package objects
