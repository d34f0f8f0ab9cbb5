package statemachines

import (
	"fmt"
	"reflect"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
)

// view gives the rule language access to a Go struct. It is compared by identity, and the declared objects read its fields.
type view struct {
	typ func() *cel.Type // a function, because creating a type is more expensive than creating a view
	of  any
}

// ConvertToNative implements ref.Val.
func (v *view) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("a %s has no other form", v.typ().TypeName())
}

// ConvertToType implements ref.Val.
func (v *view) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return v.typ()
	}
	return types.NewErr("a %s cannot become a %s", v.typ().TypeName(), t.TypeName())
}

// Equal implements ref.Val.
func (v *view) Equal(other ref.Val) ref.Val {
	o, ok := other.(*view)
	return types.Bool(ok && o.of == v.of)
}

// Type implements ref.Val.
func (v *view) Type() ref.Type { return v.typ() }

// Value implements ref.Val.
func (v *view) Value() any { return v.of }

func jobType() *cel.Type       { return cel.ObjectType("Job") }
func specType() *cel.Type      { return cel.ObjectType("JobSpec") }
func statusType() *cel.Type    { return cel.ObjectType("JobStatus") }
func taskType() *cel.Type      { return cel.ObjectType("Task") }
func podType() *cel.Type       { return cel.ObjectType("Pod") }
func containerType() *cel.Type { return cel.ObjectType("Container") }
func podGroupType() *cel.Type  { return cel.ObjectType("PodGroup") }
func queueType() *cel.Type     { return cel.ObjectType("Queue") }
func flowType() *cel.Type      { return cel.ObjectType("JobFlow") }
func cronJobType() *cel.Type   { return cel.ObjectType("CronJob") }
func madeJobType() *cel.Type   { return cel.ObjectType("MadeJob") }
func changeType() *cel.Type    { return cel.ObjectType("Change") }

// maxItems is the number of tasks, containers or labels that the static cost of a guard assumes.
const maxItems = 1024

// member declares one field of an object that is stored as *T.
func member[T any](name, doc string, t *cel.Type, get func(*T) ref.Val) *rules.Member {
	return &rules.Member{Name: name, Doc: doc, Type: t, Changes: rules.ByStep, Bound: maxItems, Get: func(object any) ref.Val {
		of, ok := object.(*T)
		if !ok {
			return types.NewErr("%T has no field %s", object, name)
		}
		return get(of)
	}}
}

func text[T any](name, doc string, get func(*T) string) *rules.Member {
	return member(name, doc, cel.StringType, func(of *T) ref.Val { return types.String(get(of)) })
}

func count[T any](name, doc string, get func(*T) int32) *rules.Member {
	return member(name, doc, cel.IntType, func(of *T) ref.Val { return types.Int(get(of)) })
}

// optional declares a number that may be missing. has() tests for it.
func optional[T any](name, doc string, get func(*T) *int32) *rules.Member {
	return member(name, doc, cel.IntType, func(of *T) ref.Val {
		if n := get(of); n != nil {
			return types.Int(*n)
		}
		return types.NullValue
	})
}

func truth[T any](name, doc string, get func(*T) bool) *rules.Member {
	return member(name, doc, cel.BoolType, func(of *T) ref.Val { return types.Bool(get(of)) })
}

// moment declares a time that may be missing.
func moment[T any](name, doc string, get func(*T) time.Time) *rules.Member {
	return member(name, doc, cel.TimestampType, func(of *T) ref.Val {
		if t := get(of); !t.IsZero() {
			return types.Timestamp{Time: t}
		}
		return types.NullValue
	})
}

func words[T any](name, doc string, get func(*T) map[string]string) *rules.Member {
	return member(name, doc, cel.MapType(cel.StringType, cel.StringType), func(of *T) ref.Val {
		return types.NewStringStringMap(types.DefaultTypeAdapter, get(of))
	})
}

// each declares a list of objects.
func each[T, E any](name, doc string, element func() *cel.Type, get func(*T) []E) *rules.Member {
	return member(name, doc, cel.ListType(element()), func(of *T) ref.Val {
		list := get(of)
		out := make([]ref.Val, len(list))
		for i := range list {
			out[i] = &view{element, &list[i]}
		}
		return types.NewRefValList(types.DefaultTypeAdapter, out)
	})
}

