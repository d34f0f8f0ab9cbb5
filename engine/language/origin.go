package language

import (
	"fmt"

	"github.com/celsius-scheduler/celsius/rules"
)

// An origin states from which part of the world the value of a field comes. Each field declares its origins, next to how often it changes.
// On a path from a root, the declarations of each object count for what is read of it. dependency.go derives from them, and only from them,
// what may be remembered, for which object and until when.
//
// Of the object that has the field:
const (
	FromIdentity rules.Origin = 1 << iota // tells it from all others of its kind, and never changes
	FromSpec                              // what it says itself, as it was written
	FromState                             // what has become of it
	FromHeld                              // of a queue: the sum of what its tasks hold, whichever of them hold it
	FromAmounts                           // of a node: what its number among those that are alike tells (alike)
	FromMeasures                          // of a node: what was measured of it, which has an age
	FromWaits                             // of a job: what the last cycle found about what its pods wait for
	ToParts                               // leads to parts of it
	ToMembers                             // leads to what touches it by each of its changes

	// ToTasks and those below: where a path leads on to other objects.
	ToTasks     // from a node to those on it: the node tells of their changes
	ToJob       // to the one job of a task
	ToQueue     // to the one queue
	ToNode      // to the node where a task is
	ToNamespace // to what is the same for all of a namespace

	// FromRelated and those below: of objects that are not on the path.
	FromRelated     // objects that its own names: priority classes, quotas, queues above
	FromTerms       // what a pod asks about other pods, as it is kept for all pods
	FromOthersTerms // what other pods ask about it
	FromImages      // which of its images some node has
	FromVolumes     // claims, volumes, and what else there is of storage
	FromPeers       // who is in a node's topology domains, as far as the terms of the task that is asked about, and those about it, count them
	FromImageNodes  // how many nodes have the images of the task that is asked about
	FromCandidates  // which nodes are chosen from
	FromDomain      // anything of other nodes in a node's topology domains
	FromStarving    // the outcome of jobStarving
	FromReady       // the outcome of jobReady
	FromAll         // all of a kind
	FromCluster     // figures of the cluster
	FromClock       // the time
)

// FromAnswers is the outcome of a section for a job.
const FromAnswers = FromStarving | FromReady

// FromOwn is what an object itself tells of: it is touched where anything of this changes.
const FromOwn = FromIdentity | FromSpec | FromState | FromHeld | FromAmounts | FromMeasures | FromWaits | FromTerms | ToParts | ToMembers

// Undeclared lists what of a vocabulary does not say what it reads: nothing could be remembered of it.
func Undeclared(v rules.Vocabulary) (out []string) {
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
