package flows

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
)

// held is a client that blocks until it is released.
type held struct {
	client.Client
	letGo chan struct{}
}

func (h held) List(context.Context, client.ObjectList, ...client.ListOption) error {
	<-h.letGo
	return nil
}

// TestJobFlowProbesApart checks that many probed flows of one namespace do not delay those of another, and that each generation of a flow
// is probed once.
func TestJobFlowProbesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := held{letGo: make(chan struct{})}
		p := newProber(Shared{Client: pods})
		job := &batchv1alpha1.Job{Spec: batchv1alpha1.JobSpec{Tasks: []batchv1alpha1.TaskSpec{{Name: "main"}}}}
		f := &flowv1alpha1.Flow{Name: "b", DependsOn: &flowv1alpha1.DependsOn{
			Probe: &flowv1alpha1.Probe{TCPSocketList: []flowv1alpha1.TCPSocket{{TaskName: "main", Port: 80}}},
		}}
		of := func(namespace string, n int) *flowv1alpha1.JobFlow {
			return &flowv1alpha1.JobFlow{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(n), Generation: 1}}
		}
		ask := func(of *flowv1alpha1.JobFlow) bool {
			holds, why, again := p.ask(t.Context(), of, f, []*batchv1alpha1.Job{job})
			if why != "" || !holds && again != probeLook {
				t.Errorf("%q, again after %s", why, again)
			}
			return holds
		}
		for n := range 3 * mostProbes {
			ask(of("many", n))
			ask(of("many", n))
		}
		ask(of("few", 0))
		synctest.Wait()
		if p.busy["many"] != mostProbes || p.busy["few"] != 1 {
			t.Errorf("under way are %v", p.busy)
		}
		close(pods.letGo)
		synctest.Wait()
		if len(p.busy) != 0 || !ask(of("few", 0)) || !ask(of("many", mostProbes-1)) {
			t.Errorf("all are answered, and under way are %v", p.busy)
		}
		newer := of("few", 0)
		newer.Generation = 2
		if ask(newer) || len(p.asked) != mostProbes+1+2*mostProbes {
			t.Errorf("another probe holds without being asked, or %d flows are remembered", len(p.asked))
		}
		synctest.Wait()
		p.forget(client.ObjectKeyFromObject(newer))
		if p.asked[client.ObjectKeyFromObject(newer)] != nil {
			t.Error("a flow that is gone is remembered")
		}
	})
}
