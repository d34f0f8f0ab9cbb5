package values

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// sum adds the amounts of the members of an object.
func (x *Values) sum(a *policy.Attribute, of ref.Val) ref.Val {
	totals := map[string]*policy.Total{}
	for _, m := range x.members(a, language.Owner(of)) {
		if w := a.Args["when"]; w != nil {
			if held := Eval(w, m); held != types.True {
				x.faultIn(a, m, held)
				continue
			}
		}
		key := ""
		if e := a.Args["by"]; e != nil {
			by, ok := Eval(e, m).(types.String)
			if !ok {
				x.faultIn(a, m, Eval(e, m))
				continue
			}
			key = string(by)
		}
		v := Eval(a.Args["of"], m)
		if types.IsError(v) {
			x.faultIn(a, m, v)
			continue
		}
		if totals[key] == nil {
			totals[key] = &policy.Total{}
		}
		totals[key].Add(v, 1)
	}
	if a.Args["by"] == nil {
		return policy.Sum(x.World(), a.Type, totals[""])
	}
	out := map[ref.Val]ref.Val{}
	for key, t := range totals {
		out[types.String(key)] = policy.Sum(x.World(), a.Type.Parameters()[1], t)
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, out)
}

// members returns frames for the members of an object: the jobs of a queue, the tasks of a namespace, a queue or a job, and everything for
// the cluster. Jobs without a PodGroup, and nodes that are not ready, are not members.
func (x *Values) members(a *policy.Attribute, of any) []*language.Frame {
	var out []*language.Frame
	switch a.Over {
	case "queue":
		for _, q := range x.c.QueuesByName() {
			out = append(out, x.Frame().OfQueue(q))
		}
		return out
	case "node":
		for _, row := range x.c.Nodes.ByOrder() {
			if x.c.Nodes.Rows[row].Ready {
				out = append(out, x.Frame().OnNode(row))
			}
		}
		return out
	}
	for _, j := range x.c.JobsByKey() {
		if !belongs(j, of) {
			continue
		}
		if a.Over == "job" && !j.Orphan {
			out = append(out, x.Frame().OfJobAlone(j))
		}
		for _, t := range j.Tasks {
			if a.Over == "task" {
				out = append(out, x.Frame().OfTaskAlone(t))
			}
		}
	}
	return out
}

// belongs reports whether a job belongs to an object; all jobs belong to the cluster.
func belongs(j *model.Job, of any) bool {
	switch o := of.(type) {
	case *model.Queue:
		return j.Queue == o
	case *model.Job:
		return j == o
	case *model.Namespace:
		return j.Namespace == o.Name
	}
	return true
}
