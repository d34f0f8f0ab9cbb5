package session

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// passing runs a session with tight limits. In each cycle one job of one pod comes and another leaves. Each has a namespace, an image and a
// class of its own.
func passing(t *testing.T, cycles int, table string, look func(s *Session, pod *model.Task)) *Session {
	t.Helper()
	c := aCluster(t, aQueue("q"), aNode("n1", "cpu=64 memory=64Gi pods=110", func(n *corev1.Node) {
		for i := range cycles {
			n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("image:v%d", i)}, SizeBytes: 50 << 20})
		}
	}))
	s := New(c, loaded(t, policyText(table)))
	s.Keep, s.verdicts.Classes.Entries = 4, 3
	var gone []model.Delta
	for i := range cycles {
		name, namespace := fmt.Sprint("p", i), fmt.Sprint("team-", i)
		g := aGroup("g", "q")
		g.Namespace = namespace
		p := aPod(name, fmt.Sprintf("cpu=%dm", 100+i), func(p *corev1.Pod) {
			p.Namespace, p.Spec.Containers[0].Image = namespace, fmt.Sprintf("image:v%d", i)
		})
		if errs := c.Apply(append(gone, model.Delta{Object: g}, model.Delta{Object: p})...); len(errs) > 0 {
			t.Fatal(errs)
		}
		gone = []model.Delta{{Op: model.Delete, Object: p}, {Op: model.Delete, Object: g}}
		s.Begin(noon().Add(time.Duration(i) * time.Second))
		look(s, c.Tasks[namespace+"/"+name])
	}
	return s
}

// TestSessionForgets checks that the caches of jobs, namespaces, images and classes do not grow with the number of past ones.
func TestSessionForgets(t *testing.T) {
	s := passing(t, 100, `
attributes:
- {on: job, name: first, settle: start, expression: job.request.cpu}
- {on: namespace, name: load, settle: cycle, sum: {over: job, of: job.request}}
jobOrder: [{name: first, by: job.first}]
predicates: [{name: small, expression: task.request.cpu < 9.0}]
scores: [{name: image, expression: node.imageLocality(task)}]
`, func(s *Session, task *model.Task) {
		if ch, ok := s.Class(task).Choose(); !ok || ch.Row != 0 {
			t.Fatalf("%s: no node", task.Key)
		}
		if v := s.starts[started{of: s.p.Attributes()[0], owner: task.Job.Key}]; v == nil {
			t.Fatalf("%s: nothing is known of its start", task.Job.Key)
		}
	})
	for what, size := range map[string]int{
		"starts": len(s.starts), "namespaces": len(s.Namespaces), "contexts and images": s.Topology.Size(),
		"classes": len(s.verdicts.Classes.ByKey),
	} {
		if size == 0 || size > 12 {
			t.Errorf("%d %s are kept after 100 jobs came and went", size, what)
		}
	}
}

// TestSessionKeepsWhatIsThere checks that existing objects are not forgotten, however many others are gone: a value of the start stays the
// same.
func TestSessionKeepsWhatIsThere(t *testing.T) {
	var stays *model.Job
	passing(t, 40, "attributes: [{on: job, name: first, settle: start, expression: cluster.used.cpu + job.request.cpu}]\njobOrder: [{name: "+
		"first, by: job.first}]\n", func(s *Session, task *model.Task) {
		if stays == nil {
			group := aGroup("stays", "q")
			s.c.Apply(model.Delta{Object: group}, model.Delta{Object: aPod("stays-0", "cpu=5", annotated(model.GroupAnnotation, "stays"))})
			stays = s.c.Jobs["a/stays"]
			s.Begin(noon())
			s.c.Apply(model.Delta{Object: aPod("stays-0", "cpu=7", annotated(model.GroupAnnotation, "stays"))})
			s.Begin(noon())
		}
		if got := keysOf(t, s, "stays"); got != "5" {
			t.Fatalf("the job that stayed had a request of 5 at first, is said to have had %s", got)
		}
	})
}
