package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// cannotRead states that the scheduler leaves an object out because of its mistakes.
func cannotRead(why string) string { return "the scheduler cannot read it and leaves it out: " + why }

// leftOutCause states that pods of a job are left out, so that fewer pods than its gang needs can be placed. It is "" for a job that has
// enough pods without them.
func leftOutCause(x *Cycle, j *model.Job) string {
	if j.TaskCount() >= max(1, j.MinMember) {
		return ""
	}
	pods := slices.DeleteFunc(x.cluster.Past.Unread.PodsOf(j.Key), func(pod string) bool { return !isOut(x, "Pod", pod) })
	if len(pods) == 0 {
		return ""
	}
	why := x.cluster.Past.Unread.Why("Pod", pods[0])
	if len(pods) == 1 {
		return fmt.Sprintf("pod %s is left out, because the scheduler cannot read it: %s", pods[0], why)
	}
	return fmt.Sprintf("%s are left out, because the scheduler cannot read them, such as %s: %s", Count(len(pods), "pod"), pods[0], why)
}

// leftOut explains the objects of a kind that the scheduler leaves out and whose names match fits; "" if there are none.
func leftOut(x *Cycle, kind string, fits func(key string) bool) string {
	var out strings.Builder
	of := readAs(kind)
	for _, name := range x.cluster.Past.Unread.Names(of) {
		if fits(name) && isOut(x, of, name) {
			printf(&out, "%s %s\n  cause  %s\n", kind, name, cannotRead(x.cluster.Past.Unread.Why(of, name)))
		}
	}
	return out.String()
}

// readAs returns the kind of the objects in the API that the scheduler reads for a kind of this package.
func readAs(kind string) string {
	return map[string]string{Job: "PodGroup", Pod: "Pod", Queue: "Queue"}[kind]
}

// isOut reports whether an object with mistakes is left out as a whole. Only the wrong fields of a pod on a node are.
func isOut(x *Cycle, kind, name string) bool {
	switch kind {
	case "Pod":
		return x.cluster.Tasks[name] == nil
	case "PodGroup":
		j := x.cluster.Jobs[name]
		return j == nil || j.Orphan
	default:
		return x.cluster.Queues[name] == nil
	}
}

// leftOutObject explains an object of a kind that is left out; nil: it is not.
func leftOutObject(x *Cycle, out *Explanation, key string) *Explanation {
	of := readAs(out.Kind)
	why := x.cluster.Past.Unread.Why(of, key)
	if why == "" || !isOut(x, of, key) {
		return nil
	}
	out.Text = sprintf("%s %s\n  cause  %s\n", out.Kind, key, cannotRead(why))
	return out
}

// fieldsLeftOut states which fields of an object are not used; "" if all are.
func fieldsLeftOut(x *Cycle, kind, name string) string {
	why := x.cluster.Past.Unread.Why(kind, name)
	if why == "" {
		return ""
	}
	return sprintf("  not read: %s\n", why)
}
