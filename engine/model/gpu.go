package model

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/crds/decode"
)

// maxNodeGPUs bounds what an annotation may claim, so that a typing error does not fill the memory.
const maxNodeGPUs = 1024

// readNodeGPUs is how many devices a node has.
func readNodeGPUs(d *Dims, o *corev1.Node, allocatable Resources, m *mistakes) int {
	if dim, ok := d.Find(GPUResource); ok && allocatable.Get(dim) > 0 {
		return int(min(allocatable[dim]/d.Unit(dim), maxNodeGPUs))
	}
	n, _ := readInt(o.Annotations, NodeGPUsAnnotation, intRange{0, maxNodeGPUs}, m)
	return int(n)
}

// readTaskGPUs fills in which devices a task wants, from its request and its pod's annotations, and
// which it holds. Where something is wrong it wants none.
func readTaskGPUs(d *Dims, t *Task, m *mistakes) {
	errs := len(m.errs)
	count, milli, memory := gpuWish(d, t, m)
	held := readDevices(t, count, m)
	if len(m.errs) > errs || count == 0 {
		return
	}
	t.wantGPUs(count, milli, memory)
	t.GPUModels = readModels(t.Annotations)
	t.GPUs, t.knownGPUs = held, held != nil
}

// wantGPUs says which devices a task wants, or has: so many, and so much of each.
func (t *Task) wantGPUs(count, milli, memory int64) {
	t.GPUCount, t.GPUMilli, t.GPUMemory, t.GPUTag = count, milli, memory, ""
	switch {
	case count == 1 && milli < WholeGPU:
		t.GPUTag = "share"
	case count > 0:
		t.GPUTag = strconv.FormatInt(count, 10) + "-gpu"
	}
}

// gpuWish is how many devices the task wants, and of each how many thousandths and how many bytes.
func gpuWish(d *Dims, t *Task, m *mistakes) (count, milli, memory int64) {
	count, hasCount := readInt(t.Annotations, GPUCountAnnotation, intRange{0, maxNodeGPUs}, m)
	milli, hasMilli := readInt(t.Annotations, GPUMilliAnnotation, intRange{1, WholeGPU}, m)
	memory = readQuantity(t.Annotations, GPUMemoryAnnotation, m)
	if !hasCount && (hasMilli || memory > 0) {
		count = 1
	}
	if !hasMilli && memory == 0 {
		milli = WholeGPU // else a share of the memory alone
	}
	if dim, ok := d.Find(GPUResource); ok && t.InitRequest.Get(dim) > 0 {
		whole := int64(t.InitRequest[dim] / d.Unit(dim))
		if hasCount && count != whole {
			m.add(annotation(GPUCountAnnotation), "is %d, but the containers request %s: %d", count, GPUResource, whole)
		}
		if hasMilli && milli != WholeGPU {
			m.add(annotation(GPUMilliAnnotation),
				"is %d, but the containers request whole devices (%s: %d); leave one of both away", milli, GPUResource, whole)
		}
		count, milli = whole, WholeGPU
	}
	return count, milli, memory
}

func readModels(annotations map[string]string) []string {
	var models []string
	for model := range strings.SplitSeq(annotations[GPUModelsAnnotation], "|") {
		if model = strings.TrimSpace(model); model != "" {
			models = append(models, model)
		}
	}
	slices.Sort(models)
	return slices.Compact(models)
}

// readDevices reads which devices a task with a node holds, in ascending order; nil where nobody wrote it.
func readDevices(t *Task, count int64, m *mistakes) []int {
	text, ok := t.Annotations[GPUsAnnotation]
	if !ok || t.NodeName == "" {
		return nil
	}
	devices := []int{}
	for part := range strings.SplitSeq(text, ",") {
		i, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || i < 0 || i >= maxNodeGPUs {
			m.add(annotation(GPUsAnnotation), "%q is no list of device numbers such as 0,1", text)
			return nil
		}
		devices = append(devices, i)
	}
	slices.Sort(devices)
	if n := len(slices.Compact(slices.Clone(devices))); n != len(devices) || int64(n) != count {
		m.add(annotation(GPUsAnnotation), "%q names %d different devices, but the pod wants %d", text, n, count)
		return nil
	}
	return devices
}

type intRange struct{ least, most int64 }

func readInt(annotations map[string]string, key string, within intRange, m *mistakes) (v int64, ok bool) {
	text, ok := annotations[key]
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || v < within.least || v > within.most {
		m.add(annotation(key), "%q is no whole number from %d to %d", text, within.least, within.most)
		return 0, false
	}
	return v, true
}

func readQuantity(annotations map[string]string, key string, m *mistakes) int64 {
	text, ok := annotations[key]
	if !ok {
		return 0
	}
	q, err := decode.Quantity(strings.TrimSpace(text))
	if err != nil || q.Sign() < 0 {
		m.add(annotation(key), "%q is no quantity such as 16Gi", text)
		return 0
	}
	return Bytes(q)
}

// newGPUs makes the devices of a node, all free.
func newGPUs(n *Node) []GPU {
	if n.gpuCount == 0 {
		return nil
	}
	gpus := make([]GPU, n.gpuCount)
	for i := range gpus {
		gpus[i] = GPU{
			Index: i, Model: n.GPUModel, Capacity: WholeGPU, Free: WholeGPU, Memory: n.gpuMemory, MemoryFree: n.gpuMemory,
		}
	}
	return gpus
}

// holdGPUs counts what a task holds of its devices, sign 1 to hold and -1 to let go. Devices that the node lacks
// are passed over: a pod may say that it holds them, and the node may have lost them.
func holdGPUs(gpus []GPU, t *Task, sign int64) {
	for _, i := range t.GPUs {
		if i >= 0 && i < len(gpus) {
			gpus[i].Free -= sign * t.GPUMilli
			gpus[i].MemoryFree -= sign * t.deviceMemory(&gpus[i])
			gpus[i].TaskCount += int(sign)
		}
	}
}

// deviceMemory is what a task takes of a device's memory: what it asked for, else all where it takes the
// whole device; 0 where the memory is unknown.
func (t *Task) deviceMemory(g *GPU) int64 {
	if g.Memory == 0 || t.GPUMemory == 0 && t.GPUMilli >= g.Capacity {
		return g.Memory
	}
	return t.GPUMemory
}

// guessGPUs finds devices for the tasks on a row that hold some, though nobody wrote down which: in order of their
// creation, each the lowest devices that are free enough, as a kubelet would give them. It depends on
// nothing but who is there now, so the order in which objects arrive does not matter.
func (c *Cluster) guessGPUs(row int32) {
	var unknown []*Task
	free := newGPUs(c.Nodes.Rows[row])
	for _, t := range c.Nodes.Tasks[row] {
		switch {
		case t.GPUCount == 0 || t.Status == Pipelined:
		case t.knownGPUs:
			holdGPUs(free, t, 1)
		default:
			unknown = append(unknown, t)
		}
	}
	slices.SortStableFunc(unknown, func(a, b *Task) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Key, b.Key))
	})
	for _, t := range unknown {
		var devices []int
		for i := range free {
			if int64(len(devices)) < t.GPUCount && free[i].Free >= t.GPUMilli && free[i].MemoryFree >= t.deviceMemory(&free[i]) {
				devices = append(devices, i)
			}
		}
		if !slices.Equal(devices, t.GPUs) {
			to := t.spot()
			to.gpus = devices
			c.move(t, to)
		}
		holdGPUs(free, t, 1)
	}
}
