package bucket

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// aJob makes a job from one text per task: "role node" for a task on a node, "role" for a waiting task. The texts are in the order of the
// task names.
func aJob(annotations map[string]string, tasks ...string) *model.Job {
	j := &model.Job{Key: "a/j", Annotations: annotations}
	for i, text := range tasks {
		role, node, placed := strings.Cut(text, " ")
		t := &model.Task{Key: fmt.Sprintf("a/j-%03d", i), Role: role, Job: j, Node: model.NoNode, Request: model.Resources{1000}}
		if placed {
			t.Status, t.NodeName, t.Node = model.Running, node, int32(node[len(node)-1]-'0')
		}
		j.Tasks = append(j.Tasks, t)
	}
	return j
}

func wish(affinity, apart, order string) map[string]string {
	out := map[string]string{}
	for key, text := range map[string]string{
		v1beta1.TaskTopologyAffinity: affinity, v1beta1.TaskTopologyAntiAffinity: apart, v1beta1.TaskTopologyTaskOrder: order,
	} {
		if text != "" {
			out[key] = text
		}
	}
	return out
}

// inBuckets returns the bucket of each task.
func inBuckets(x *Buckets, j *model.Job) (out []int) {
	for _, t := range j.Tasks {
		out = append(out, x.Index(t))
	}
	return out
}

func TestOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		annotations map[string]string
		tasks       []string
		want        []int
	}{
		{"nothing is said", nil, []string{"ps", "worker"}, []int{-1, -1}},
		{"two roles go together", wish("ps,worker", "", ""), []string{"ps", "worker", "other"}, []int{0, 0, -1}},
		{
			"those of a role keep apart, and share out the others", wish("ps,worker", "ps", ""),
			[]string{"ps", "ps", "worker", "worker"},
			[]int{0, 1, 0, 1},
		},
		{"a role goes together", wish("worker", "", ""), []string{"worker", "worker"}, []int{0, 0}},
		{"two roles keep apart", wish("", "ps,worker", ""), []string{"ps", "worker", "ps"}, []int{0, 1, 0}},
		{"a node is a bucket", wish("ps,worker", "", ""), []string{"worker", "ps n2", "ps n1", "ps n2"}, []int{1, 1, 0, 1}},
		{
			"order comes first, and one wish outweighs the other", wish("ps,worker", "ps", "worker,ps"),
			[]string{"ps", "ps", "worker"},
			[]int{0, 0, 0},
		},
		{"an unknown role", wish("ps,worker;chief", "", ""), []string{"ps", "worker"}, []int{-1, -1}},
		{"a role twice", wish("ps,ps", "", ""), []string{"ps"}, []int{-1}},
		{"an unknown role in order", wish("ps,worker", "", "ps,chief"), []string{"ps", "worker"}, []int{-1, -1}},
		{"empty words", wish(";ps, worker,;", "", ""), []string{"ps", "worker"}, []int{0, 0}},
	} {
		j := aJob(test.annotations, test.tasks...)
		if diff := cmp.Diff(test.want, inBuckets(Of(j), j)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	j := aJob(wish("ps,worker", "ps", ""), "ps n1", "worker", "worker", "worker", "ps n2", "other n2")
	x := Of(j)
	for _, test := range []struct {
		task int
		node int32
		free float64
		want int
	}{
		{1, 1, 9000, 3},  // the ps and both workers of its bucket
		{1, 1, 1000, 2},  // the ps and the task itself
		{3, 1, 1000, 2},  // the same, although it is the last task
		{1, 1, 900, 0},   // no room for the task
		{1, 3, 9000, 2},  // no ps there
		{2, 2, 9000, 2},  // the ps there and the task itself
		{0, 2, 9000, -1}, // a placed task: it avoids the other ps, and no worker is there
	} {
		task := j.Tasks[test.task]
		got := x.Fit(task, x.Index(task), test.node, model.Resources{test.free})
		if test.task == 0 {
			got -= 2 // the two tasks that would come with it
		}
		if got != test.want {
			t.Errorf("%s on n%d with %v free: %d, want %d", task.Key, test.node, test.free, got, test.want)
		}
	}
	j.Tasks[1].Status, j.Tasks[1].NodeName, j.Tasks[1].Node = model.Allocated, "n1", 1
	j.Version++
	if got := x.Fit(j.Tasks[3], x.Index(j.Tasks[3]), 1, model.Resources{9000}); got != 3 {
		t.Errorf("with one more on n1: %d, want 3", got)
	}
	if x.Waiting(x.Index(j.Tasks[3])) != 2 || x.Largest() != 3 || x.Waiting(-1) != 0 {
		t.Errorf("%d waited, the largest has %d", x.Waiting(x.Index(j.Tasks[3])), x.Largest())
	}
}

// plainly does what Of does, in the simplest way: each task looks at all buckets.
func plainly(j *model.Job) (out []int) {
	w, ok := wishesOf(j)
	in := map[*model.Task]int{}
	var all []*plain
	for _, t := range inTurn(j, w, ok) {
		best, most := len(all), math.MinInt
		for i, b := range all {
			if drawn := b.drawn(w, t); drawn >= 0 && (drawn > most || drawn == most && b.need < all[best].need) {
				best, most = i, drawn
			}
		}
		if best == len(all) {
			all = append(all, &plain{node: t.NodeName, roles: map[string]int{}})
		}
		b := all[best]
		in[t] = best
		if b.roles[t.Role]++; t.NodeName == "" {
			b.node, b.need = "none", b.need+need(t)
		}
	}
	for _, t := range j.Tasks {
		i, ok := in[t]
		if !ok {
			i = -1
		}
		out = append(out, i)
	}
	return out
}

// plain is a bucket of a node, or a bucket without a node.
type plain struct {
	node  string
	roles map[string]int
	need  float64
}

// drawn returns how strongly a bucket attracts a task. Only the bucket of its own node attracts a placed task.
func (b *plain) drawn(w *wishes, t *model.Task) int {
	switch t.NodeName {
	case "":
		return w.drawn(t.Role, b.roles)
	case b.node:
		return 0
	}
	return -1
}

// inTurn returns the tasks that the wishes mention. Placed tasks come first, by node.
func inTurn(j *model.Job, w *wishes, ok bool) (list []*model.Task) {
	key := func(t *model.Task) []string {
		if t.NodeName != "" {
			return []string{"0", t.NodeName, t.Key}
		}
		r := w.rank(t.Role)
		return []string{"1", fmt.Sprintf("%03d %03d", r[0], r[1]+9), t.Key}
	}
	for _, t := range j.Tasks {
		if ok && w.strength[t.Role] > 0 {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *model.Task) int { return slices.Compare(key(a), key(b)) })
	return list
}

func TestOfAsPlainly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lists := []string{"", "a", "a,b", "b,c;a", "a;b", "c,a,b", "b"}
		draw := func(name string) string { return rapid.SampledFrom(lists).Draw(t, name) }
		order := rapid.SampledFrom([]string{"", "b,a", "c"}).Draw(t, "order")
		tasks := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "a", "b", "a n1", "b n2", "c n1"}), 3, 20).Draw(t, "tasks")
		j := aJob(wish(draw("near"), draw("apart"), order), append(tasks, "a", "b", "c")...)
		for i, task := range j.Tasks {
			task.Request = model.Resources{float64(500 * (1 + i%3)), float64(i % 2 << 20)}
		}
		if diff := cmp.Diff(plainly(j), inBuckets(Of(j), j)); diff != "" {
			t.Fatalf("(-plainly +got)\n%s", diff)
		}
	})
}
