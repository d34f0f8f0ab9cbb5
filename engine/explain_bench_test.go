package engine_test

import (
	"fmt"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/explain"
)

// BenchmarkExplain measures one question to the scheduler about the last cycle. The next cycle may have to wait for that time. No pod finds
// a node.
func BenchmarkExplain(b *testing.B) {
	for _, nodes := range []int{1000, 5000, 10000} {
		for _, shape := range [][2]int{{500, 20}, {1, 10000}} {
			w := workload{nodes, shape[0], shape[1], "nofit"}
			x := newScene(b, defaultPolicy(b), w.objects())
			x.cycle()
			job := x.d.Session().Cluster().JobsByKey()[shape[0]-1]
			for _, about := range []struct{ kind, namespace, name string }{
				{explain.Job, job.Namespace, job.Name}, {explain.Queue, "", "default"}, {explain.Node, "", x.anyNode()},
			} {
				b.Run(fmt.Sprintf("%s/%s", w, about.kind), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						told, err := explain.New(x.d.Session(), x.plan).Object(about.kind, about.namespace, about.name)
						if err != nil || len(told.Text) < 100 {
							b.Fatalf("%v: %v", err, told)
						}
					}
				})
			}
		}
	}
}

// anyNode returns the name of a node.
func (x *scene) anyNode() string {
	nodes := &x.d.Session().Cluster().Nodes
	return nodes.Rows[nodes.ByOrder()[0]].Name
}
