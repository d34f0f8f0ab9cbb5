package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/live"
	"github.com/celsius-scheduler/celsius/statemachines/controller"
)

// describes waits until kubectl describe of an object contains all words.
func (w *world) describes(object string, words ...string) {
	w.t.Helper()
	w.Wait("kubectl describe "+object, func() error {
		r := w.TryKubectl("", "describe", object)
		for _, want := range words {
			if !strings.Contains(r.Out, want) {
				return fmt.Errorf("no %q in:\n%s%s", want, r.Out, r.Err)
			}
		}
		return nil
	})
}

// TestE2EWithoutAScheduler checks that kubectl describe of a Job and of a pod shows that no scheduler runs, and that the job starts when
// one runs.
func TestE2EWithoutAScheduler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Nodes(1, "cpu=8,memory=16Gi")
	w.Apply("{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: \"${queue.a}\"}, spec: {weight: 1}}")
	w.StartControllers(func(o *controller.Options) { o.Namespace = w.Namespace })
	w.Apply(jobLike("bert-large"))
	w.Apply(`
apiVersion: v1
kind: Pod
metadata: {name: notebook}
spec:
  schedulerName: ${scheduler}
  containers: [{name: main, image: main}]
`)
	why := "no scheduler runs: Lease " + w.Namespace + "/celsius-scheduler does not exist"
	w.describes("vcjob/bert-large", "NoScheduler", why)
	w.describes("pod/notebook", "NoScheduler", why)
	w.StartScheduler(func(o *live.Options) { o.Namespace, o.LeaderElect = w.Namespace, true })
	w.phase("bert-large", "Running")
	if got := w.field("vcjob/bert-large", ".status.state.reason"); got == "NoScheduler" {
		t.Errorf("the running job has the reason %q", got)
	}
}

// TestE2EWithoutControllers checks that kubectl describe of a Job shows that no controllers run.
func TestE2EWithoutControllers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Apply("{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: \"${queue.a}\"}, spec: {weight: 1}}")
	w.StartScheduler(func(o *live.Options) { o.Namespace = w.Namespace })
	w.Apply(jobLike("bert-large"))
	w.describes("vcjob/bert-large", "NoControllers", "no controllers run: Lease "+w.Namespace+"/celsius-controllers does not exist")
}
