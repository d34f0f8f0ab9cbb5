package rules

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// OfValues returns how many steps a function needs that traverses values. It stops counting above enough.
func (g Growth) OfValues(values []ref.Val, enough int64) int64 {
	sum, product := int64(0), int64(1)
	for _, v := range values {
		n := Walked(v, enough-sum)
		sum += n
		product = min(product*(min(n, CostLimit)+1), 2*CostLimit)
		if sum > enough {
			return sum
		}
	}
	if g == Quadratic && len(values) == 1 {
		product *= product
	}
	if g == Quadratic {
		return max(sum, product)
	}
	return sum
}

// SizeOf returns the number of elements or characters of a value.
func SizeOf(v traits.Sizer) int64 {
	n, _ := v.Size().(types.Int)
	return int64(n)
}

// Walked returns how many steps a traversal of a whole value needs. It stops counting above enough.
func Walked(v ref.Val, enough int64) int64 {
	n := int64(1)
	switch v := v.(type) {
	case types.String:
		n += int64(len(v)) / charsPerStep
	case types.Bytes:
		n += int64(len(v)) / charsPerStep
	case traits.Mapper:
		for it := v.Iterator(); n <= enough && it.HasNext() == types.True; {
			key := it.Next()
			n += Walked(key, enough-n)
			if x, ok := v.Find(key); ok && n <= enough {
				n += Walked(x, enough-n)
			}
		}
	case traits.Lister:
		for it := v.Iterator(); n <= enough && it.HasNext() == types.True; {
			n += Walked(it.Next(), enough-n)
		}
	}
	return n
}
