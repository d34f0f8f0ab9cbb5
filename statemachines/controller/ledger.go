package controller

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// The ledger of a job's status lists pods to delete, which its phase already treats as deleted. The ledger is written with the phase,
// before the first pod is deleted. A controller that crashes in between then continues after its restart. The entries are in
// status.controlledResources, next to those of Volcano.
//
//	celsius.dev/kill = 3/finished             pods created before version 3, except finished ones, and the PodGroup
//	celsius.dev/restart.pod.job-a-0 = 2/none  the pod of that name created before the second retry
//	celsius.dev/restart.task.a = 2/none       those of the task
//	celsius.dev/restart.partition.a.1 = 2/none   those of the task's partition 1
const (
	killKey    = "celsius.dev/kill"
	restartKey = "celsius.dev/restart."
)

// countResumes adds to the stored number of resumes.
func countResumes(s *batchv1alpha1.JobStatus, more int) {
	if more == 0 {
		return
	}
	if s.ControlledResources == nil {
		s.ControlledResources = map[string]string{}
	}
	s.ControlledResources[objects.ResumesKey] = strconv.Itoa(int(objects.Resumes(s)) + more)
}

// The possible targets of an action of a machine.
const (
	ofPod       = "pod"
	ofTask      = "task"
	ofPartition = "partition"
)

// retainFinished keeps pods that succeeded or failed, and their logs.
const retainFinished = "finished"

// debt is one entry of the ledger.
type debt struct {
	key string
	// number is the first version whose pods stay. For a restart it is the first retryCount.
	number int32
	// retain is retainFinished if finished pods stay, too.
	retain string
	// scope is the target of a restart; "" for a kill.
	scope string
}

func (d debt) kills() bool { return d.key == killKey }

// owes reports whether a debt requires the deletion of a pod.
func (d debt) owes(pod *corev1.Pod) bool {
	if d.retain == retainFinished && finished(pod) {
		return false
	}
	if d.kills() {
		return podVersion(pod) < d.number
	}
	return podRetry(pod) < d.number && slices.Contains(scopesOf(pod), d.scope)
}

// scopesOf lists the scopes that contain a pod.
func scopesOf(pod *corev1.Pod) []string {
	task := pod.Annotations[batchv1alpha1.TaskSpecKey]
	return []string{
		ofPod + "." + pod.Name,
		ofTask + "." + task,
		ofPartition + "." + task + "." + pod.Labels[batchv1alpha1.TaskPartitionID],
	}
}

// scopeOf returns the scope of an action on a pod, task or partition, for the pod of the event.
func scopeOf(of string, pod *corev1.Pod) string {
	for _, scope := range scopesOf(pod) {
		if strings.HasPrefix(scope, of+".") {
			return scope
		}
	}
	return ""
}

// debts reads the ledger. It ignores entries that it cannot read, because they are not ours.
func debts(s *batchv1alpha1.JobStatus) []debt {
	var out []debt
	for _, key := range slices.Sorted(maps.Keys(s.ControlledResources)) {
		value := s.ControlledResources[key]
		scope, restarts := strings.CutPrefix(key, restartKey)
		number, retain, _ := strings.Cut(value, "/")
		n, err := strconv.ParseInt(number, 10, 32)
		switch {
		case err != nil:
		case key == killKey:
			out = append(out, debt{key: key, number: int32(n), retain: retain})
		case restarts:
			out = append(out, debt{key: key, number: int32(n), retain: retain, scope: scope})
		}
	}
	return out
}

// owe writes an entry of the ledger.
func owe(s *batchv1alpha1.JobStatus, d debt) {
	if s.ControlledResources == nil {
		s.ControlledResources = map[string]string{}
	}
	s.ControlledResources[d.key] = fmt.Sprintf("%d/%s", d.number, d.retain)
}

// paid removes an entry of the ledger.
func paid(s *batchv1alpha1.JobStatus, key string) {
	delete(s.ControlledResources, key)
	if len(s.ControlledResources) == 0 {
		s.ControlledResources = nil
	}
}
