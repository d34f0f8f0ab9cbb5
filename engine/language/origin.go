package language

import (
	"fmt"

	"github.com/celsius-scheduler/celsius/rules"
)

// An origin states from which part of the world the value of a field comes. Each field declares its origins, next to how often it changes.
// On a path from a root, the declarations of each object count for its part of the path. The file dependency.go derives from these
// declarations alone what may be cached, for which object and until when.
//
// Of the object that has the field:
const (
	FromIdentity rules.Origin = 1 << iota // differs from all other objects of its type, and never changes
	FromSpec                              // its own specification, as it was written
	FromState                             // its current state
	FromHeld                              // of a queue: the total usage of its tasks, regardless of which tasks use it
	FromAmounts                           // of a node: the same for all nodes with the same number (alike)
	FromMeasures                          // of a node: measured values, which have an age
	FromWaits                             // of a job: the last cycle's findings about what its pods wait for
	ToParts                               // a path to parts of the object
	ToMembers                             // a path to objects whose changes are logged for this object

	// ToTasks and the following: paths to other objects.
	ToTasks     // from a node to its tasks: their changes are logged for the node
	ToJob       // from a task to its job
	ToQueue     // to the queue of a job or a task
	ToNode      // to the node of a task
	ToNamespace // to data that all objects of a namespace share

	// FromRelated and the following: data of objects that are not on the path.
	FromRelated     // objects that its own fields name: priority classes, quotas, ancestor queues
	FromTerms       // a pod's terms about other pods, in the shared store for all pods
	FromOthersTerms // the terms of other pods that match it
	FromImages      // which of its images are on any node
	FromVolumes     // claims, volumes and other storage objects
	FromPeers       // the pods in a node's topology domains that count for the terms of the current task, or for terms that match it
	FromImageNodes  // the number of nodes with the images of the current task
	FromCandidates  // the candidate nodes
	FromDomain      // any data of other nodes in a node's topology domains
	FromStarving    // the outcome of jobStarving
	FromReady       // the outcome of jobReady
	FromAll         // all objects of a type
	FromCluster     // data of the whole cluster
	FromClock       // the current time
)

// FromAnswers is the outcome of a section for a job.
const FromAnswers = FromStarving | FromReady

// FromOwn contains the origins whose changes are logged for the object itself.
const FromOwn = FromIdentity | FromSpec | FromState | FromHeld | FromAmounts | FromMeasures | FromWaits | FromTerms | ToParts | ToMembers

// Undeclared returns the fields and functions that do not declare what they read. Nothing about them could be cached.
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
