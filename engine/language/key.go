package language

import (
	"cmp"
	"math"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Key is one sort key. An absent key comes last in both directions.
type Key struct {
	kind keyKind
	bits int64 // the bits of an int or a double
	s    string
	list *[]Key
}

type keyKind uint8

const (
	noKey keyKind = iota
	intKey
	floatKey
	stringKey
	listKey
)

// KeyOf converts a value to a sort key; false: the value has no order (NaN).
func KeyOf(v ref.Val) (Key, bool) {
	switch x := v.(type) {
	case types.Bool:
		return BoolKey(bool(x)), true
	case types.Int:
		return Key{kind: intKey, bits: int64(x)}, true
	case types.Double:
		return NumberKey(float64(x))
	case types.String:
		return Key{kind: stringKey, s: string(x)}, true
	case types.Timestamp:
		return Key{kind: intKey, bits: x.UnixNano()}, true
	case types.Duration:
		return Key{kind: intKey, bits: int64(x.Duration)}, true
	case traits.Lister:
		var list []Key
		for i := range SizeOf(x) {
			k, ok := KeyOf(x.Get(i))
			if !ok {
				return Key{}, false
			}
			list = append(list, k)
		}
		return ListKey(list), true
	}
	return Key{}, false
}

// BoolKey returns the key of a bool. false comes first.
func BoolKey(x bool) Key {
	if x {
		return Key{kind: intKey, bits: 1}
	}
	return Key{kind: intKey}
}

// NumberKey returns the key of a number; false: it is NaN.
func NumberKey(x float64) (Key, bool) {
	return Key{kind: floatKey, bits: int64(math.Float64bits(x))}, !math.IsNaN(x)
}

// ListKey returns the key of a list of keys.
func ListKey(list []Key) Key { return Key{kind: listKey, list: &list} }

// Same reports whether two keys compare equally to any other key. It may return false for equal numbers of different types.
func (k *Key) Same(o *Key) bool {
	if k.kind == listKey && o.kind == listKey {
		return slices.EqualFunc(*k.list, *o.list, func(a, b Key) bool { return a.Same(&b) })
	}
	return k.kind == o.kind && k.bits == o.bits && k.s == o.s
}

// Compare orders two keys. An int and a double compare as numbers. A list equals a list that it is a prefix of.
func (k *Key) Compare(o *Key) int {
	switch {
	case k.kind == listKey && o.kind == listKey:
		a, b := *k.list, *o.list
		for i := range min(len(a), len(b)) {
			if c := a[i].Compare(&b[i]); c != 0 {
				return c
			}
		}
		return 0
	case k.kind == stringKey:
		return cmp.Compare(k.s, o.s)
	case k.kind == intKey && o.kind == intKey:
		return cmp.Compare(k.bits, o.bits)
	}
	return cmp.Compare(k.number(), o.number())
}

func (k *Key) number() float64 {
	if k.kind == intKey {
		return float64(k.bits)
	}
	return math.Float64frombits(uint64(k.bits))
}

// None reports whether the key is absent.
func (k *Key) None() bool { return k.kind == noKey }
