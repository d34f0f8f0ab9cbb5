package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// show prints a part of the world.
func (s *scenario) show(args []string) error {
	rows := map[string]func(*World) [][]string{
		"queues": queueRows, "nodes": nodeRows, "jobs": jobRows, "pods": podRows, "timeline": jobRunRows, "volumes": volumeRows,
		"asks": s.askRows,
	}
	show, ok := rows[args[0]]
	if !ok {
		return fmt.Errorf("%q cannot be shown; there are %s", args[0], strings.Join(sortedKeys(rows), ", "))
	}
	s.print(explain.Columns("", show(s.inWorld())))
	return nil
}

// askRows returns the questions for extenders in the last plan.
func (s *scenario) askRows(*World) [][]string {
	rows := [][]string{{"EXTENDER", "ABOUT", "NODES"}}
	if len(s.plans) > 0 {
		for _, a := range s.plans[len(s.plans)-1].Asks {
			rows = append(rows, []string{a.URL, a.Of.String(), strings.Join(a.Nodes, " ")})
		}
	}
	return rows
}

func queueRows(w *World) [][]string {
	rows := [][]string{{"QUEUE", "STATE", "JOBS", "ALLOCATED"}}
	for _, name := range sortedKeys(w.cluster.Queues) {
		q := summariseQueue(w.cluster, w.cluster.Queues[name])
		rows = append(rows, []string{q.Queue, q.State, phaseCounts(q.Jobs), q.text})
	}
	return rows
}

func nodeRows(w *World) [][]string {
	c := w.cluster
	rows := [][]string{{"NODE", "STATE", "PODS", "IDLE"}}
	for _, name := range sortedKeys(c.Nodes.Index) {
		row := c.Nodes.Index[name]
		idle := c.Dims.Text(c.Nodes.IdleOf(row)) + gpusFree(c.Nodes.GPUs[row])
		rows = append(rows, []string{name, explain.NodeState(c.Nodes.Rows[row]), fmt.Sprint(c.Nodes.TaskCount[row]), idle})
	}
	return rows
}

// gpusFree returns the free part of each device, in thousandths.
func gpusFree(gpus []model.GPU) string {
	if len(gpus) == 0 {
		return ""
	}
	var free []string
	for _, g := range gpus {
		free = append(free, fmt.Sprint(g.Free))
	}
	return ", gpus " + strings.Join(free, " ")
}

func jobRows(w *World) [][]string {
	titles := explain.TitlesOf(w.cluster)
	rows := [][]string{{"JOB", "QUEUE", "PHASE", "MIN", "PODS"}}
	for _, key := range sortedKeys(w.cluster.Jobs) {
		if j := w.cluster.Jobs[key]; !j.Orphan {
			rows = append(rows, []string{titles.Of(key), j.QueueName, j.Phase, fmt.Sprint(j.MinMember), explain.StatusCounts(j)})
		}
	}
	return rows
}

func podRows(w *World) [][]string {
	rows := [][]string{{"POD", "STATUS", "NODE", "ASKS"}}
	for _, key := range sortedKeys(w.cluster.Tasks) {
		t := w.cluster.Tasks[key]
		node := "-"
		if t.Node != model.NoNode {
			node = w.cluster.Nodes.Rows[t.Node].Name
		}
		if slices.Contains([]model.Status{model.Succeeded, model.Failed}, t.Status) {
			node = "-"
		}
		rows = append(rows, []string{key, t.Shown().String(), node, w.cluster.Dims.Text(shown(t.Request))})
	}
	return rows
}

// volumeRows returns volumes with their claims, then the claims without a volume.
func volumeRows(w *World) [][]string {
	rows := [][]string{{"VOLUME", "CLASS", "CLAIM"}}
	for _, id := range w.sorted(model.PersistentVolume) {
		pv, claim := w.objects[id].(*corev1.PersistentVolume), "-"
		if ref := pv.Spec.ClaimRef; ref != nil {
			claim = model.Key(ref.Namespace, ref.Name)
		}
		rows = append(rows, []string{pv.Name, cmp.Or(pv.Spec.StorageClassName, "-"), claim})
	}
	for _, id := range w.sorted(model.VolumeClaim) {
		claim := w.objects[id].(*corev1.PersistentVolumeClaim)
		if claim.Spec.VolumeName == "" {
			rows = append(rows, []string{"-", cmp.Or(storageClassOf(claim), "-"), objectKey(claim)})
		}
	}
	return rows
}
