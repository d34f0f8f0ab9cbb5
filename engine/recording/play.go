package recording

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// Player replays the cycles of a recording.
type Player struct {
	// Before is called before each cycle, with its cluster and policy; nil: it is not called. It must not change the cluster.
	Before func(x *Moment) error
	// After is called after each replayed cycle.
	After func(x *Moment) error

	kinds    map[string]reflect.Type
	policies map[string]*policy.Policy
	begin    *begin
	objects  []model.Delta // of the checkpoint that is being read
	known    known
	cluster  *model.Cluster
	policy   *policy.Policy
	decider  engine.Decider
}

// Moment is a cycle of a recording.
type Moment struct {
	Recorded *Cycle
	Cluster  *model.Cluster
	Policy   *policy.Policy
	// Plan is the replayed plan, and Session its session. Before the replay, both are nil.
	Plan    *model.Plan
	Session *session.Session
}

// Again returns the replayed cycle in its recorded form. Writing it takes longer than most cycles.
func (m *Moment) Again() (*Cycle, error) {
	sum, err := SumOf(m.Plan)
	return cycleOf(m.Recorded.Number, m.Plan, sum), err
}

// Same reports whether the replayed plan equals the recorded one, byte for byte.
func (m *Moment) Same() bool {
	again, err := m.Again()
	return err == nil && again.Sum == m.Recorded.Sum
}

// Files returns the files of a recording, the oldest first: those in a folder, or the single named file.
func Files(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("look for recordings: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	files, err := filesIn(path)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there is no recording in %s: its files end in %s", path, suffix)
	}
	return files, err
}

// ErrStop ends a replay early, if Before or After returns it.
var ErrStop = errors.New("that is enough")

// Play replays the cycles of a file. It reads an incomplete file, for example the one that is being written, up to its end.
func (p *Player) Play(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read a recording: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	packed, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // the file has just begun
		}
		return fmt.Errorf("%s is no recording: %w", file, err)
	}
	lines := bufio.NewReaderSize(packed, 1<<20)
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: line %d: %w", file, n, err)
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("%s: line %d is no line of a recording: %w", file, n, err)
		}
		if err := p.line(&l); err != nil {
			if errors.Is(err, ErrStop) {
				return err
			}
			return fmt.Errorf("%s: line %d: %w", file, n, err)
		}
	}
}

func (p *Player) line(l *line) error {
	if p.kinds == nil {
		p.kinds = kinds()
	}
	if l.Begin == nil && p.begin == nil {
		return errors.New("a recording begins with a checkpoint")
	}
	switch {
	case l.Begin != nil:
		if l.Begin.Version != version {
			return fmt.Errorf("this recording is of version %d; what reads it knows version %d", l.Begin.Version, version)
		}
		p.begin, p.objects, p.cluster, p.policy, p.known = l.Begin, nil, nil, nil, known{}
		return nil
	case l.Put != nil:
		d, err := l.Put.read(p.kinds)
		if err != nil {
			return err
		}
		p.objects = append(p.objects, d)
		p.known.take(d)
		return nil
	case l.Own != nil:
		var err error
		p.cluster, err = restored(p.begin.SchedulerNames, p.objects, l.Own)
		p.objects = nil
		return err
	case p.cluster == nil:
		return errors.New("the checkpoint has no end")
	case l.Policy != nil:
		var err error
		p.policy, err = p.compiled(l.Policy)
		return err
	case l.Cycle != nil:
		return p.cycle(l.Cycle)
	}
	return p.change(l)
}

// compiled returns a served policy in compiled form. It caches the policies.
func (p *Player) compiled(s *served) (*policy.Policy, error) {
	key := fmt.Sprintf("%d %s %s", s.Generation, s.Mode, s.Object)
	if known := p.policies[key]; known != nil {
		return known, nil
	}
	x, issues := policy.LoadStored(s.Object)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("the policy that served then: %w", err)
	}
	x.Generation, x.Mode = s.Generation, s.Mode
	if p.policies == nil {
		p.policies = map[string]*policy.Policy{}
	}
	p.policies[key] = x
	return x, nil
}

// Objects returns the objects of the present cycle. Its pods and PodGroups show the earlier decisions about them.
func (p *Player) Objects() []metav1.Object {
	out := make([]metav1.Object, 0, len(p.known))
	for _, d := range p.known {
		switch o := d.Object.(type) {
		case *corev1.Pod:
			if t := p.cluster.Tasks[model.Key(o.Namespace, o.Name)]; t != nil && t.NodeName != "" && o.Spec.NodeName == "" {
				o = o.DeepCopy()
				o.Spec.NodeName = t.NodeName
			}
			out = append(out, o)
		case *v1beta1.PodGroup:
			if j := p.cluster.Jobs[model.Key(o.Namespace, o.Name)]; j != nil && j.Phase != string(o.Status.Phase) {
				o = o.DeepCopy()
				o.Status.Phase = v1beta1.PodGroupPhase(j.Phase)
			}
			out = append(out, o)
		case metav1.Object:
			out = append(out, o)
		}
	}
	return out
}

// change applies what happened between cycles.
func (p *Player) change(l *line) error {
	switch {
	case l.Apply != nil:
		deltas := make([]model.Delta, 0, len(l.Apply))
		for i := range l.Apply {
			d, err := l.Apply[i].read(p.kinds)
			if err != nil {
				return err
			}
			deltas = append(deltas, d)
			p.known.take(d)
		}
		p.cluster.Apply(deltas...) // objects that cannot be read could not be read then either
	case l.Spare != nil:
		if t := p.cluster.Tasks[l.Spare.Task]; t != nil {
			t.Spare(l.Spare.Until)
		}
	case l.Release != "":
		if j := p.cluster.Jobs[l.Release]; j != nil {
			for _, t := range j.Tasks {
				p.cluster.Nominate(t, "")
			}
		}
	}
	return nil
}

func (p *Player) cycle(c *Cycle) error {
	if p.policy == nil {
		return fmt.Errorf("cycle %d has no policy", c.Number)
	}
	x := &Moment{Recorded: c, Cluster: p.cluster, Policy: p.policy}
	if p.Before != nil {
		if err := p.Before(x); err != nil {
			return err
		}
	}
	x.Plan = p.decider.Decide(p.cluster, p.policy, c.Now)
	x.Session = p.decider.Session()
	if p.After == nil {
		return nil
	}
	return p.After(x)
}