// Objects lists what guards and event rows can read, for the reference.
func Objects() []*rules.Object {
	return []*rules.Object{
		{Name: "Job", Type: jobType(), Doc: "A Job.", Members: jobMembers()},
		{Name: "JobSpec", Type: specType(), Doc: "The spec of a Job.", Members: []*rules.Member{
			count("minAvailable", "How many pods must run for the job to run: the size of its gang.", func(j *Job) int32 { return j.MinAvailable }),
			optional("minSuccess", "How many succeeded pods complete the job; may be missing.", func(j *Job) *int32 { return j.MinSuccess }),
			count("maxRetry", "How often the job may be restarted.", func(j *Job) int32 { return j.MaxRetry }),
		}},
		{Name: "JobStatus", Type: statusType(), Doc: "What is counted of a Job: its pods by phase, its retries.", Members: statusMembers()},
		{Name: "Task", Type: taskType(), Doc: "One task of a Job, with its pods counted.", Members: taskMembers()},
		{Name: "Pod", Type: podType(), Doc: "A pod of a Job.", Members: podMembers()},
		{Name: "Container", Type: containerType(), Doc: "A container of a pod.", Members: []*rules.Member{
			text("name", "Its name.", func(c *Container) string { return c.Name }),
			truth("init", "Whether it is an init container.", func(c *Container) bool { return c.Init }),
			optional("exitCode", "The code it ended with; missing while it has not ended.", func(c *Container) *int32 { return c.ExitCode }),
			text("waiting", `Why it waits, such as "ImagePullBackOff"; "" if it does not.`, func(c *Container) string { return c.Waiting }),
			text("terminated", `Why it ended, such as "OOMKilled"; "" if it has not.`, func(c *Container) string { return c.Terminated }),
			count("restarts", "How often it was restarted.", func(c *Container) int32 { return c.Restarts }),
			truth("ready", "Whether it is ready.", func(c *Container) bool { return c.Ready }),
		}},
		{Name: "PodGroup", Type: podGroupType(), Doc: "The PodGroup of a Job.", Members: []*rules.Member{
			text("name", "Its name.", func(g *PodGroup) string { return g.Name }),
			text("phase", "Pending, Inqueue, Running, Unknown or Completed.", func(g *PodGroup) string { return g.Phase }),
		}},
		{Name: "Queue", Type: queueType(), Doc: "A Queue, with its PodGroups counted.", Members: queueMembers()},
		{Name: "JobFlow", Type: flowType(), Doc: "A JobFlow, with its Jobs counted.", Members: flowMembers()},
		{Name: "CronJob", Type: cronJobType(), Doc: "A CronJob, with its Jobs counted.", Members: []*rules.Member{
			text("name", "Its name.", func(c *CronJob) string { return c.Name }),
			text("namespace", "Its namespace.", func(c *CronJob) string { return c.Namespace }),
			text("concurrencyPolicy", "Allow, Forbid or Replace.", func(c *CronJob) string { return c.ConcurrencyPolicy }),
			truth("suspend", "Whether no more Jobs are to be started.", func(c *CronJob) bool { return c.Suspend }),
			count("active", "Its Jobs that have not ended.", func(c *CronJob) int32 { return c.Active }),
			words("labels", "Its labels.", func(c *CronJob) map[string]string { return c.Labels }),
			words("annotations", "Its annotations.", func(c *CronJob) map[string]string { return c.Annotations }),
		}},
		{Name: "MadeJob", Type: madeJobType(), Doc: "A Job that a CronJob has made.", Members: []*rules.Member{
			text("name", "Its name.", func(j *MadeJob) string { return j.Name }),
			text("phase", "Its phase, such as Running; empty of a new one.", func(j *MadeJob) string { return j.Phase }),
			words("labels", "Its labels.", func(j *MadeJob) map[string]string { return j.Labels }),
			words("annotations", "Its annotations.", func(j *MadeJob) map[string]string { return j.Annotations }),
		}},
		{Name: "Change", Type: changeType(), Doc: "What happened to an object.", Members: []*rules.Member{
			truth("added", "Whether the object is new.", func(c *Change) bool { return c.Kind == Added }),
			truth("updated", "Whether the object existed before and still exists.", func(c *Change) bool { return c.Kind == Updated }),
			truth("deleted", "Whether the object no longer exists.", func(c *Change) bool { return c.Kind == Deleted }),
			text("action", "The action that a Command requests.", func(c *Change) string { return c.Action }),
		}},
	}
}

