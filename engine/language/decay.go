package language

import (
	"math"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
)

// decayFunctions weigh what is past.
func decayFunctions() []*rules.Function {
	return []*rules.Function{called(Method("decayed",
		"What is left of an amount of that age if it halves with every half-life: amount * 2^(-age/halfLife). An age below 0 counts as 0; a "+
			"half-life that is not above 0 is an error.",
		[]*cel.Type{cel.DoubleType, cel.DurationType, cel.DurationType}, cel.DoubleType, decayed, rules.Arguments), "age", "halfLife")}
}

func decayed(args ...ref.Val) ref.Val {
	amount, isNumber := Number(args[0])
	age, isAge := args[1].(types.Duration)
	half, isHalf := args[2].(types.Duration)
	switch {
	case !isNumber:
		return wrongArgument(args[0])
	case !isAge:
		return wrongArgument(args[1])
	case !isHalf:
		return wrongArgument(args[2])
	case half.Duration <= 0:
		return types.NewErr("the half-life must be above 0, found %s", half.Duration)
	}
	return types.Double(amount * math.Exp2(-float64(max(age.Duration, time.Duration(0)))/float64(half.Duration)))
}
