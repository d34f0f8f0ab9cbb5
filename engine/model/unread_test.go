package model

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// TestUnread shows which objects the cluster reports as left out, and that it does so until they are corrected or deleted. The late
// deletion of an older pod of the same name changes nothing.
func TestUnread(t *testing.T) {
	c := NewCluster(Options{SchedulerNames: []string{"celsius"}})
	pod := func(uid types.UID, gpus, node string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "a", Name: "p", UID: uid, Annotations: map[string]string{GroupAnnotation: "g", "celsius.dev/gpu-count": gpus},
			},
			Spec: corev1.PodSpec{SchedulerName: "celsius", NodeName: node},
		}
	}
	group := &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "g"}, Spec: v1beta1.PodGroupSpec{MinMember: 1}}
	c.Apply(Delta{Object: group})
	for _, step := range []struct {
		name   string
		delta  Delta
		unread bool
		out    []string // the pods of the PodGroup with mistakes
	}{
		{"with a mistake", Delta{Object: pod("1", "x", "")}, true, []string{"a/p"}},
		{"on a node", Delta{Object: pod("1", "x", "n1")}, true, []string{"a/p"}},
		{"replaced", Delta{Object: pod("2", "y", "")}, true, []string{"a/p"}},
		{"the older one is deleted", Delta{Op: Delete, Object: pod("1", "x", "n1")}, true, []string{"a/p"}},
		{"corrected", Delta{Object: pod("2", "1", "")}, false, nil},
		{"wrong again", Delta{Object: pod("2", "y", "")}, true, []string{"a/p"}},
		{"deleted", Delta{Op: Delete, Object: pod("2", "y", "")}, false, nil},
	} {
		c.Apply(step.delta)
		why, out := c.Past.Unread.Why("Pod", "a/p"), c.Past.Unread.PodsOf("a/g")
		if strings.HasPrefix(why, "metadata.annotations[celsius.dev/gpu-count]: ") != step.unread || !slices.Equal(out, step.out) ||
			(len(c.Past.Unread.Names("Pod")) > 0) != step.unread {
			t.Errorf("%s: %q is reported, %v have mistakes, want %v", step.name, why, out, step.out)
		}
	}
}