func jobMembers() []*rules.Member {
	return []*rules.Member{
		text("name", "Its name.", func(j *Job) string { return j.Name }),
		text("namespace", "Its namespace.", func(j *Job) string { return j.Namespace }),
		text("queue", "The queue it stands in.", func(j *Job) string { return j.Queue }),
		words("labels", "Its labels.", func(j *Job) map[string]string { return j.Labels }),
		words("annotations", "Its annotations.", func(j *Job) map[string]string { return j.Annotations }),
		moment("createdAt", "When it was created.", func(j *Job) time.Time { return j.CreatedAt }),
		truth("deleting", "Whether it is being deleted.", func(j *Job) bool { return j.Deleting }),
		member("replicas", "How many pods it wants, over all tasks.", cel.IntType, func(j *Job) ref.Val {
			var sum int64
			for i := range j.Tasks {
				sum += int64(j.Tasks[i].Replicas)
			}
			return types.Int(sum)
		}),
		each("tasks", "Its tasks.", taskType, func(j *Job) []Task { return j.Tasks }),
		each("pods", "Its pods, by name, those that are being deleted as well.", podType, func(j *Job) []Pod {
			if j.Pods == nil {
				return nil
			}
			return j.Pods()
		}),
	}
}

func statusMembers() []*rules.Member {
	return []*rules.Member{
		count("pending", "Pods that are pending.", func(j *Job) int32 { return j.Status.Pending }),
		count("running", "Pods that run.", func(j *Job) int32 { return j.Status.Running }),
		count("succeeded", "Pods that succeeded.", func(j *Job) int32 { return j.Status.Succeeded }),
		count("failed", "Pods that failed.", func(j *Job) int32 { return j.Status.Failed }),
		count("terminating", "Pods that are being deleted.", func(j *Job) int32 { return j.Status.Terminating }),
		count("unknown", "Pods in a phase that is not known.", func(j *Job) int32 { return j.Status.Unknown }),
		count("minAvailable", "The size of the gang that the status was made for.", func(j *Job) int32 { return j.Status.MinAvailable }),
		count("retryCount", "How often the job was restarted.", func(j *Job) int32 { return j.Status.RetryCount }),
		count("resumeCount", "How many of these restarts resumed an aborted job; they are no retries.", func(j *Job) int32 {
			return j.Status.ResumeCount
		}),
		count("version", "How often the job's pods were killed.", func(j *Job) int32 { return j.Status.Version }),
	}
}

func taskMembers() []*rules.Member {
	return []*rules.Member{
		text("name", "Its name.", func(t *Task) string { return t.Name }),
		count("replicas", "How many pods it wants.", func(t *Task) int32 { return t.Replicas }),
		optional("minAvailable", "How many of them the job needs; may be missing.", func(t *Task) *int32 { return t.MinAvailable }),
		count("maxRetry", "How many restarts of containers make it fail: 0 is 3, -1 is never.", func(t *Task) int32 { return t.MaxRetry }),
		count("pending", "Pods that are pending.", func(t *Task) int32 { return t.Pending }),
		count("running", "Pods that run.", func(t *Task) int32 { return t.Running }),
		count("succeeded", "Pods that succeeded.", func(t *Task) int32 { return t.Succeeded }),
		count("failed", "Pods that failed.", func(t *Task) int32 { return t.Failed }),
		count("terminating", "Pods that are being deleted.", func(t *Task) int32 { return t.Terminating }),
		count("unknown", "Pods in a phase that is not known.", func(t *Task) int32 { return t.Unknown }),
		count("restarts", "How often containers of its pending and running pods were restarted, in all.", func(t *Task) int32 {
			return t.Restarts
		}),
		moment("finishedAt", "When the last of its pods that have ended did so; may be missing.",
			func(t *Task) time.Time { return t.FinishedAt }),
	}
}

