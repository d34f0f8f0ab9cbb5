// Package objects is what the controllers make of what users write: the PodGroup and the pods of a Job, the PodGroup of a pod
// that has none. Nothing is asked or stored here, so that who plays a cluster makes the same of it as a cluster does.
//
//	Job ------PodGroup, FillPodGroup--> PodGroup, which waits to be let in
//	    ------Pod, index by index-----> its pods, once it was
//	bare pod--BareGroup---------------> PodGroup
package objects
