package language

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
)

// takersField declares the field with the jobs that took resources from a job.
func takersField() *rules.Member {
	times := cel.MapType(cel.StringType, cel.TimestampType)
	return bounded(field("takers", times, FromState, rules.ByObject, "the jobs, as 'team/a', for which pods of this one were evicted that "+
		"are gone, within a day; those for which pods of these were; and so on. With each is since when: of the evictions that lead to it "+
		"the one that is longest ago, and where several ways do, the latest of these. A scheduler that starts knows of none",
		func(j *JobView) ref.Val {
			return types.DefaultTypeAdapter.NativeToValue(j.World.Cluster().Past.Rivals.Takers(j.Of.Key))
		}), 8)
}
