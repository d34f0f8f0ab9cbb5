package policy

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// epoch is a text of all that columns depend on besides classes and nodes: figures of the cluster, and time.
func (s *Session) epoch() string {
	cs := &s.columns
	if len(cs.globals) == 0 && len(cs.nowParts) == 0 && !cs.nowMoves && !cs.byCycle {
		return ""
	}
	x := &s.epochText
	b := x.room[:0]
	for _, r := range cs.globals {
		b = encode(b, follow(s.ClusterView, r.Steps))
	}
	f := s.frame()
	defer s.done()
	for _, e := range cs.nowParts {
		b = encode(b, e.Eval(f))
	}
	if cs.nowMoves {
		b = encode(b, s.Now)
	}
	if cs.byCycle {
		b = binary.AppendUvarint(b, s.Cycle)
	}
	if x.room = b; string(b) != x.text {
		x.text = string(b)
	}
	return x.text
}

// classKey is a text of what the active rows, and the built-in fit, read of a task.
func (s *Session) classKey(t *model.Task) string {
	v := s.TaskView(t)
	at := language.Stamp{Cycle: s.Cycle, Clock: s.c.ObjectClock}
	if s.columns.moving {
		at.Clock = s.c.Clock
	}
	if v.ClassKey != "" && v.ClassAt == at && !s.readsAction() {
		return v.ClassKey
	}
	b := encodeAmounts(s.scratch(), t.InitRequest)
	for _, x := range []int64{t.GPUCount, t.GPUMilli, t.GPUMemory} {
		b = binary.AppendVarint(b, x)
	}
	if s.columns.ofVolumes && t.HasVolumes {
		b = append(b, 'v') // other rows are asked of it
	}
	b = s.encodeReads(b, t, s.columns.class)
	v.ClassAt = at
	if c := s.verdicts.classes.byKey[string(b)]; c != nil {
		v.ClassKey = c.key
	} else {
		v.ClassKey = string(b)
	}
	s.keyText = b
	return v.ClassKey
}

// scratch lends the room for a text; put it into keyText when it is read. Who asks meanwhile gets none.
func (s *Session) scratch() []byte {
	b := s.keyText[:0]
	s.keyText = nil
	return b
}

// encodeReads appends what some reads give for a task.
func (s *Session) encodeReads(b []byte, t *model.Task, reads []rules.Read) []byte {
	for _, r := range reads {
		switch r.Root {
		case "task":
			b = encodeRead(b, s.TaskView(t), r)
		case "job":
			b = encodeRead(b, s.JobView(t.Job), r)
		case "queue":
			b = encodeRead(b, s.QueueView(t.Job.Queue), r)
		case "action":
			b = encode(b, s.Action)
		}
	}
	return b
}

func (s *Session) readsAction() bool {
	for _, r := range s.columns.class {
		if r.Root == "action" {
			return true
		}
	}
	return false
}

// follow reads a path from an object; through a list it gives the list of what each element has.
func follow(v ref.Val, steps []rules.Step) ref.Val {
	for i, step := range steps {
		v = step.Member.Get(v.Value())
		l, ok := v.(traits.Lister)
		if !step.Each || !ok {
			continue
		}
		var out []ref.Val
		for k := range language.SizeOf(l) {
			out = append(out, follow(l.Get(k), steps[i+1:]))
		}
		return language.List(out)
	}
	return v
}

// encodeRead is encode of what a read gives for an object, without a box around what is read as it is.
func encodeRead(b []byte, of ref.Val, r rules.Read) []byte {
	if len(r.Steps) != 1 || r.Key != "" {
		return encodeKey(b, follow(of, r.Steps), r.Key)
	}
	m, v := r.Steps[0].Member, of.Value()
	switch {
	case m.Bool != nil:
		if x, err := m.Bool(v); err == nil {
			return encodeBool(b, x)
		}
	case m.Int != nil:
		if x, err := m.Int(v); err == nil {
			return encodeInt(b, x)
		}
	case m.String != nil:
		if x, err := m.String(v); err == nil {
			return encodeString(b, x)
		}
	}
	return encode(b, m.Get(v))
}

// encodeKey is encode of the one key of a map, or the one dimension of Resources, that is read: two pods are not of
// different classes for an annotation that no row looks at.
func encodeKey(b []byte, v ref.Val, key string) []byte {
	if key == "" {
		return encode(b, v)
	}
	switch x := v.(type) {
	case *language.Amounts:
		return encode(encode(b, x.Contains(types.String(key))), x.Get(types.String(key)))
	case traits.Mapper:
		if of, ok := x.Find(types.String(key)); ok {
			return encode(append(b, 'k'), of)
		}
		return append(b, 'n')
	}
	return encode(b, v)
}

// encode appends a value so that equal values, and only they, have equal bytes.
func encode(b []byte, v ref.Val) []byte {
	switch x := v.(type) {
	case types.Int:
		return encodeInt(b, int64(x))
	case types.Double:
		return binary.LittleEndian.AppendUint64(append(b, 'd'), math.Float64bits(float64(x)))
	case types.Bool:
		return encodeBool(b, bool(x))
	case types.String:
		return encodeString(b, string(x))
	case types.Timestamp:
		return binary.AppendVarint(append(b, 'T'), x.UnixNano())
	case types.Duration:
		return binary.AppendVarint(append(b, 'D'), int64(x.Duration))
	case *language.Amounts:
		return encodeAmounts(append(b, 'r'), x.Resources)
	case traits.Mapper:
		return encodeMap(b, x)
	case traits.Lister:
		b = append(b, '[')
		for i := range language.SizeOf(x) {
			b = encode(b, x.Get(i))
		}
		return append(b, ']')
	case interface{ name() string }:
		return encode(append(b, 'o'), types.String(x.name()))
	}
	return append(append(b, '?'), language.Text(v)...)
}

func encodeBool(b []byte, x bool) []byte {
	if x {
		return append(b, 't')
	}
	return append(b, 'f')
}

func encodeInt(b []byte, x int64) []byte { return binary.AppendVarint(append(b, 'i'), x) }

func encodeString(b []byte, x string) []byte {
	return append(binary.AppendVarint(append(b, 's'), int64(len(x))), x...)
}

func encodeMap(b []byte, m traits.Mapper) []byte {
	var entries []string
	for it := m.Iterator(); it.HasNext() == types.True; {
		k := it.Next()
		entries = append(entries, string(encode(encode(nil, k), m.Get(k))))
	}
	slices.Sort(entries)
	b = binary.AppendVarint(append(b, 'm'), int64(len(entries)))
	for _, e := range entries {
		b = append(b, e...)
	}
	return b
}

func encodeAmounts(b []byte, r model.Resources) []byte {
	for len(r) > 0 && r[len(r)-1] != r[len(r)-1] {
		r = r[:len(r)-1] // one that is absent, as the others are that nobody has named yet
	}
	b = binary.AppendVarint(b, int64(len(r)))
	for _, x := range r {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}
