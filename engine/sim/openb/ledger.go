package openb

import (
	"fmt"
	"slices"
	"strings"
)

// ledger counts the free resources of the cluster independently of the engine, to check the engine's decisions.
type ledger struct {
	nodes  []Node
	cpu    []int64   // free CPU in thousandths of a core, by node
	memory []int64   // free memory in MiB, by node
	gpus   [][]int64 // free GPU in thousandths, by node and device
}

func newLedger(nodes []Node) *ledger {
	l := &ledger{nodes: nodes}
	for _, n := range nodes {
		l.cpu = append(l.cpu, n.CPUMilli)
		l.memory = append(l.memory, n.MemoryMiB)
		l.gpus = append(l.gpus, slices.Repeat([]int64{wholeDevice}, n.GPUs))
	}
	return l
}

// free returns the sum over the devices of a node.
func (l *ledger) free(node int) int64 {
	sum := int64(0)
	for _, f := range l.gpus[node] {
		sum += f
	}
	return sum
}

// misfit returns why a pod does not fit on a node and the given devices, or on any of its devices if none are given. "": it fits.
func (l *ledger) misfit(node int, p Pod, devices []int) string {
	if l.cpu[node] < p.CPUMilli {
		return fmt.Sprintf("%d of %d thousandths of a core are free", l.cpu[node], p.CPUMilli)
	}
	if l.memory[node] < p.MemoryMiB {
		return fmt.Sprintf("%d of %d MiB are free", l.memory[node], p.MemoryMiB)
	}
	if p.GPUs == 0 {
		return ""
	}
	if p.Models != "" && !slices.Contains(strings.Split(p.Models, "|"), l.nodes[node].Model) {
		return fmt.Sprintf("its GPUs are %s, not %s", l.nodes[node].Model, p.Models)
	}
	fit := 0
	for d, free := range l.gpus[node] {
		if free >= p.GPUMilli && (devices == nil || slices.Contains(devices, d)) {
			fit++
		}
	}
	if int64(fit) < p.GPUs {
		return fmt.Sprintf("%d of %d devices have %d thousandths free", fit, p.GPUs, p.GPUMilli)
	}
	return ""
}

// take allocates a node and its devices to a pod that fits.
func (l *ledger) take(node int, p Pod, devices []int) {
	l.cpu[node] -= p.CPUMilli
	l.memory[node] -= p.MemoryMiB
	for _, d := range devices {
		l.gpus[node][d] -= p.GPUMilli
	}
}
