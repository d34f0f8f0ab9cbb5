package language

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
)

// rivalsField tells of the jobs with which a job took room in turn. Its keys name both, so that jobs with the same value are one and the
// same to whoever asks, and what asks need not read who they are.
func rivalsField() *rules.Member {
	pairs := cel.MapType(cel.StringType, cel.TimestampType)
	return bounded(field("rivals", pairs, FromState, rules.ByObject, "the pairs of jobs, this one and another, of which each had pods "+
		"evicted for the other that are gone, within a day, as 'team/a, team/b' in the order of names; with when the "+
		"last of them was evicted. A scheduler that starts knows of none",
		func(j *JobView) ref.Val {
			of, book := map[string]any{}, &j.World.Cluster().Past.Rivals
			for _, other := range book.Of(j.Of.Key) {
				at, _ := book.Since(j.Of.Key, other)
				of[min(j.Of.Key, other)+", "+max(j.Of.Key, other)] = at
			}
			return types.DefaultTypeAdapter.NativeToValue(of)
		}), 8)
}

func rivalryFunction() *rules.Function {
	optional := cel.OptionalType(cel.TimestampType)
	return Method("rivalry", "When of the two jobs the last had a pod evicted for the other, if each had within a day; see `job.rivals`.",
		[]*cel.Type{JobType(), JobType()}, optional, func(args ...ref.Val) ref.Val {
			j, ok := args[0].(*JobView)
			other, okO := args[1].(*JobView)
			if !ok || !okO {
				return wrongArgument(args[0])
			}
			if at, rivals := j.World.Cluster().Past.Rivals.Since(j.Of.Key, other.Of.Key); rivals {
				return types.OptionalOf(types.Timestamp{Time: at})
			}
			return types.OptionalNone
		}, "{0}.rivals", "{1}.rivals")
}
