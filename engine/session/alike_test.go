package session

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/verdict"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// told returns all amounts of a node as text.
func told(c *model.Cluster, row int32) string {
	n := &c.Nodes
	text := fmt.Sprint(n.TaskCount[row], n.Unasked[model.CPU][row], n.Unasked[model.Memory][row], n.GPUs[row], n.Rows[row].GPUModel)
	for dim := range n.Allocatable {
		text += fmt.Sprint(" ", n.Allocatable[dim][row], n.Used[dim][row], n.Releasing[dim][row], n.Pipelined[dim][row])
	}
	return text
}

// TestNodesAlikeHaveOneNumber checks that nodes have the same number exactly if they have the same amounts, after any changes.
func TestNodesAlikeHaveOneNumber(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := model.NewCluster(model.Options{Volumes: volume.New})
		var deltas []model.Delta
		add := func(o any) { deltas = append(deltas, model.Delta{Object: o}) }
		add(aQueue("q"))
		add(aGroup("g", "q"))
		const nodes = 8
		for i := range nodes {
			add(aNode(fmt.Sprintf("n%d", i), drawOf(t, "allocatable", "cpu=8 memory=8Gi pods=9", "cpu=8 memory=8Gi pods=9 nvidia.com/gpu=2",
				"cpu=4 pods=9 volcano.sh/gpu-number=2")))
		}
		pods := rapid.IntRange(1, 12).Draw(t, "pods")
		for i := range pods {
			with := []func(*corev1.Pod){inGroup("g")}
			if rapid.Bool().Draw(t, "runs") {
				with = append(with, runningOn(fmt.Sprintf("n%d", rapid.IntRange(0, nodes-1).Draw(t, "on"))))
			}
			add(aPod(fmt.Sprintf("p%02d", i), drawOf(t, "request", "", "cpu=1", "memory=1Gi", "cpu=1 memory=1Gi nvidia.com/gpu=1"), with...))
		}
		if err := c.Apply(deltas...); err != nil {
			t.Fatal(err)
		}
		a := &verdict.Alike{Nodes: &c.Nodes}
		x := c.Begin()
		for i := range 2 * pods {
			task := c.Tasks[fmt.Sprintf("a/p%02d", i%pods)]
			row := int32(rapid.IntRange(0, nodes-1).Draw(t, "row"))
			var devices []int
			if task.GPUCount > 0 && len(c.Nodes.GPUs[row]) > 0 {
				devices = []int{rapid.IntRange(0, len(c.Nodes.GPUs[row])-1).Draw(t, "device")}
			}
			switch {
			case task.Status == model.Pending && rapid.Bool().Draw(t, "pipelined"):
				x.Pipeline(task, row, devices)
			case task.Status == model.Pending:
				x.Allocate(task, row, devices)
			case task.Status == model.Allocated && rapid.Bool().Draw(t, "taken back"):
				x.Unplace(task)
			case task.Status == model.Running:
				x.Evict(task)
			}
			oneNumberEach(t, c, a)
		}
	})
}

func oneNumberEach(t *rapid.T, c *model.Cluster, a *verdict.Alike) {
	numbers, texts := map[string]int32{}, map[int32]string{}
	for row := range int32(len(c.Nodes.Rows)) {
		text, number := told(c, row), a.Of(row)
		if was, ok := numbers[text]; ok && was != number {
			t.Fatalf("nodes that tell %s have the numbers %d and %d", text, was, number)
		}
		if was, ok := texts[number]; ok && was != text {
			t.Fatalf("number %d is of %s and of %s", number, was, text)
		}
		numbers[text], texts[number] = number, text
	}
}

// TestNumbersBeginAnew checks that there are at most as many numbers as allowed, and that results of old numbers are not used for new ones.
func TestNumbersBeginAnew(t *testing.T) {
	t.Parallel()
	c := aCluster(t, aNode("n1", "cpu=9 pods=9"), aNode("n2", "cpu=9 pods=9"), aQueue("q"), aGroup("g", "q"), aPod("p", "cpu=1"))
	s := begun(t, c, "scores: [{name: idle, expression: node.idle.cpu}]")
	for i := range 3 * verdict.MostAlike(2) {
		if errs := c.Apply(model.Delta{Object: aNode("n2", fmt.Sprintf("cpu=%dm pods=9", 1000+i))}); errs != nil {
			t.Fatal(errs)
		}
		choice, ok := s.Class(c.Tasks["a/p"]).Choose()
		best := max(9, float64(1000+i)/1000)
		if !ok || choice.Score != best {
			t.Fatalf("change %d: chosen with %v, want %v", i, choice.Score, best)
		}
		if n := len(s.verdicts.Alike.Ends); n > verdict.MostAlike(2) {
			t.Fatalf("%d numbers", n)
		}
	}
	if s.verdicts.Alike.Epoch < 3 {
		t.Errorf("the numbers began anew %d times", s.verdicts.Alike.Epoch)
	}
}
