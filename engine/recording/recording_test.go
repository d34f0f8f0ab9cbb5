package recording_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/recording"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// recorded makes a recording of three cycles: one job gets a node, and another waits for it.
func recorded(tb testing.TB) (folder string) {
	tb.Helper()
	folder = tb.TempDir()
	r := recording.New(recording.Options{Folder: folder}, []string{"celsius"}, logr.Discard())
	p, issues := policy.Default()
	if issues.Err() != nil {
		tb.Fatal(issues)
	}
	c := model.NewCluster(model.Options{Volumes: volume.New, SchedulerNames: []string{"celsius"}})
	apply := func(objects ...any) {
		var deltas []model.Delta
		for _, o := range objects {
			deltas = append(deltas, model.Delta{Object: o})
		}
		if errs := c.Apply(deltas...); len(errs) > 0 {
			tb.Fatal(errs)
		}
		r.Applied(deltas)
	}
	cpus := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("10")}
	apply(&v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1beta1.QueueSpec{Weight: 1}}, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
			Allocatable: cpus, Capacity: cpus, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	})
	d, now := engine.Decider{}, time.Date(2026, 1, 1, 12, 0, 0, 5, time.UTC)
	for n, name := range []string{"train", "sweep", ""} {
		if name != "" {
			apply(&v1beta1.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(now.Truncate(time.Second))},
				Spec:       v1beta1.PodGroupSpec{MinMember: 1, Queue: "default"},
			}, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "default", Name: name + "-0", UID: "u", Annotations: map[string]string{v1beta1.KubeGroupNameAnnotationKey: name},
				},
				Spec: corev1.PodSpec{SchedulerName: "celsius", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")},
				}}}},
			})
		}
		r.Decided(uint64(n)+1, c, p, d.Decide(c, p, now)) //nolint:gosec // it counts to three
		now = now.Add(time.Second)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	r.Run(ctx)
	return folder
}

// file returns the name and the text of the only file of a recording.
func file(tb testing.TB, folder string) (name, text string) {
	tb.Helper()
	files, err := recording.Files(folder)
	if err != nil || len(files) != 1 {
		tb.Fatal(files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		tb.Fatal(err)
	}
	packed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	out, err := io.ReadAll(packed)
	if err != nil {
		tb.Fatal(err)
	}
	return files[0], string(out)
}

func pack(tb testing.TB, name, text string) {
	tb.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, text); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// TestPlay decides a recording again, first unchanged and then changed.
func TestPlay(t *testing.T) {
	name, text := file(t, recorded(t))
	for _, c := range []struct{ what, text, want string }{
		{"as it was", text, "1 same 2 same 3 same"},
		{"not to its end", text[:strings.LastIndex(text, `"number":3`)], "1 same 2 same"},
		{"a node that was smaller", strings.ReplaceAll(text, `"cpu":"4"`, `"cpu":"2"`), "1 other 2 other 3 other"},
		{"nothing", "", ""},
		{"no recording", "{}\n", "line 1: a recording begins with a checkpoint"},
		{"no JSON", "cycles\n", "line 1 is no line of a recording"},
		{"another version", strings.Replace(text, `"version":1`, `"version":9`, 1), "of version 9; what reads it knows version 1"},
		{"a kind that is not known", strings.Replace(text, `"kind":"Node"`, `"kind":"Knot"`, 1), `line 3: there is no kind "Knot"`},
		{"no policy", strings.Replace(text, `{"policy":`, `{"was":`, 1), "cycle 1 has no policy"},
	} {
		t.Run(c.what, func(t *testing.T) {
			pack(t, name, c.text)
			var got []string
			p := recording.Player{After: func(x *recording.Moment) error {
				got = append(got, fmt.Sprintf("%d %s", x.Recorded.Number, map[bool]string{true: "same", false: "other"}[x.Same()]))
				return nil
			}}
			if err := p.Play(name); err != nil {
				got = append(got, err.Error())
			}
			if all := strings.Join(got, " "); all != c.want && (c.want == "" || !strings.Contains(all, c.want)) {
				t.Errorf("%s, want %s", all, c.want)
			}
		})
	}
	if _, err := recording.Files(t.TempDir()); err == nil || !strings.Contains(err.Error(), "there is no recording in") {
		t.Errorf("of an empty folder it is said: %v", err)
	}
}

// FuzzPlay checks that no file makes its reader panic.
func FuzzPlay(f *testing.F) {
	_, text := file(f, recorded(f))
	f.Add(text)
	for line := range strings.Lines(text) {
		f.Add(line)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		name := filepath.Join(dir, "fuzzed"+fmt.Sprint(os.Getpid()))
		pack(t, name, text)
		_ = (&recording.Player{}).Play(name) // an error is allowed, a panic is not
	})
}

// BenchmarkRecord measures the cost of recording 1,000 new pods. One part is to note them, which the loop waits for. The other part is to
// write them, which runs in parallel to the loop.
func BenchmarkRecord(b *testing.B) {
	deltas := make([]model.Delta, 1000)
	for i := range deltas {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("train-%d", i), UID: "3a5ab6ce-6f0b-4b8e-9a0a-0d4a4f9a5e8b",
			Annotations: map[string]string{v1beta1.KubeGroupNameAnnotationKey: "train"}, Labels: map[string]string{"app": "train"},
		}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "registry.example/train:1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3"), corev1.ResourceMemory: resource.MustParse("8Gi")},
		}}}
		deltas[i] = model.Delta{Object: pod}
	}
	folder := b.TempDir()
	var noting time.Duration
	b.ReportAllocs()
	for b.Loop() {
		r := recording.New(recording.Options{Folder: folder}, []string{"celsius"}, logr.Discard())
		began := time.Now()
		r.Applied(deltas)
		noting += time.Since(began)
		ctx, stop := context.WithCancel(context.Background())
		stop()
		r.Run(ctx)
	}
	b.ReportMetric(float64(noting.Microseconds())/float64(b.N), "noting-us/op")
	files, err := recording.Files(folder)
	if err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(files[0])
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/float64(len(deltas)), "bytes/pod")
}
