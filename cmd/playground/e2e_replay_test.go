package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/live"
	"github.com/celsius-scheduler/celsius/engine/recording"
)

// TestE2EReplay records a scheduler while jobs of three classes arrive and end on too few nodes. It then decides each cycle again, from the
// start of the recording and from each checkpoint. All plans are equal byte for byte, including evictions.
func TestE2EReplay(t *testing.T) {
	const cycles = 1000
	e := newEvictions(t, "enqueue, allocate, backfill, preempt", "{name: priority}", "{name: gang}", "{name: predicates}", "{name: nodeorder}")
	e.Nodes(5, "cpu=4")
	var folder string
	e.StartScheduler(func(o *live.Options) {
		o.Period, o.Namespace = 50*time.Millisecond, e.Namespace
		folder = replayedLater(t, o, cycles, 10)
	})
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // nothing is secret
	classes, came := []string{"low", "mid", "high"}, 0
	for until := time.Now().Add(3 * time.Minute); time.Now().Before(until); came++ {
		if came%40 == 39 && recordedIn(t, folder) >= cycles {
			break
		}
		name := fmt.Sprintf("c%d", came)
		pods := 1 + random.IntN(4)
		e.come(crew{name: name, class: classes[random.IntN(3)], least: 1 + random.IntN(pods), pods: pods, cpu: 1 + random.IntN(2)})
		if came >= 8 {
			old := fmt.Sprintf("crew=c%d", came-8)
			if err := e.Kube.CoreV1().Pods(e.Namespace).DeleteCollection(e.Context, metav1.DeleteOptions{GracePeriodSeconds: new(int64)},
				metav1.ListOptions{LabelSelector: old}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
	}
	running := 0
	for _, p := range e.Pods("") {
		if p.Status.Phase == corev1.PodRunning {
			running++
		}
	}
	t.Logf("%d crews came; %d pods run", came, running)
}

// recordedIn returns how many cycles a recording contains so far.
func recordedIn(t testing.TB, folder string) (n int) {
	t.Helper()
	files, err := recording.Files(folder)
	if err != nil {
		return 0 // it has not begun yet
	}
	count := &recording.Player{Before: func(*recording.Moment) error { n++; return nil }}
	for _, file := range files {
		if err := count.Play(file); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// replayedLater records a scheduler and, after its end, decides each cycle again.
func replayedLater(t testing.TB, o *live.Options, cycles, evicting int) (folder string) {
	t.Helper()
	folder = t.TempDir()
	o.Recording = recording.Options{Folder: folder, Most: 4 << 20}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		files, err := recording.Files(folder)
		if err != nil {
			t.Fatal(err)
		}
		var all, evicted, otherwise int
		again := &recording.Player{After: func(x *recording.Moment) error {
			all++
			if len(x.Recorded.Evicts) > 0 {
				evicted++
			}
			if !x.Same() {
				otherwise++
				again, err := x.Again()
				t.Errorf("cycle %d is decided otherwise: %+v (%v), then %+v", x.Recorded.Number, again, err, x.Recorded)
			}
			return nil
		}}
		for _, file := range files {
			if err := again.Play(file); err != nil {
				t.Fatal(err)
			}
		}
		if t.Logf("%d cycles in %d files, %d evict, %d are decided otherwise", all, len(files), evicted, otherwise); all < cycles ||
			evicted < evicting {
			t.Errorf("%d cycles, of which %d evict: want %d and %d at least", all, evicted, cycles, evicting)
		}
	})
	return folder
}
