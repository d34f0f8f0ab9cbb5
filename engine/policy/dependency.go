package policy

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/rules"
)

// This file says what follows from the declarations of what is read (origin.go): all that decides what may be remembered asks here. It is
// asked when a policy is compiled or a session begins.

// dependency is what the value of a row, or of an expression, rests on.
type dependency struct {
	// class is what is read of the task that is asked about, its job and its queue, and of the step: tasks that agree in it are of one class.
	class []rules.Read
	// identity says that it tells every task from every other.
	identity bool
	// volumes says that the task's volumes are read.
	volumes bool
	// terms and images say that what other pods ask about the task is read, or which of its images some node has.
	terms, images bool
	// moving says that some of class moves within a cycle.
	moving bool

	node bool // the node, or one of its devices, is read
	// static says that of the node nothing is read but what its object says.
	static bool
	// amounts says that of the node nothing is read but amounts, and some that move: nodes of one number are the same to it.
	amounts    bool
	peers      bool // who is in the node's topology domains, or has its images, is read
	candidates bool // so is which nodes are chosen from
	beyond     bool // so is what neither the node nor the peers of its task tell of

	cluster bool // figures of the cluster are read
	clock   bool // so is the time
}

// dependencyOf derives it from what is read.
func dependencyOf(reads *rules.Reads) dependency {
	d := dependency{static: true, amounts: true}
	for _, read := range reads.All {
		d.add(read)
	}
	d.amounts = d.amounts && !d.static
	return d
}

func (d *dependency) add(read rules.Read) {
	d.identity = d.identity || identifies(read)
	d.volumes = d.volumes || ofVolumes(read)
	d.cluster = d.cluster || read.Root == "cluster"
	d.clock = d.clock || ofClock(read)
	switch {
	case ofClass(read):
		d.addClass(read)
	case ofNodes(read):
		d.node = true
		d.static = d.static && read.Changes <= rules.ByObject
		d.amounts = d.amounts && inAmounts(read)
		d.peers, d.candidates = d.peers || aroundNode(read), d.candidates || anyOf(read, language.FromCandidates)
		d.beyond = d.beyond || beyondNode(read)
	}
}

func (d *dependency) addClass(read rules.Read) {
	d.class = append(d.class, read)
	if read.Root == "action" || read.Root == "pipeline" {
		return
	}
	d.terms, d.images = d.terms || anyOf(read, language.FromOthersTerms), d.images || anyOf(read, language.FromImages)
	d.moving = d.moving || read.Changes > rules.ByCycle
	d.beyond = d.beyond || anyOf(read, language.FromPeers|language.FromImageNodes|language.FromCandidates) // they have no value of their own
}

// lastOf is the member that a read ends at; nil: it is of the root itself.
func lastOf(read rules.Read) *rules.Member {
	if len(read.Steps) == 0 {
		return nil
	}
	return read.Steps[len(read.Steps)-1].Member
}

// anyOf says that some field on the way of a read is made of something.
func anyOf(read rules.Read, origin rules.Origin) bool {
	return slices.ContainsFunc(read.Steps, func(step rules.Step) bool { return step.Member.Origin.Any(origin) })
}

// ofParts says that a read ends at the parts of an object, of which more is read apart.
func ofParts(read rules.Read) bool {
	m := lastOf(read)
	return m != nil && m.Origin.Any(language.ToParts)
}

// ofMembers says that a read is what an accounting function reads of its members: no path of a row leads there, and
// the attribute that the function computes is read as well.
func ofMembers(read rules.Read) bool {
	return slices.ContainsFunc(read.Steps, func(step rules.Step) bool { return step.Member.Get == nil })
}

// ofClass says that a read is part of what a class is. What is read on the way to a computed field is in that.
func ofClass(read rules.Read) bool {
	switch read.Root {
	case "task", "job", "queue":
		return !read.Through && !ofVolumes(read) && !ofMembers(read)
	case "action", "pipeline":
		return true
	}
	return false
}

// ofNodes says that a read is of the node that is tried, or of a device of it.
func ofNodes(read rules.Read) bool { return read.Root == "node" || read.Root == "gpu" }

// identifies says that a read tells every task from every other.
func identifies(read rules.Read) bool {
	return read.Root == "task" && len(read.Steps) == 1 && anyOf(read, language.FromIdentity)
}

// ofVolumes says that a read is of the volumes of the task that is asked about.
func ofVolumes(read rules.Read) bool {
	return read.Root == "task" && anyOf(read, language.FromVolumes)
}

// ofClock says that a read is of the time.
func ofClock(read rules.Read) bool { return read.Root == "now" || anyOf(read, language.FromClock) }

// ofAnswers says that a read is of what the rows of jobStarving answer.
func ofAnswers(read rules.Read) bool { return anyOf(read, language.FromAnswers) }

// aroundNode says that a read goes to what lies around the node that is tried.
func aroundNode(read rules.Read) bool {
	return ofNodes(read) && anyOf(read, language.FromPeers|language.FromImageNodes|language.FromCandidates)
}

// inAmounts says that what is read of a node is told by its number.
func inAmounts(read rules.Read) bool {
	return read.Root == "node" && len(read.Steps) > 0 && !slices.ContainsFunc(read.Steps, func(step rules.Step) bool {
		return step.Member.Reads != nil || !step.Member.Origin.Any(language.FromAmounts)
	})
}

// beyondNode says that what is read through a node is not told by the node: what the jobs, queues or nodes of its tasks have and may
// change, which of them these are, and all that is of no one object.
func beyondNode(read rules.Read) bool {
	const around = language.FromPeers | language.FromImageNodes | language.FromCandidates
	for i, step := range read.Steps {
		m, last := step.Member, i == len(read.Steps)-1
		switch {
		case m.Reads != nil: // what it reads is among the reads as well, but not where it leads
			if !last && lastOf(read).Changes > rules.Static {
				return true
			}
		case m.Origin.Any(language.ToQueue):
			return true // a job is moved to another, and its tasks are where they were
		case m.Origin.Any(language.ToJob | language.ToNode | language.ToNamespace):
			if last || lastOf(read).Changes > rules.Static {
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

// reach is how far from an object something lies.
type reach uint8

const (
	within    reach = iota // the object itself, and what it is touched with
	alongTree              // the queues above a queue, and what they sum up
	beyondIt
)

// reach of a read, seen from an object of its kind.
func (p *Policy) reach(read rules.Read, owner string) reach {
	if read.Root != owner {
		return beyondIt
	}
	far := within
	for i, step := range read.Steps {
		m, last := step.Member, i == len(read.Steps)-1
		switch t := p.trees[m]; {
		case t != nil && t.flat, t != nil && last:
		case t != nil:
			far = alongTree
		case m.Reads != nil && last: // what it reads is among the reads as well
		case m.Origin.Any(language.ToParts|language.ToMembers) && m.Origin.Within(language.FromOwn):
		case last && m.Origin.Within(language.FromOwn|language.ToTasks|language.ToJob|language.ToQueue|language.ToNode):
		default:
			return beyondIt
		}
	}
	return far
}

// lasting says that a read, seen from an object of its kind, is of what that object is touched with, in whatever cycle: not of what settles
// once a cycle, nor of what moves with other objects.
func (p *Policy) lasting(read rules.Read, owner string) bool {
	if p.reach(read, owner) != within || len(read.Steps) == 0 {
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

// isShared says that to read something may change what is not of one node alone, though it was read before.
func isShared(read rules.Read) bool {
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
