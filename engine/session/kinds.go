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

// Kinds groups jobs by what a step of an action can read of them. For two jobs of the same kind and queue the step has the same result, if
// the content of the cluster is the same. So if one of them was tried without effect, the step can skip the others.
type Kinds struct {
	s         *Session
	job, task []kindRead
	namespace bool            // the key contains the namespace, because values of the namespace are read
	related   bool            // changes of objects other than the job change what is read
	peers     bool            // so do the terms of other pods, and the images of nodes
	among     bool            // jobs of one queue, or the tasks of a job, may be evicted for each other: jobs with running tasks have no kind
	known     map[string]bool // reads that each key contains, as text
	text      []byte
	waiting   []*model.Task
}

// kindRead is a read whose value is in the key.
type kindRead struct {
	rules.Read
	parts bool // a list of parts: its value is their number; the reads of each part are separate
}

// Kinds returns the Kinds of a step. It returns nil if the result for one job implies nothing for another: for example, if rows distinguish
// all tasks, or if their values change with time.
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

// add adds one read to the key; false: the job alone does not determine what is read.
func (k *Kinds) add(read rules.Read) bool {
	if read.Root == "preemptor" {
		if len(read.Steps) == 0 {
			return true // the row only reads that a preemptor exists
		}
		read.Root = "task" // a preemptor is a task of the job
	}
	if read.Root != "job" && read.Root != "task" || policy.OfVolumes(read) {
		return true // it is the same for all jobs of a queue, or in the whole cluster; tasks with volumes have no kind
	}
	switch k.leads(read) {
	case nowhere:
		return false
	case elsewhere:
		return true
	case toItself:
	}
	if m := policy.LastOf(read); m != nil && m.Reads != nil && m.Own != "" && !k.s.ownWholly(m) {
		return !slices.ContainsFunc(m.Reads.All, policy.OfMembers) // the set also contains what it reads of the job
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

// way states where the path of a read leads from a job or its task.
type way uint8

const (
	toItself  way = iota // to a value that the key contains
	elsewhere            // to a value that is the same for all jobs of a queue or namespace, or that is read anyway
	nowhere              // to a value that no single job determines
)

func (k *Kinds) leads(read rules.Read) way {
	for _, step := range read.Steps {
		switch m := step.Member; {
		case m.Get == nil,
			m.Origin.Any(language.FromPeers | language.FromImageNodes | language.FromCandidates | language.FromDomain | language.FromAll |
				language.FromCluster | language.FromClock):
			return nowhere
		// each key contains the name of the queue; answers are read anyway
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

// told reports whether each key already contains a read.
func (k *Kinds) told(read rules.Read) bool {
	if n := len(read.Steps); n > 0 && read.Steps[n-1].Each && policy.OfParts(read) {
		return true // the set also contains the reads of each part, and the number of parts
	}
	text := read.String()
	read.Key = ""
	if k.known[text] || k.known[read.String()] {
		return true
	}
	k.known[text] = true
	return false
}

// encode appends the values of some reads for a job or a task.
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

// ownWholly reports whether a computed member reads only its own object.
func (s *Session) ownWholly(m *rules.Member) bool {
	return !slices.ContainsFunc(m.Reads.All, func(r rules.Read) bool { return s.p.Reach(r, m.Own) != policy.Within })
}

// Epoch returns a text of what kinds depend on in addition to the jobs. If it changes, compute all kinds again.
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

// Of returns a key that jobs of one kind share. false: the job has no kind, because it has volumes, or its tasks may be evicted for other
// tasks.
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

// OfTask returns a key that tasks of a job share if they get equal results. false: no other task gets the same result, because the task has
// volumes.
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

// Local reports whether the answers of sites for a job depend only on the job: they change only if the job changes.
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

// LocalFilter reports whether a step's condition for a job depends only on the job.
func (s *Session) LocalFilter(e *eval.Expr) bool {
	return !e.Timely() && !slices.ContainsFunc(e.Reads.All, func(read rules.Read) bool {
		return read.Root != "action" && read.Root != "pipeline" && !local(s.p, read)
	})
}

// Token identifies what a step's answers depend on in addition to a job. It contains the content of the cluster, the content at the
// beginning of the cycle (when some attributes settle), and the values of the time.
type Token struct {
	content, begun, passed uint64
	time                   string
}

// Token returns the token of this moment.
func (s *Session) Token() Token {
	return Token{s.c.Content(), s.rest.begun, s.rest.passed, s.rest.values}
}

// local reports whether a read of a job changes only if the job changes.
func local(p *policy.Policy, read rules.Read) bool { return p.Reach(read, "job") == policy.Within }

// OrderEpoch returns a text of what the order of jobs depends on in addition to the jobs and the passing of time. false: that changes
// within a cycle, or is unknown.
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
