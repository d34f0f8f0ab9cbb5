package policy

import (
	"cmp"
	"math"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Key is one sort key: absent comes last, whichever way the row sorts.
type Key struct {
	kind keyKind
	bits int64 // of an int, or of a double
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

// KeyOf reads a sort key; false where the value has no order (NaN).
func KeyOf(v ref.Val) (Key, bool) {
	switch x := v.(type) {
	case types.Bool:
		if x {
			return Key{kind: intKey, bits: 1}, true
		}
		return Key{kind: intKey}, true
	case types.Int:
		return Key{kind: intKey, bits: int64(x)}, true
	case types.Double:
		return floatKeyOf(float64(x))
	case types.String:
		return Key{kind: stringKey, s: string(x)}, true
	case types.Timestamp:
		return Key{kind: intKey, bits: x.UnixNano()}, true
	case types.Duration:
		return Key{kind: intKey, bits: int64(x.Duration)}, true
	case traits.Lister:
		var list []Key
		for i := range language.SizeOf(x) {
			k, ok := KeyOf(x.Get(i))
			if !ok {
				return Key{}, false
			}
			list = append(list, k)
		}
		return listOfKeys(list), true
	}
	return Key{}, false
}

func floatKeyOf(x float64) (Key, bool) {
	return Key{kind: floatKey, bits: int64(math.Float64bits(x))}, !math.IsNaN(x)
}

func listOfKeys(list []Key) Key { return Key{kind: listKey, list: &list} }

// compare orders two keys; an int and a double compare as numbers. Where one list is the beginning
// of the other they are equal.
func (k *Key) compare(o *Key) int {
	switch {
	case k.kind == listKey && o.kind == listKey:
		a, b := *k.list, *o.list
		for i := range min(len(a), len(b)) {
			if c := a[i].compare(&b[i]); c != 0 {
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

// Compare compares two keys of the row: who has none comes last, whichever way the row sorts.
func (r *Rule) Compare(x, y *Key) int {
	switch {
	case x.kind == noKey && y.kind == noKey:
		return 0
	case x.kind == noKey:
		return 1
	case y.kind == noKey:
		return -1
	}
	if r.Descending {
		return y.compare(x)
	}
	return x.compare(y)
}

// TaskTie is the final order of tasks. Names come before UIDs: creation times are whole seconds, UIDs are random, and one manifest must
// not get other places each time.
func TaskTie(a, b *model.Task) int {
	if a.Index >= 0 && b.Index >= 0 && a.Index != b.Index {
		return cmp.Compare(a.Index, b.Index)
	}
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Key, b.Key), cmp.Compare(a.UID, b.UID))
}
