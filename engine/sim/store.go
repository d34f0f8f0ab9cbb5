package sim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/refuse"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/sim/stored"
)

// store contains the objects of a world.
type store struct {
	objects   map[manifest.ID]metav1.Object
	ofCluster *stored.Objects
	// restricting are the LimitRanges and the ResourceQuotas.
	restricting map[manifest.ID]bool
	// unexplained is the usage in the initial status of a quota that the pods of the world did not explain.
	unexplained map[manifest.ID]corev1.ResourceList
}

// sorted returns the objects of a type in order.
func (s *store) sorted(kindName string) []manifest.ID {
	var out []manifest.ID
	for id := range s.objects {
		if id.Kind == kindName {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, manifest.CompareIDs)
	return out
}

// countGroups counts PodGroups by queue and phase.
func (s *store) countGroups() map[string]map[string]int32 {
	counts := map[string]map[string]int32{}
	for _, o := range s.objects {
		g, ok := o.(*schedulingv1beta1.PodGroup)
		if !ok {
			continue
		}
		if counts[g.Spec.Queue] == nil {
			counts[g.Spec.Queue] = map[string]int32{}
		}
		counts[g.Spec.Queue][string(g.Status.Phase)]++
	}
	return counts
}

func (s *store) pod(name string) (*corev1.Pod, error) {
	namespace, short, ok := strings.Cut(name, "/")
	if !ok {
		namespace, short = metav1.NamespaceDefault, name
	}
	if p, ok := s.objects[manifest.ID{Kind: "Pod", Namespace: namespace, Name: short}].(*corev1.Pod); ok {
		return p, nil
	}
	return nil, s.unknown("Pod", model.Key(namespace, short))
}

func (s *store) node(name string) (*corev1.Node, error) {
	if n, ok := s.objects[manifest.ID{Kind: "Node", Namespace: "", Name: name}].(*corev1.Node); ok {
		return n, nil
	}
	return nil, s.unknown("Node", name)
}

// unknown returns an error for a missing object, with a similar name as a hint.
func (s *store) unknown(kindName, name string) error {
	var names []string
	for _, id := range s.sorted(kindName) {
		names = append(names, objectKey(s.objects[id]))
	}
	if near := nearest(name, names); near != "" {
		return fmt.Errorf("there is no %s %s; did you mean %s?", strings.ToLower(kindName), name, near)
	}
	return fmt.Errorf("there is no %s %s", strings.ToLower(kindName), name)
}

// usedOf returns what the pods of the world use of a quota.
func (s *store) usedOf(q *corev1.ResourceQuota) corev1.ResourceList {
	used := corev1.ResourceList{}
	for name := range q.Status.Hard {
		used[name] = resource.Quantity{}
	}
	for id, o := range s.objects {
		p, ok := o.(*corev1.Pod)
		if !ok || id.Namespace != q.Namespace || !s.isThere(p) || !refuse.Applies(q, p) {
			continue
		}
		for name, sum := range used {
			sum.Add(quotaAmount(p, string(name)))
			used[name] = sum
		}
	}
	return used
}

// isThere reports whether a pod would exist in a cluster in which the pods of Jobs are created after admission.
func (s *store) isThere(p *corev1.Pod) bool {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	g, ok := s.objects[groupID(p)].(*schedulingv1beta1.PodGroup)
	return p.Spec.NodeName != "" || !ok || string(g.Status.Phase) != model.PhasePending
}
