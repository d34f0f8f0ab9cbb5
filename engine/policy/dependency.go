package policy

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/rules"
)

// This file derives dependencies from the declarations of what fields read (origin.go). All code that decides what may be cached uses it;
// for caches of queues, package facts decides. The code runs when a policy is compiled or a session begins.

// Dependency describes the inputs of a row or an expression.
type Dependency struct {
	// Class lists the reads of the task, its job, its queue and the step. Tasks with equal values belong to one class.
	Class []rules.Read
	// Identity means that it reads something that is different for each task.
	Identity bool
	// Volumes means that it reads the task's volumes.
	Volumes bool
	// Terms means that it reads the terms of other pods that match the task. Images means that it reads which nodes have the task's images.
	Terms, Images bool
	// Moving means that a part of Class changes within a cycle.
	Moving bool

	node bool // the node, or one of its devices, is read
	// Static means that of the node it reads only data of the node object.
	Static bool
	// Amounts means that of the node it reads only amounts, some of which change: nodes with the same number are equal for it.
	Amounts    bool
	Peers      bool // it reads which pods are in the node's topology domains, or which nodes have its images
	Candidates bool // it reads which nodes are candidates
	Beyond     bool // it reads data that neither the node nor the peers of its task contain

	Cluster bool // it reads data of the whole cluster
	Clock   bool // it reads the time
}

// DependencyOf derives the dependency from reads.
func DependencyOf(reads *rules.Reads) Dependency {
	d := Dependency{Static: true, Amounts: true}
	for _, read := range reads.All {
		d.add(read)
	}
	d.Amounts = d.Amounts && !d.Static
	return d
}

func (d *Dependency) add(read rules.Read) {
	d.Identity = d.Identity || identifies(read)
	d.Volumes = d.Volumes || OfVolumes(read)
	d.Cluster = d.Cluster || read.Root == "cluster"
	d.Clock = d.Clock || OfClock(read)
	switch {
	case ofClass(read):
		d.addClass(read)
	case OfNodes(read):
		d.node = true
		d.Static = d.Static && read.Changes <= rules.ByObject
		d.Amounts = d.Amounts && InAmounts(read)
		d.Peers, d.Candidates = d.Peers || aroundNode(read), d.Candidates || AnyOf(read, language.FromCandidates)
		d.Beyond = d.Beyond || BeyondNode(read)
	}
}

func (d *Dependency) addClass(read rules.Read) {
	d.Class = append(d.Class, read)
	if read.Root == "action" || read.Root == "pipeline" {
		return
	}
	d.Terms, d.Images = d.Terms || AnyOf(read, language.FromOthersTerms), d.Images || AnyOf(read, language.FromImages)
	d.Moving = d.Moving || read.Changes > rules.ByCycle
	d.Beyond = d.Beyond || AnyOf(read, language.FromPeers|language.FromImageNodes|language.FromCandidates) // they have no value of their own
}

// LastOf returns the member at the end of a read; nil: the read is of the root itself.
func LastOf(read rules.Read) *rules.Member {
	if len(read.Steps) == 0 {
		return nil
	}
	return read.Steps[len(read.Steps)-1].Member
}

// AnyOf reports whether some field on the path of a read has one of these origins.
func AnyOf(read rules.Read, origin rules.Origin) bool {
	return slices.ContainsFunc(read.Steps, func(step rules.Step) bool { return step.Member.Origin.Any(origin) })
}

// OfParts reports whether a read ends at the parts of an object. Reads of their fields are listed separately.
func OfParts(read rules.Read) bool {
	m := LastOf(read)
	return m != nil && m.Origin.Any(language.ToParts)
}

// OfMembers reports whether an accounting function does this read of its members. Rows cannot write such a path, and the function's
// attribute is among the reads as well.
func OfMembers(read rules.Read) bool {
	return slices.ContainsFunc(read.Steps, func(step rules.Step) bool { return step.Member.Get == nil })
}

// ofClass reports whether a read belongs to a class. A read on the path to a computed field is covered by that field.
func ofClass(read rules.Read) bool {
	switch read.Root {
	case "task", "job", "queue":
		return !read.Through && !OfVolumes(read) && !OfMembers(read)
	case "action", "pipeline":
		return true
	}
	return false
}

// OfNodes reports whether a read is of the candidate node or of one of its devices.
func OfNodes(read rules.Read) bool { return read.Root == "node" || read.Root == "gpu" }

// identifies reports whether a read is different for each task.
func identifies(read rules.Read) bool {
	return read.Root == "task" && len(read.Steps) == 1 && AnyOf(read, language.FromIdentity)
}

// OfVolumes reports whether a read is of the task's volumes.
func OfVolumes(read rules.Read) bool {
	return read.Root == "task" && AnyOf(read, language.FromVolumes)
}

// OfClock reports whether a read is of the time.
func OfClock(read rules.Read) bool { return read.Root == "now" || AnyOf(read, language.FromClock) }

// OfAnswers reports whether a read depends on the outcome of jobStarving or jobReady.
func OfAnswers(read rules.Read) bool { return AnyOf(read, language.FromAnswers) }

// answering returns the section whose outcome a read depends on. It returns "" for any other read.
func answering(read rules.Read) string {
	switch {
	case AnyOf(read, language.FromStarving):
		return JobStarving
	case AnyOf(read, language.FromReady):
		return JobReady
	}
	return ""
}

