package live

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/policy"
)

// runningPod returns the encoded form of a running pod in the API server.
func runningPod(b *testing.B, i int) []byte {
	b.Helper()
	yes, seconds := true, int64(300)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("job-%d-worker-%d", i/10, i), UID: "0a8f5b0c-6d0c-4b6e-9f8e-3f4c5d6e7f80",
			ResourceVersion: fmt.Sprint(i),
			Labels: map[string]string{
				"volcano.sh/job-name": fmt.Sprintf("job-%d", i/10), "volcano.sh/task-spec": "worker",
				"volcano.sh/queue-name": "default",
			},
			Annotations:   map[string]string{"scheduling.k8s.io/group-name": fmt.Sprintf("g%04d", i/10), PolicyAnnotation: "default@0"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("kubelet", 200), Operation: "Update"}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("n%04d", i%1000), SchedulerName: "celsius", ServiceAccountName: "default",
			RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/team/image:v1", Command: []string{"run"}, Env: []corev1.EnvVar{
					{Name: "INDEX", Value: fmt.Sprint(i)},
				},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU:    resource.MustParse("100m"),
					corev1.ResourceMemory: resource.MustParse("128Mi"),
				}},
			}},
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds},
				{
					Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
					TolerationSeconds: &seconds,
				},
			},
			Volumes: []corev1.Volume{{Name: fmt.Sprint("kube-api-access-", i), VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{
					Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
				},
			}}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &metav1.Time{Time: time.Unix(1, 0)}, PodIP: "10.0.0.1",
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, Started: &yes}},
		},
	}
	for _, c := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady,
		corev1.ContainersReady, corev1.PodScheduled,
	} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: c, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.Unix(1, 0),
		})
	}
	data, err := p.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// heap returns the used memory.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkMemory measures the memory of a running pod in bytes: its object, and its data in the model. One operation takes in 10,000 pods,
// from the bytes that the API server sends.
func BenchmarkMemory(b *testing.B) {
	p, issues := policy.Default()
	if issues.Err() != nil {
		b.Fatal(issues.Err())
	}
	const nodes, pods = 1000, 10000
	encoded := make([][]byte, pods)
	for i := range encoded {
		encoded[i] = runningPod(b, i)
	}
	var each float64
	for b.Loop() {
		b.StopTimer()
		r := readyRig(b, p, nodes, pods/10)
		s, handle := newStripper(), handler([]string{"celsius"}, r.feed)
		before := heap()
		b.StartTimer()
		for _, data := range encoded {
			o := &corev1.Pod{}
			if err := o.Unmarshal(data); err != nil {
				b.Fatal(err)
			}
			if _, err := s.Strip(o); err != nil {
				b.Fatal(err)
			}
			handle.OnAdd(o, true)
		}
		r.once(time.Now())
		b.StopTimer()
		r.feed.drain()
		r.feed.drain() // this also frees the memory that the feed would reuse
		each = (heap() - before) / pods
		if len(r.cluster.Tasks) != pods {
			b.Fatalf("%d pods were taken in", len(r.cluster.Tasks))
		}
		b.StartTimer()
	}
	b.ReportMetric(each, "B/pod")
}

// readyRig returns a rig with this number of nodes, and PodGroups of ten pods.
func readyRig(b *testing.B, p *policy.Policy, nodes, groups int) *rig {
	b.Helper()
	f := newFakeServer(nil)
	f.t = b
	f.put(testQueue("default"))
	for i := range nodes {
		f.put(testNode(fmt.Sprintf("n%04d", i), "32"))
	}
	for i := range groups {
		f.put(testGroup(fmt.Sprintf("g%04d", i), 10))
	}
	f.deliver(-1)
	r := newRigOf(f, p)
	r.once(time.Now())
	return r
}
