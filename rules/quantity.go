package rules

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	kubernetes "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/celsius-scheduler/celsius/crds/decode"
)

// quantities returns Kubernetes' library with another parser for texts: Kubernetes' parser needs hours for some texts that a label may
// contain.
func quantities() []cel.EnvOption {
	text := []*cel.Type{cel.StringType}
	return []cel.EnvOption{
		library.Quantity(),
		cel.Function("quantity", cel.Overload("string_to_quantity", text, kubernetes.QuantityType, cel.UnaryBinding(func(v ref.Val) ref.Val {
			s, ok := v.(types.String)
			if !ok {
				return types.MaybeNoSuchOverloadErr(v)
			}
			q, err := decode.Quantity(string(s))
			if err != nil {
				return types.NewErr("%.80q %w", string(s), err)
			}
			return kubernetes.Quantity{Quantity: &q}
		}))),
		cel.Function("isQuantity", cel.Overload("is_quantity_string", text, cel.BoolType, cel.UnaryBinding(func(v ref.Val) ref.Val {
			s, ok := v.(types.String)
			if !ok {
				return types.MaybeNoSuchOverloadErr(v)
			}
			_, err := decode.Quantity(string(s))
			return types.Bool(err == nil)
		}))),
	}
}
