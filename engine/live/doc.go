// Package live runs the scheduler in a Kubernetes cluster.
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
// Informers append changes to the feed. The loop's goroutine is the only owner of the model. In each cycle it takes the feed, turns it into
// deltas and decides. Then it compares what should be written with what was last written or seen, and puts the difference into the outbox.
//
// A change is relevant if it can affect a decision. The next cycle starts at the earliest of these times:
//
//   - one window after the first relevant change
//   - a quarter of a window after the newest relevant change
//   - at once after a bare pod (no PodGroup, no controller) arrived
//   - ten windows after the first change of any type, such as the echo of our own write, if no binding waits for a worker
//   - when a back-off ends, or when a status must be written
//   - one period after the start of the last cycle
//
// Two cycles never run at once. After a cycle the loop rests in proportion to the duration of the cycle.
//
// # The outbox
//
// Workers of package outbox do the writes: bindings first, evictions on few workers, and never two writes of one object at once.
//
// # The policy
//
// Package serving chooses the SchedulingPolicy that is obeyed. A cycle adopts it when it begins.
//
// # What is assumed
//
// The loop assumes that a binding succeeds as soon as it is decided: its task is Binding in the model. The outcome comes back through the
// feed. After a refusal the loop forgets the binding, and the pod waits: in the model it has a scheduling gate. Each refusal doubles the
// wait. If the outcome is unknown, the loop reads the pod back and sends the binding to the same node again until the outcome is known. So
// a pod is never bound twice, and its resources are not given away while a request may still arrive.
//
// An eviction is assumed in the same way: its task is Releasing until its pod is gone. After a refusal the loop forgets the eviction and
// all evictions for the same job that were not sent. The task is protected for a time that doubles with each refusal.
//
// A PodGroup's phase is assumed in the same way: until our own write is seen, an older version of the object does not undo it. The whole
// PodGroup of a bare pod is assumed until it exists; the binding tells the pod its name.
//
// # Volumes
//
// If a pod has claims that wait for its binding, the order first does the scheduler's part for them. It makes a PersistentVolume refer to
// the claim that it was promised to. If the volume must be created, it writes the node to the claim. Then it checks from time to time
// whether the volume controller has bound the claims; no worker waits meanwhile. Only then does it bind the pod. If this takes too long, or
// a claim was bound to another volume, the binding counts as refused and the promise is forgotten.
//
// # Who writes what
//
//   - PodGroup: the phase from Inqueue on, conditions, counts.
//   - Queue: status.allocated.
//   - Pod: the Binding with annotations, the condition PodScheduled while it is False, status.nominatedNodeName.
//   - Pod that is evicted: the Eviction or the deletion, and the condition DisruptionTarget.
//
// The field manager of all these writes is celsius-scheduler.
package live
