package language

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// Follow reads a path from an object. For a list on the path, the result is the list of its elements' values.
func Follow(v ref.Val, steps []rules.Step) ref.Val {
	for i, step := range steps {
		v = step.Member.Get(v.Value())
		l, ok := v.(traits.Lister)
		if !step.Each || !ok {
			continue
		}
		var out []ref.Val
		for k := range SizeOf(l) {
			out = append(out, Follow(l.Get(k), steps[i+1:]))
		}
		return List(out)
	}
	return v
}

// EncodeRead encodes the value of a read of an object, without boxing plain values.
func EncodeRead(b []byte, of ref.Val, r *rules.Read) []byte {
	if len(r.Steps) != 1 || r.Key != "" {
		return EncodeKey(b, Follow(of, r.Steps), r.Key)
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
	return Encode(b, m.Get(v))
}

// EncodeKey encodes one key of a map, or one dimension of Resources. So an annotation that no row reads does not separate classes of pods.
func EncodeKey(b []byte, v ref.Val, key string) []byte {
	if key == "" {
		return Encode(b, v)
	}
	switch x := v.(type) {
	case *Amounts:
		return Encode(Encode(b, x.Contains(types.String(key))), x.Get(types.String(key)))
	case traits.Mapper:
		if of, ok := x.Find(types.String(key)); ok {
			return Encode(append(b, 'k'), of)
		}
		return append(b, 'n')
	}
	return Encode(b, v)
}

// Encode appends an encoding that is equal for two values if and only if the values are equal.
func Encode(b []byte, v ref.Val) []byte {
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
	case *Amounts:
		return EncodeAmounts(append(b, 'r'), x.Resources)
	case traits.Mapper:
		return encodeMap(b, x)
	case traits.Lister:
		b = append(b, '[')
		for i := range SizeOf(x) {
			b = Encode(b, x.Get(i))
		}
		return append(b, ']')
	case interface{ name() string }:
		return Encode(append(b, 'o'), types.String(x.name()))
	}
	return append(append(b, '?'), Text(v)...)
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
		entries = append(entries, string(Encode(Encode(nil, k), m.Get(k))))
	}
	slices.Sort(entries)
	b = binary.AppendVarint(append(b, 'm'), int64(len(entries)))
	for _, e := range entries {
		b = append(b, e...)
	}
	return b
}

// EncodeAmounts appends an encoding of amounts.
func EncodeAmounts(b []byte, r model.Resources) []byte {
	for len(r) > 0 && r[len(r)-1] != r[len(r)-1] {
		r = r[:len(r)-1] // a trailing absent amount equals a dimension that was never named
	}
	b = binary.AppendVarint(b, int64(len(r)))
	for _, x := range r {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}
