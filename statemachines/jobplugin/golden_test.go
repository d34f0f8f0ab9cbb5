package jobplugin_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata/*.txtar")

// TestGolden compares what plugins add to pods, and the objects that they create, with files. The section job of a file is a Job. want
// contains the changes of its pods (the first and the last of each task) and the objects.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			set := shipped(t)
			if len(archive.Files) != 2 || archive.Files[0].Name != "job" || archive.Files[1].Name != "want" {
				t.Fatal("a file has the sections job and want")
			}
			got := ofJob(t, set, archive.Files[0].Data)
			if *update {
				archive.Files[1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func shipped(t *testing.T) *jobplugin.Set {
	t.Helper()
	set, issues := jobplugin.Default()
	if set == nil || len(issues) > 0 {
		t.Fatal(issues.Error())
	}
	return set
}

// made matches the parts of keys that always differ.
var made = regexp.MustCompile(`(id_rsa(?:\.pub)?|authorized_keys): \S{300,}`)

func ofJob(t *testing.T, set *jobplugin.Set, data []byte) string {
	t.Helper()
	job := &batchv1alpha1.Job{}
	if err := yaml.UnmarshalStrict(data, job); err != nil {
		t.Fatal(err)
	}
	run, err := set.For(job)
	if err != nil {
		return fmt.Sprintf("error: %v\n", err)
	}
	var out strings.Builder
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		for n := range int(task.Replicas) {
			if n == 0 || n == int(task.Replicas)-1 {
				plan := objects.PodPlan{Task: task, Index: n, Group: "group"}
				plain, err := objects.Pod(job, plan)
				if err != nil {
					t.Fatal(err)
				}
				plan.Plugins = run
				pod, err := objects.Pod(job, plan)
				if err != nil {
					fmt.Fprintf(&out, "error: %v\n", err)
					continue
				}
				fmt.Fprintf(&out, "# %s\n%s", pod.Name, written(t, changed(plain, pod)))
			}
		}
	}
	all, err := run.Objects()
	if err != nil {
		return out.String() + fmt.Sprintf("error: %v\n", err)
	}
	for _, m := range all {
		object, err := m.Render()
		if err != nil {
			fmt.Fprintf(&out, "error: %v\n", err)
			continue
		}
		fmt.Fprintf(&out, "# %s %s of %s\n%s", m.Kind, m.Name, m.Plugin, made.ReplaceAllString(written(t, object.Object), "$1: made"))
	}
	return out.String()
}

// changed returns what plugins changed in a pod.
func changed(plain, pod *corev1.Pod) any {
	for key := range plain.Annotations {
		if pod.Annotations[key] == plain.Annotations[key] {
			delete(pod.Annotations, key)
		}
	}
	for key := range plain.Labels {
		if pod.Labels[key] == plain.Labels[key] {
			delete(pod.Labels, key)
		}
	}
	return map[string]any{"annotations": pod.Annotations, "labels": pod.Labels, "spec": pod.Spec}
}

func written(t *testing.T, v any) string {
	t.Helper()
	data, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
