// Package live is the scheduler at work in a cluster: Kubernetes in, Kubernetes out.
//
//	API server --informers--> feed --drain--> intake --deltas--> model.Cluster --engine.Decide--> Plan
//	     ^                     ^ |               (one goroutine owns all of this: loop)              |
//	     |                     | wakes the loop, at once or lazily                                    v
//	     +------ workers <---- outbox <---- bindings, then statuses others wait for, then the rest ---+
//	               |           ^
//	               +--results--+--> feed
//
// # The loop
//
// Informers append what changed to the feed. A cycle starts a window after the first change that can matter to a decision, or a quarter
// of a window after the newest of them, whichever is sooner; a twentieth of one after a pod that is alone; later after changes that
// cannot matter (the echoes of our own writes), at the latest after the period, and never two at once; it rests in proportion to how
// long the last one took. The loop's goroutine is the one owner of the model: it takes the feed, turns it into deltas, decides, compares
// what should be written with what was last written or seen, and puts the difference into the outbox.
//
// # The outbox
//
// Package outbox has workers do the writes: bindings first, evictions on few workers, and never two of one object at once.
//
// # The policy
//
// Package serving says which SchedulingPolicy is obeyed; a cycle takes it up when it begins.
//
// # What is assumed
//
// A binding is assumed to succeed as soon as it is decided: its task is Binding in the model. The outcome comes back through the feed. A
// refused one is forgotten, and its pod waits (in the model: it has a scheduling gate) for a time that doubles
// with each refusal. One whose outcome is unknown is read back, and sent again to the same node until the answer is known,
// so a pod is never bound twice and its place is never given away while a request may still be on its way.
//
// An eviction is assumed in the same way: its task is Releasing until its pod is gone. A refused one is forgotten, and so is what has not
// gone out for the same job; its task is spared for a time that doubles with each refusal.
//
// A PodGroup's phase is assumed in the same way: until our own write is seen, an older version of the object does not undo it. The
// PodGroup of a pod that is alone (it names none, and no controller owns it) is assumed as a whole until it is there; the binding tells
// the pod its name.
//
// # Volumes
//
// An order whose pod has claims that wait for it does their part first: a PersistentVolume is made to refer to the claim that it
// was promised to, or a claim is told the node for which a volume is to be made. Then it looks, now and then and without
// a worker that waits, whether the volume controller has bound them, and only then binds the pod. What takes too long, or was bound
// otherwise, is a refused binding: the promise is forgotten with it.
//
// # Who writes what
//
// PodGroup: phase from Inqueue on, conditions, counts. Queue: status.allocated. Pod: the Binding, the condition PodScheduled while it is
// False, status.nominatedNodeName; annotations with the Binding; the Eviction or the deletion, and with it the condition
// DisruptionTarget. All as field manager celsius-scheduler.
package live
