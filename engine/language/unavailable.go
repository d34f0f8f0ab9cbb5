package language

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// unavailableJobFields returns the fields for the tasks that a job can lose, or must keep.
func unavailableJobFields() []*rules.Member {
	count := func(name, key, doc string) *rules.Member {
		return field(name, cel.OptionalType(cel.IntType), FromSpec|FromState, rules.ByObject, "annotation "+key+" of the PodGroup: "+doc+
			", a number or a percentage of taskCount, rounded up; none where there is no such annotation, or it is malformed",
			func(j *JobView) ref.Val { return numberOrPercent(j.Of.Annotations[key], len(j.Of.Tasks)) })
	}
	return []*rules.Member{
		count("minAvailable", model.MinAvailableAnnotation, "how many of its tasks are to stay through a disruption"),
		count("maxUnavailable", model.MaxUnavailableAnnotation, "how many of its tasks may be missing at a time"),
	}
}

// numberOrPercent parses a number, or a percentage of all, rounded up.
func numberOrPercent(text string, all int) ref.Val {
	x := intstr.Parse(text)
	n, err := intstr.GetScaledValueFromIntOrPercent(&x, all, true)
	if err != nil || n < 0 {
		return types.OptionalNone
	}
	return types.OptionalOf(types.Int(n))
}
