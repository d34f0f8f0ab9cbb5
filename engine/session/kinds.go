package session

import (
	"encoding/binary"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Kinds tells jobs apart by what a step of an action can read of them. Of jobs of one kind and one queue, tried by the
// step at the same content of the cluster, the one fares as the other: so that after one was tried without effect, the
// others need not be.
type Kinds struct {
	s         *Session
	job, task []kindRead
	namespace bool            // what is read lies in the job's namespace
	related   bool            // other objects than the job's own change what is read
	peers     bool            // so do the terms of other pods, and which nodes have images
	among     bool            // jobs of one queue, or the tasks of a job, go for each other: who runs tells a job from others
	known     map[string]bool // what is in each key, as text
	text      []byte
	waiting   []*model.Task
}

// kindRead is a read by which kinds are told apart.
type kindRead struct {
	rules.Read
	parts bool // of parts, of which it is how many there are: what is read of them is apart
}

// Kinds of a step; nil where one job's fate says nothing of another's, be it that rows tell every task from every other, or
// that they move with each moment.
func (s *Session) Kinds(step *policy.Step) *Kinds {
	cs := s.verdicts.Plan
	exprs := step.Asks(s.p)
	if s.rest.restless || slices.ContainsFunc(exprs, (*eval.Expr).Moves) {
		return nil
	}
	ofNodes := step.Verb.Asks(policy.Predicates, policy.Scores, policy.DevicePredicates, policy.DeviceScores)
	if ofNodes && cs.TellTasksApart() || step.Verb.Asks(policy.TaskOrder) && s.TasksMove() {
		return nil
	}
	scope := step.Word(policy.KeyScope)
	k := &Kinds{s: s, known: map[string]bool{}, among: scope == policy.ScopeQueue || scope == policy.ScopeJob}
	// A class is of a task. The key of a job without waiting tasks contains no class, so reads of the job are always encoded for the job.
	for _, read := range cs.Class {
		if read.Root == "task" {
			k.known[read.String()] = true
		}
	}
	for _, e := range exprs {
		for _, read := range e.Reads.All {
			if !k.add(read) {
				return nil
			}
		}
	}
	return k
}

// add notes one read; false: what is read cannot be told from a job alone.
func (k *Kinds) add(read rules.Read) bool {
	if read.Root == "preemptor" {
		if len(read.Steps) == 0 {
			return true // that there is one
		}
		read.Root = "task" // it is a task of the job
	}
	if read.Root != "job" && read.Root != "task" || policy.OfVolumes(read) {
		return true // the same for all jobs of a queue, or of the state; tasks with volumes have no kind
	}
	switch k.leads(read) {
	case nowhere:
		return false
	case elsewhere:
		return true
	case toItself:
	}
	if m := policy.LastOf(read); m != nil && m.Reads != nil && m.Own != "" && !k.s.ownWholly(m) {
		return !slices.ContainsFunc(m.Reads.All, policy.OfMembers) // what it reads of the job is in the set as well
	}
	switch {
	case k.told(read):
	case read.Root == "job":
		k.job = append(k.job, kindRead{read, policy.OfParts(read)})
	default:
		k.task = append(k.task, kindRead{read, policy.OfParts(read)})
	}
	return true
}

// way is where the path of a read leads from a job, or a task of it.
type way uint8

const (
	toItself  way = iota // to what is told of by value
	elsewhere            // to what is the same for all jobs of a queue, or of a namespace, or is among what is asked
	nowhere              // to what is told of by no one job
)

func (k *Kinds) leads(read rules.Read) way {
	for _, step := range read.Steps {
		switch m := step.Member; {
		case m.Get == nil,
			m.Origin.Any(language.FromPeers | language.FromImageNodes | language.FromCandidates | language.FromDomain | language.FromAll |
				language.FromCluster | language.FromClock):
			return nowhere
		// the queue's name is in each key; answers are among what is asked
		case m.Origin.Any(language.ToQueue), m.Origin.Any(language.FromAnswers):
			return elsewhere
		case m.Origin.Any(language.ToNamespace):
			k.namespace = true
			return elsewhere
		case m.Origin.Any(language.FromRelated):
			k.related, k.namespace = true, true
		}
		k.peers = k.peers || step.Member.Origin.Any(language.FromTerms|language.FromOthersTerms|language.FromImages)
	}
	return toItself
}

// told says that a read is in every key anyway.
func (k *Kinds) told(read rules.Read) bool {
	if n := len(read.Steps); n > 0 && read.Steps[n-1].Each && policy.OfParts(read) {
		return true // what is read of each part is in the set as well, and so is how many there are
	}
	text := read.String()
	read.Key = ""
	if k.known[text] || k.known[read.String()] {
		return true
	}
	k.known[text] = true
	return false
}

// encode appends what some reads give for a job or a task.
func encode(b []byte, of ref.Val, reads []kindRead) []byte {
	for i := range reads {
		read := &reads[i]
		if read.parts {
			if l, ok := language.Follow(of, read.Steps).(traits.Lister); ok {
				b = binary.AppendVarint(b, int64(language.SizeOf(l)))
				continue
			}
		}
		b = language.EncodeRead(b, of, &read.Read)
	}
	return b
}

// ownWholly says that a computed member reads nothing but its own object.
func (s *Session) ownWholly(m *rules.Member) bool {
	return !slices.ContainsFunc(m.Reads.All, func(r rules.Read) bool { return s.p.Reach(r, m.Own) != policy.Within })
}

// Epoch is a text of what kinds rest on besides the jobs themselves: where it changes, kinds are to be asked for anew.
func (k *Kinds) Epoch() string {
	s := k.s
	b := binary.AppendUvarint(nil, s.c.NamespaceClock)
	if k.peers || s.verdicts.Plan.Peers || s.verdicts.Plan.Matched || s.verdicts.Plan.Images {
		b = binary.AppendUvarint(b, s.Counts().Version())
	}
	if k.related {
		b = binary.AppendUvarint(b, s.c.ObjectClock)
	}
	return string(b)
}

// Of is a text that jobs of one kind share; false: the job is of no kind, as it has volumes, or some of it may go for another.
func (k *Kinds) Of(j *model.Job) (string, bool) {
	s := k.s
	b := append(append(k.text[:0], j.QueueName...), 0)
	k.text = nil
	defer func() { k.text = b }()
	if k.namespace {
		b = append(append(b, j.Namespace...), 0)
	}
	for _, x := range j.Counts {
		b = binary.AppendVarint(b, x)
	}
	b = binary.AppendVarint(binary.AppendVarint(b, j.MinMember), int64(len(j.Roles)))
	b = append(append(b, j.Phase...), 0)
	b = encode(b, s.JobView(j), k.job)
	waiting := k.waiting[:0]
	for _, t := range j.Tasks {
		if t.HasVolumes || k.among && t.Node != model.NoNode {
			return "", false
		}
		if t.Status == model.Pending || t.Status == model.Pipelined {
			waiting = append(waiting, t)
		}
	}
	k.waiting = waiting
	for _, t := range waiting {
		b = k.ofTask(b, t)
	}
	if len(waiting) < 2 {
		return string(b), true
	}
	sorted := slices.Clone(waiting)
	if s.SortTasks(sorted); slices.Equal(sorted, waiting) {
		return string(b), true
	}
	place := make(map[*model.Task]int, len(sorted))
	for i, t := range sorted {
		place[t] = i
	}
	for _, t := range waiting {
		b = binary.AppendVarint(b, int64(place[t]))
	}
	return string(b), true
}

// OfTask is a text that those tasks of a job share that fare alike; false: the task fares as no other, as it has volumes.
func (k *Kinds) OfTask(t *model.Task) (string, bool) {
	if t.HasVolumes {
		return "", false
	}
	b := k.ofTask(k.text[:0], t)
	k.text = b
	return string(b), true
}

func (k *Kinds) ofTask(b []byte, t *model.Task) []byte {
	b = append(append(b, t.Role...), 0, byte(t.Status))
	for _, yes := range []bool{t.Gated, t.BestEffort} {
		b = language.Encode(b, types.Bool(yes))
	}
	b = language.EncodeAmounts(b, t.Request)
	class := k.s.verdicts.ClassKey(t)
	b = append(binary.AppendVarint(b, int64(len(class))), class...)
	return encode(b, k.s.TaskView(t), k.task)
}

// Local says that what sites ask about a job is told by the job itself: it changes only where the job does.
func (s *Session) Local(sites ...string) bool {
	for _, site := range sites {
		for _, r := range s.p.Rules(site) {
			for _, e := range r.Asked() {
				if slices.ContainsFunc(e.Reads.All, func(read rules.Read) bool { return !local(s.p, read) }) {
					return false
				}
			}
		}
	}
	return true
}

// LocalFilter says that whether a step takes a job is told by the job alone.
func (s *Session) LocalFilter(e *eval.Expr) bool {
	return !e.Timely() && !slices.ContainsFunc(e.Reads.All, func(read rules.Read) bool {
		return read.Root != "action" && read.Root != "pipeline" && !local(s.p, read)
	})
}

// Token names what a step's answers rest on besides a job: the content of the cluster, that at the cycle's beginning, at which
// some attributes settle, and what the time says.
type Token struct {
	content, begun, passed uint64
	time                   string
}

// Token of this moment.
func (s *Session) Token() Token {
	return Token{s.c.Content(), s.rest.begun, s.rest.passed, s.rest.values}
}

// local says that what is read of a job changes only where the job does.
func local(p *policy.Policy, read rules.Read) bool { return p.Reach(read, "job") == policy.Within }

// OrderEpoch is a text of what the order of jobs rests on besides the jobs themselves and the passing of time; false where that
// moves within a cycle, or cannot be told.
func (s *Session) OrderEpoch() (string, bool) {
	if far, _ := s.moves(policy.JobOrder, "job"); far != policy.Within {
		return "", false
	}
	var b []byte
	for _, r := range s.p.Rules(policy.JobOrder) {
		for _, read := range r.Reads.All {
			switch {
			case read.Root == "cluster" && !policy.OfMembers(read):
				b = language.EncodeKey(b, language.Follow(s.ClusterView, read.Steps), read.Key)
			case read.Root == "job" && !local(s.p, read):
				return "", false
			case read.Root == "action":
				b = language.Encode(b, s.Action)
			}
		}
	}
	return string(append(b, s.rest.values...)), true
}
