package language

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/bucket"
	"github.com/celsius-scheduler/celsius/rules"
)

// BucketsType returns the type of the buckets of a job's tasks.
func BucketsType() *cel.Type { return Object("Buckets") }

// bucketsValue contains the buckets of a job's tasks. Jobs without bucket annotations share the value without buckets.
type bucketsValue struct{ of *bucket.Buckets }

// ConvertToNative implements ref.Val.
func (b *bucketsValue) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("buckets have no other form")
}

// ConvertToType implements ref.Val. The text is for messages.
func (b *bucketsValue) ConvertToType(to ref.Type) ref.Val {
	switch to {
	case types.StringType:
		return types.String(b.name())
	case types.TypeType:
		return BucketsType()
	}
	return types.NewErr("buckets cannot become a %s", to.TypeName())
}

// Equal implements ref.Val. It compares the job and the version.
func (b *bucketsValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(*bucketsValue)
	return types.Bool(ok && o.name() == b.name())
}

// Type implements ref.Val.
func (b *bucketsValue) Type() ref.Type { return BucketsType() }

// Value implements ref.Val.
func (b *bucketsValue) Value() any { return b }

// name returns a text that differs for each job and version.
func (b *bucketsValue) name() string {
	if b.of == nil {
		return ""
	}
	return fmt.Sprintf("buckets of %s as of %d", b.of.Job.Key, b.of.Version)
}

// jobsBuckets returns the job's buckets. It rebuilds them only after the job changed.
func (j *JobView) jobsBuckets() *bucketsValue {
	held := j.buckets
	switch {
	case held != nil && (held.of == nil || held.of.Version == j.Of.Version) && j.bucketsAt == j.Of.Version+1:
		return held
	case j.World.Shared:
		return &bucketsValue{bucket.Of(j.Of)}
	}
	j.buckets, j.bucketsAt = &bucketsValue{bucket.Of(j.Of)}, j.Of.Version+1
	return j.buckets
}

// bucketJobField, and the same for a task, declare the inputs of buckets for classes; "" if the job has no bucket annotations.
func bucketJobField() *rules.Member {
	get := func(j *JobView) ref.Val {
		if !bucket.Written(j.Of) {
			return types.String("")
		}
		return types.String(fmt.Sprintf("%s as of %d", j.Of.Key, j.Of.Version))
	}
	return hidden("wishes", FromSpec|FromState, rules.ByStep, "what its buckets are made of, and where its tasks are", get)
}

func bucketTaskField() *rules.Member {
	get := func(t *TaskView) ref.Val {
		if !bucket.Written(t.Of.Job) {
			return types.String("")
		}
		return types.String(t.Of.Key)
	}
	return hidden("wish", FromSpec, rules.ByObject, "which of its job's tasks it is, where these are put into buckets", get)
}

// bucketFunctions returns the functions of buckets.
func bucketFunctions() []*rules.Function {
	made, task, integer := BucketsType(), TaskType(), cel.IntType
	about := func(name, doc string, args []*cel.Type, result *cel.Type, eval func(b *bucket.Buckets, t *TaskView) ref.Val,
		reads ...string,
	) *rules.Function {
		return Method(name, doc, args, result, func(args ...ref.Val) ref.Val {
			b, okB := args[0].(*bucketsValue)
			t, okT := args[1].(*TaskView)
			if !okB || !okT {
				return wrongArgument(args[0])
			}
			return eval(b.of, t)
		}, reads...)
	}
	return []*rules.Function{
		Method("taskBuckets", "The tasks of the job, put into buckets by what the annotations of its PodGroup say of which roles "+
			"are to be near each other, or apart, and of their order. Tasks that have a place make a bucket a node; the others join, one after "+
			"the other, the bucket with most tasks to which they are drawn, less those from which they are to be apart; among equals the one that "+
			"waits for least. Where none is left to join they make a new one. A job without these annotations has none, nor has one where "+
			"they name a role that it has not, or one twice.",
			[]*cel.Type{JobType()}, made, func(args ...ref.Val) ref.Val {
				j, ok := args[0].(*JobView)
				if !ok {
					return wrongArgument(args[0])
				}
				return j.jobsBuckets()
			}, "{0}.wishes"),
		about("bucketOf", "Which bucket the task is in, from 0; -1 for none.", []*cel.Type{made, task}, integer,
			func(b *bucket.Buckets, t *TaskView) ref.Val { return types.Int(b.Index(t.Of)) }, "{0}", "{1}.wish"),
		about("rankOf", "Where the task comes among those of its bucket: as the owner's order has its role, "+
			"then by the strongest wish that names it: to be apart from its own role, near others, near its own, apart from others.",
			[]*cel.Type{made, task}, cel.ListType(integer), func(b *bucket.Buckets, t *TaskView) ref.Val {
				r := b.Rank(t.Of.Role)
				return List([]ref.Val{types.Int(r[0]), types.Int(r[1])})
			}, "{0}", "{1}.role"),
		Method("waitingIn", "How many tasks of that bucket waited when it was made.", []*cel.Type{made, integer}, integer,
			func(args ...ref.Val) ref.Val {
				b, okB := args[0].(*bucketsValue)
				i, okI := args[1].(types.Int)
				if !okB || !okI {
					return wrongArgument(args[0])
				}
				return types.Int(b.of.Waiting(int(i)))
			}, rules.Arguments),
		bucketFitFunction(),
	}
}

func bucketFitFunction() *rules.Function {
	fit := func(args ...ref.Val) ref.Val {
		b, okB := args[0].(*bucketsValue)
		i, okI := args[1].(types.Int)
		t, okT := args[2].(*TaskView)
		n, okN := args[3].(*NodeView)
		if !okB || !okI || !okT || !okN {
			return wrongArgument(args[0])
		}
		if b.of.Largest() == 0 {
			return types.Double(0)
		}
		nodes, row := &n.World.c.Nodes, n.Of.Row
		free := nodes.IdleOf(row).Add(nodes.ReleasingOf(row))
		return types.Double(100 * float64(b.of.Fit(t.Of, int(i), row, free)) / float64(b.of.Largest()))
	}
	return called(Method("bucketFit", "How much of that bucket the node would have with the task, where 100 is as many tasks as the largest "+
		"bucket has: those that are there, and as many of those that wait as have room together, the task among them; less those of the job on "+
		"the node from which the task is to be apart.",
		[]*cel.Type{BucketsType(), cel.IntType, TaskType(), NodeType()}, cel.DoubleType, fit,
		"{0}", "{2}.wish", "{2}.role", "{2}.request", "{2}.job.wishes", "{3}.name", "{3}.idle", "{3}.releasing"), "index", "task", "node")
}
