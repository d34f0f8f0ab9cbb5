package controller

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/sim/corpus"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// replay runs a check over the rows of a recorded table, and prints how many passed. A row for whose id testdata/deliberate.yaml gives a
// reason must differ.
func replay[T any](t *testing.T, table string, check func(t *testing.T, row T) string) {
	t.Helper()
	folder := corpus.Dir(t, "conformance")
	text, err := os.ReadFile("testdata/deliberate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	if err := yaml.UnmarshalStrict(text, &reasons); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(folder, "tables", table+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	passed, deliberate, total := 0, 0, 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row struct{ ID string }
		var data T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(lines.Bytes(), &data); err != nil {
			t.Fatalf("%s: %v", row.ID, err)
		}
		total++
		diff := check(t, data)
		_, differs := reasons[row.ID]
		switch {
		case differs && diff == "":
			t.Errorf("%s agrees, and testdata/deliberate.yaml says that it does not", row.ID)
		case differs:
			deliberate++
		case diff != "":
			t.Errorf("%s (-recorded +ours):\n%s", row.ID, diff)
		default:
			passed++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if total == 0 {
		t.Errorf("%s has no rows", table)
	}
	t.Logf("%s: %d passed, %d deliberate of %d", table, passed, deliberate, total)
}

// TestRecordedPods compares the pods with pods that Volcano created.
func TestRecordedPods(t *testing.T) {
	type row struct {
		Index         int
		Job           batchv1alpha1.Job
		JobForwarding bool
		Pod           corev1.Pod
		PodGroup      *schedulingv1beta1.PodGroup
		TaskSpec      batchv1alpha1.TaskSpec
		Template      corev1.PodTemplateSpec
	}
	random := regexp.MustCompile(`-[a-z0-9]{12}$`)
	replay(t, "job-create-pod", func(_ *testing.T, r row) string {
		task := r.TaskSpec
		task.Template = r.Template
		task.Name = r.Pod.Annotations[batchv1alpha1.TaskSpecKey]
		group := objects.GroupName(&r.Job)
		if r.PodGroup != nil {
			group = r.PodGroup.Name
		}
		got, err := objects.Pod(&r.Job, objects.PodPlan{Task: &task, Index: r.Index, Group: group, Forwarded: r.JobForwarding})
		if err != nil {
			return err.Error()
		}
		want := r.Pod.DeepCopy()
		for _, pod := range []*corev1.Pod{got, want} { // the end of a volume's name is arbitrary
			for i := range pod.Spec.Volumes {
				pod.Spec.Volumes[i].Name = random.ReplaceAllString(pod.Spec.Volumes[i].Name, "-x")
			}
			for i := range pod.Spec.Containers {
				for j := range pod.Spec.Containers[i].VolumeMounts {
					m := &pod.Spec.Containers[i].VolumeMounts[j]
					m.Name = random.ReplaceAllString(m.Name, "-x")
				}
			}
		}
		return cmp.Diff(want, got, cmpopts.EquateEmpty())
	})
}

// TestRecordedMinResources compares sums with those of Volcano. The records do not contain the priorities of the tasks: one of the two
// orders must give the recorded sum.
func TestRecordedMinResources(t *testing.T) {
	type row struct {
		JobMinAvailable int32
		MinResources    corev1.ResourceList
		TasksPriority   []batchv1alpha1.TaskSpec
	}
	replay(t, "job-pg-minresources", func(_ *testing.T, r row) string {
		var diff string
		for _, first := range []string{"master", "worker"} {
			job := &batchv1alpha1.Job{Spec: batchv1alpha1.JobSpec{MinAvailable: r.JobMinAvailable, Tasks: r.TasksPriority}}
			for i := range job.Spec.Tasks {
				job.Spec.Tasks[i].Template.Spec.PriorityClassName = job.Spec.Tasks[i].Name
			}
			got := objects.MinResources(job, func(class string) int32 { return int32(strings.Count(class, first)) })
			if apiequality.Semantic.DeepEqual(got, r.MinResources) || len(got)+len(r.MinResources) == 0 {
				return ""
			}
			diff = cmp.Diff(amounts(r.MinResources), amounts(got))
		}
		return diff
	})
}

// amounts converts a list of resources into a form that can be compared and read.
func amounts(of corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, amount := range of {
		out[string(name)] = amount.String()
	}
	return out
}

// TestRecordedSubGroups compares the partitions in the PodGroup with those of Volcano.
func TestRecordedSubGroups(t *testing.T) {
	type row struct {
		SubGroupPolicy schedulingv1beta1.SubGroupPolicySpec
		TaskSpec       batchv1alpha1.TaskSpec
	}
	replay(t, "job-subgroup-policy", func(_ *testing.T, r row) string {
		return cmp.Diff(r.SubGroupPolicy, objects.SubGroup(&r.TaskSpec), cmpopts.EquateEmpty())
	})
}
