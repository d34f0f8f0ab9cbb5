package policy

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/rules"
)

// This file derives dependencies from the declarations of what is read (origin.go). All code that decides what may be remembered asks here;
// for what is remembered of queues, package facts decides. The code runs when a policy is compiled or a session begins.

// Dependency is what the value of a row, or of an expression, rests on.
type Dependency struct {
	// Class is what is read of the task that is asked about, its job and its queue, and of the step: tasks that agree in it are of one class.
	Class []rules.Read
	// Identity says that it tells every task from every other.
	Identity bool
	// Volumes says that the task's volumes are read.
	Volumes bool
	// Terms and images say that what other pods ask about the task is read, or which of its images some node has.
	Terms, Images bool
	// Moving says that some of class moves within a cycle.
	Moving bool

	node bool // the node, or one of its devices, is read
	// Static says that of the node nothing is read but what its object says.
	Static bool
	// Amounts says that of the node nothing is read but amounts, and some that move: nodes of one number are the same to it.
	Amounts    bool
	Peers      bool // who is in the node's topology domains, or has its images, is read
	Candidates bool // so is which nodes are chosen from
	Beyond     bool // so is what neither the node nor the peers of its task tell of

	Cluster bool // figures of the cluster are read
	Clock   bool // so is the time
}

// DependencyOf derives it from what is read.
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

// LastOf is the member that a read ends at; nil: it is of the root itself.
func LastOf(read rules.Read) *rules.Member {
	if len(read.Steps) == 0 {
		return nil
	}
	return read.Steps[len(read.Steps)-1].Member
}

// AnyOf says that some field on the way of a read is made of something.
func AnyOf(read rules.Read, origin rules.Origin) bool {
	return slices.ContainsFunc(read.Steps, func(step rules.Step) bool { return step.Member.Origin.Any(origin) })
}

// OfParts says that a read ends at the parts of an object, of which more is read apart.
func OfParts(read rules.Read) bool {
	m := LastOf(read)
	return m != nil && m.Origin.Any(language.ToParts)
}

// OfMembers says that a read is what an accounting function reads of its members: no path of a row leads there, and
// the attribute that the function computes is read as well.
func OfMembers(read rules.Read) bool {
	return slices.ContainsFunc(read.Steps, func(step rules.Step) bool { return step.Member.Get == nil })
}

// ofClass says that a read is part of what a class is. What is read on the way to a computed field is in that.
func ofClass(read rules.Read) bool {
	switch read.Root {
	case "task", "job", "queue":
		return !read.Through && !OfVolumes(read) && !OfMembers(read)
	case "action", "pipeline":
		return true
	}
	return false
}

// OfNodes says that a read is of the node that is tried, or of a device of it.
func OfNodes(read rules.Read) bool { return read.Root == "node" || read.Root == "gpu" }

// identifies says that a read tells every task from every other.
func identifies(read rules.Read) bool {
	return read.Root == "task" && len(read.Steps) == 1 && AnyOf(read, language.FromIdentity)
}

// OfVolumes says that a read is of the volumes of the task that is asked about.
func OfVolumes(read rules.Read) bool {
	return read.Root == "task" && AnyOf(read, language.FromVolumes)
}

// OfClock says that a read is of the time.
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

// aroundNode reports whether a read is of the surroundings of the node that is tried.
func aroundNode(read rules.Read) bool {
	return OfNodes(read) && AnyOf(read, language.FromPeers|language.FromImageNodes|language.FromCandidates)
}

// InAmounts says that what is read of a node is told by its number.
func InAmounts(read rules.Read) bool {
	return read.Root == "node" && len(read.Steps) > 0 && !slices.ContainsFunc(read.Steps, func(step rules.Step) bool {
		return step.Member.Reads != nil || !step.Member.Origin.Any(language.FromAmounts)
	})
}

// BeyondNode says that what is read through a node is not told by the node: what the jobs, queues or nodes of its tasks have and may
// change, which of them these are, and all that is of no one object.
func BeyondNode(read rules.Read) bool {
	const around = language.FromPeers | language.FromImageNodes | language.FromCandidates
	for i, step := range read.Steps {
		m, last := step.Member, i == len(read.Steps)-1
		switch {
		case m.Reads != nil: // what it reads is among the reads as well, but not where it leads
			if !last && LastOf(read).Changes > rules.Static {
				return true
			}
		case m.Origin.Any(language.ToQueue):
			return true // a job is moved to another, and its tasks are where they were
		case m.Origin.Any(language.ToJob | language.ToNode | language.ToNamespace):
			if last || LastOf(read).Changes > rules.Static {
				return true
			}
		case i == 0 && m.Origin.Within(around): // followed by what its task asks about them
		case i > 0 && m.Origin.Any(language.FromTerms):
			return true // others' terms are not followed
		case !m.Origin.Within(language.FromOwn | language.ToTasks):
			return true
		}
	}
	return false
}

// Reach is how far from an object something lies.
type Reach uint8

// How far, from near to far.
const (
	Within    Reach = iota // the object itself, and what it is touched with
	AlongTree              // the queues above a queue, and what they sum up
	BeyondIt
)

// Reach of a read, seen from an object of its kind.
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
		case m.Reads != nil && last: // what it reads is among the reads as well
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

// ofItsNode says that a read is of what a task's node has from its object: where the task is moves with the task.
func ofItsNode(read rules.Read) bool {
	return read.Root == "task" && len(read.Steps) == 2 && read.Steps[0].Member.Origin == language.ToNode &&
		read.Steps[1].Member.Origin.Within(language.FromOwn) && read.Steps[1].Member.Changes <= rules.ByObject
}

// memberOrigin says where the way from an owner to the members of an accounting function leads: queues and jobs are touched with theirs.
func memberOrigin(owner string) rules.Origin {
	if owner == "queue" || owner == "job" {
		return language.ToMembers
	}
	return language.FromAll
}

// IsShared says that to read something may change what is not of one node alone, though it was read before.
func IsShared(read rules.Read) bool {
	// A link is followed to views that are made when they are first asked for, and terms, images and volumes are kept for all tasks together.
	const kept = language.ToJob | language.ToQueue | language.ToNode | language.FromTerms | language.FromOthersTerms | language.FromImages |
		language.FromVolumes | language.FromPeers | language.FromImageNodes | language.FromCandidates |
		language.FromDomain | language.FromAnswers | language.FromAll | language.FromClock
	if read.Through {
		return false // on the way to what is read from its memo
	}
	switch read.Root {
	case "node":
		return slices.ContainsFunc(read.Steps, func(step rules.Step) bool { return step.Member.Reads != nil || step.Member.Origin.Any(kept) })
	case "task", "job", "queue", "cluster":
		return slices.ContainsFunc(read.Steps, func(step rules.Step) bool {
			moves := step.Member.Reads != nil && step.Member.Changes > rules.ByCycle
			return moves || step.Member.Origin.Any(kept&^(language.ToJob|language.ToQueue)) // those of one task are prepared
		})
	case "params", "action", "pipeline":
		return false
	}
	return true
}
