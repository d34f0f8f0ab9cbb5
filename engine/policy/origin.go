package policy

import (
	"fmt"

	"github.com/celsius-scheduler/celsius/rules"
)

// What of the world the value of a field is made of: each says so where it is declared, beside how often it changes, and one that is made
// of several things says all of them. A path from a root leads from object to object; what is read of each counts by that object's own
// declarations. What may be remembered, for whom and until when, follows from this (dependency.go) and is said nowhere else.
//
// Of the object that has the field:
const (
	fromIdentity rules.Origin = 1 << iota // tells it from all others of its kind, and never changes
	fromSpec                              // what it says itself, as it was written
	fromState                             // what has become of it
	fromAmounts                           // of a node: what its number among those that are alike tells (alike)
	toParts                               // leads to parts of it
	toMembers                             // leads to what touches it by each of its changes

	// Where a path leads on to other objects.
	toTasks     // from a node to those on it: the node tells of their changes
	toJob       // to the one job of a task
	toQueue     // to the one queue
	toNode      // to the node where a task is
	toNamespace // to what is the same for all of a namespace

	// Of objects that are not on the path.
	fromRelated     // objects that its own names: priority classes, quotas, queues above
	fromTerms       // what a pod asks about other pods, as it is kept for all pods
	fromOthersTerms // what other pods ask about it
	fromImages      // which of its images some node has
	fromVolumes     // claims, volumes, and what else there is of storage
	fromPeers       // who is in a node's topology domains, as far as the terms of the task that is asked about, and those about it, count them
	fromImageNodes  // how many nodes have the images of the task that is asked about
	fromCandidates  // which nodes are chosen from
	fromDomain      // anything of other nodes in a node's topology domains
	fromAnswers     // what the rows of jobStarving answer
	fromAll         // all of a kind
	fromCluster     // figures of the cluster
	fromClock       // the time
)

// fromOwn is what an object itself tells of: it is touched where anything of this changes.
const fromOwn = fromIdentity | fromSpec | fromState | fromAmounts | fromTerms | toParts | toMembers

// undeclared lists what of a vocabulary does not say what it reads: nothing could be remembered of it.
func undeclared(v rules.Vocabulary) (out []string) {
	for _, o := range v.Objects {
		for _, m := range o.Members {
			if m.Origin == 0 && m.Reads == nil {
				out = append(out, fmt.Sprintf("the field %s of %s", m.Name, o.Name))
			}
		}
	}
	for _, f := range v.Functions {
		for i := range f.Overloads {
			if o := &f.Overloads[i]; o.Eval != nil && o.Reads == nil {
				out = append(out, fmt.Sprintf("the function %s (%s)", f.Name, o.ID))
			}
		}
	}
	return out
}