// aroundNode reports whether a read is of the surroundings of the candidate node.
func aroundNode(read rules.Read) bool {
	return OfNodes(read) && AnyOf(read, language.FromPeers|language.FromImageNodes|language.FromCandidates)
}

// InAmounts reports whether a read of a node depends only on the number of the node's amounts.
func InAmounts(read rules.Read) bool {
	return read.Root == "node" && len(read.Steps) > 0 && !slices.ContainsFunc(read.Steps, func(step rules.Step) bool {
		return step.Member.Reads != nil || !step.Member.Origin.Any(language.FromAmounts)
	})
}

// BeyondNode reports whether a read through a node depends on data outside of the node. Such data are changeable fields of the jobs, queues
// or nodes of its tasks, and the identity of these objects. Data that belongs to no single object counts as well.
func BeyondNode(read rules.Read) bool {
	const around = language.FromPeers | language.FromImageNodes | language.FromCandidates
	for i, step := range read.Steps {
		m, last := step.Member, i == len(read.Steps)-1
		switch {
		case m.Reads != nil: // its own reads are listed as well, but not where the path continues
			if !last && LastOf(read).Changes > rules.Static {
				return true
			}
		case m.Origin.Any(language.ToQueue):
			return true // a job can move to another queue while its tasks stay
		case m.Origin.Any(language.ToJob | language.ToNode | language.ToNamespace):
			if last || LastOf(read).Changes > rules.Static {
				return true
			}
		case i == 0 && m.Origin.Within(around): // the terms of its task follow these
		case i > 0 && m.Origin.Any(language.FromTerms):
			return true // terms of other pods are not followed
		case !m.Origin.Within(language.FromOwn | language.ToTasks):
			return true
		}
	}
	return false
}

// Reach is a distance from an object.
type Reach uint8

// The distances, from near to far.
const (
	Within    Reach = iota // the object itself, and the changes that are logged for it
	AlongTree              // the queues above a queue, and their sums
	BeyondIt
)

// Reach returns the distance of a read from its owner.
func (p *Policy) Reach(read rules.Read, owner string) Reach {
	if read.Root != owner {
		return BeyondIt
	}
	far := Within
	for i, step := range read.Steps {
		m, last := step.Member, i == len(read.Steps)-1
		switch t := p.Trees[m]; {
		case t != nil && t.Flat, t != nil && last:
		case t != nil:
			far = AlongTree
		case m.Reads != nil && last: // its own reads are listed as well
		case m.Origin.Any(language.ToParts|language.ToMembers) && m.Origin.Within(language.FromOwn):
		case last && m.Origin.Within(language.FromOwn|language.ToTasks|language.ToJob|language.ToQueue|language.ToNode):
		default:
			return BeyondIt
		}
	}
	return far
}

// lasting reports whether a read, seen from an object of its kind, changes only with that object, in every cycle. Values that settle once a
// cycle, and values that change with other objects, do not.
func (p *Policy) lasting(read rules.Read, owner string) bool {
	if p.Reach(read, owner) != Within || len(read.Steps) == 0 {
		return false
	}
	return !slices.ContainsFunc(read.Steps, func(step rules.Step) bool {
		x := p.computed[step.Member]
		return x != nil && (x.Settle == "cycle" || x.Settle == "start")
	})
}

// ofItsNode reports whether a read is of the object of a task's node. The node of a task changes only with the task.
func ofItsNode(read rules.Read) bool {
	return read.Root == "task" && len(read.Steps) == 2 && read.Steps[0].Member.Origin == language.ToNode &&
		read.Steps[1].Member.Origin.Within(language.FromOwn) && read.Steps[1].Member.Changes <= rules.ByObject
}

// memberOrigin returns the origin of the path from an owner to the members of an accounting function. Changes of members are logged for
// queues and jobs.
func memberOrigin(owner string) rules.Origin {
	if owner == "queue" || owner == "job" {
		return language.ToMembers
	}
	return language.FromAll
}

// IsShared reports whether a repeated read may change shared data, which does not belong to one node alone.
func IsShared(read rules.Read) bool {
	// Links lead to views that are created at the first read. Terms, images and volumes are cached for all tasks together.
	const kept = language.ToJob | language.ToQueue | language.ToNode | language.FromTerms | language.FromOthersTerms | language.FromImages |
		language.FromVolumes | language.FromPeers | language.FromImageNodes | language.FromCandidates |
		language.FromDomain | language.FromAnswers | language.FromAll | language.FromClock
	if read.Through {
		return false // on the path to a value that is read from a memo
	}
	switch read.Root {
	case "node":
		return slices.ContainsFunc(read.Steps, func(step rules.Step) bool { return step.Member.Reads != nil || step.Member.Origin.Any(kept) })
	case "task", "job", "queue", "cluster":
		return slices.ContainsFunc(read.Steps, func(step rules.Step) bool {
			moves := step.Member.Reads != nil && step.Member.Changes > rules.ByCycle
			return moves || step.Member.Origin.Any(kept&^(language.ToJob|language.ToQueue)) // views of one task are prepared
		})
	case "params", "action", "pipeline":
		return false
	}
	return true
}