func podMembers() []*rules.Member {
	return []*rules.Member{
		text("name", "Its name.", func(p *Pod) string { return p.Name }),
		text("role", "The name of the task that it is of.", func(p *Pod) string { return p.Role }),
		text("node", `The node it is on; "" before it is bound.`, func(p *Pod) string { return p.Node }),
		words("labels", "Its labels.", func(p *Pod) map[string]string { return p.Labels }),
		words("annotations", "Its annotations.", func(p *Pod) map[string]string { return p.Annotations }),
		text("phase", `Pending, Running, Succeeded, Failed or Unknown; "" of a pod that was not there before.`, func(p *Pod) string {
			return p.Phase
		}),
		text("reason", `The reason of its status, such as "Evicted".`, func(p *Pod) string { return p.Reason }),
		text("message", "The message of its status.", func(p *Pod) string { return p.Message }),
		truth("deleting", "Whether it is being deleted.", func(p *Pod) bool { return p.Deleting }),
		moment("createdAt", "When it was created.", func(p *Pod) time.Time { return p.CreatedAt }),
		moment("startedAt", "When its node took it up; may be missing.", func(p *Pod) time.Time { return p.StartedAt }),
		moment("finishedAt", "When its last container ended; missing while it has not ended.", func(p *Pod) time.Time { return p.FinishedAt }),
		moment("deletedAt", "When its deletion was requested; may be missing.", func(p *Pod) time.Time { return p.DeletedAt }),
		count("version", "The job version that it was made in.", func(p *Pod) int32 { return p.Version }),
		each("containers", "All its containers, init containers first.", containerType, func(p *Pod) []Container { return p.Containers }),
	}
}

func queueMembers() []*rules.Member {
	return []*rules.Member{
		text("name", "Its name.", func(q *Queue) string { return q.Name }),
		text("parent", "The queue above it.", func(q *Queue) string { return q.Parent }),
		text("state", "Open, Closing, Closed or Unknown; empty of a new one, and of one that is not there.", func(q *Queue) string {
			return q.State
		}),
		truth("closedByParent", "Whether it was closed because its parent queue was closed.", func(q *Queue) bool {
			return q.ClosedByParent
		}),
		words("labels", "Its labels.", func(q *Queue) map[string]string { return q.Labels }),
		words("annotations", "Its annotations.", func(q *Queue) map[string]string { return q.Annotations }),
		count("podGroups", "Its PodGroups, in all phases.", func(q *Queue) int32 {
			return q.Pending + q.Inqueue + q.Running + q.Unknown +
				q.Completed
		}),
		count("pending", "PodGroups that wait to be admitted.", func(q *Queue) int32 { return q.Pending }),
		count("inqueue", "PodGroups that were admitted.", func(q *Queue) int32 { return q.Inqueue }),
		count("running", "PodGroups that run.", func(q *Queue) int32 { return q.Running }),
		count("unknown", "PodGroups of which part runs and part cannot.", func(q *Queue) int32 { return q.Unknown }),
		count("completed", "PodGroups that are done.", func(q *Queue) int32 { return q.Completed }),
	}
}

func flowMembers() []*rules.Member {
	return []*rules.Member{
		text("name", "Its name.", func(f *Flow) string { return f.Name }),
		text("namespace", "Its namespace.", func(f *Flow) string { return f.Namespace }),
		text("phase", "The phase that it is in; empty of a new one.", func(f *Flow) string { return f.Phase }),
		text("retain", "What becomes of its Jobs once all are Completed: retain or delete.", func(f *Flow) string { return f.Retain }),
		words("labels", "Its labels.", func(f *Flow) map[string]string { return f.Labels }),
		words("annotations", "Its annotations.", func(f *Flow) map[string]string { return f.Annotations }),
		count("flows", "How many Jobs it lists; only these are counted.", func(f *Flow) int32 { return f.Flows }),
		count("pending", "Jobs that are Pending.", func(f *Flow) int32 { return f.Pending }),
		count("running", "Jobs that are Running.", func(f *Flow) int32 { return f.Running }),
		count("completed", "Jobs that are Completed, or were and are gone.", func(f *Flow) int32 { return f.Completed }),
		count("failed", "Jobs that are Failed.", func(f *Flow) int32 { return f.Failed }),
		count("terminated", "Jobs that are Terminated.", func(f *Flow) int32 { return f.Terminated }),
		count("unknown", "Jobs that are there, and in no other phase that is counted.", func(f *Flow) int32 { return f.Unknown }),
	}
}
