package oracle_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/imagelocality"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// kubernetes contains kube-scheduler's own plugins and a mirror of a cluster.
type kubernetes struct {
	t       *testing.T
	nodes   map[string]*corev1.Node
	infos   map[string]*framework.NodeInfo
	placed  map[string]*corev1.Pod // by key, with spec.nodeName
	plugins map[string]fwk.Plugin
}

func newKubernetes(t *testing.T, namespaces []*corev1.Namespace) *kubernetes {
	t.Helper()
	metrics.InitMetrics() // plugins count their work in these metrics
	k := &kubernetes{
		t: t, nodes: map[string]*corev1.Node{}, infos: map[string]*framework.NodeInfo{}, placed: map[string]*corev1.Pod{},
		plugins: map[string]fwk.Plugin{},
	}
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	for _, n := range namespaces {
		if err := factory.Core().V1().Namespaces().Informer().GetIndexer().Add(n); err != nil {
			t.Fatal(err)
		}
	}
	handle, err := frameworkruntime.NewFramework(t.Context(), nil, nil,
		frameworkruntime.WithSnapshotSharedLister(k), frameworkruntime.WithInformerFactory(factory), frameworkruntime.WithParallelism(1))
	if err != nil {
		t.Fatal(err)
	}
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	args := map[string]runtime.Object{
		interpodaffinity.Name:  &config.InterPodAffinityArgs{HardPodAffinityWeight: 1},
		podtopologyspread.Name: &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting},
		nodeaffinity.Name:      &config.NodeAffinityArgs{},
		noderesources.Name: &config.NodeResourcesFitArgs{ScoringStrategy: &config.ScoringStrategy{
			Type:      config.LeastAllocated,
			Resources: []config.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}},
		}},
	}
	type factoryOf = func(context.Context, runtime.Object, fwk.Handle, feature.Features) (fwk.Plugin, error)
	for name, make := range map[string]factoryOf{
		interpodaffinity.Name: interpodaffinity.New, podtopologyspread.Name: podtopologyspread.New, nodeaffinity.Name: nodeaffinity.New,
		tainttoleration.Name: tainttoleration.New, nodeports.Name: nodeports.New, nodeunschedulable.Name: nodeunschedulable.New,
		noderesources.Name: noderesources.NewFit,
	} {
		if k.plugins[name], err = make(t.Context(), args[name], handle, features); err != nil {
			t.Fatal(name, err)
		}
	}
	if k.plugins[imagelocality.Name], err = imagelocality.New(t.Context(), nil, handle); err != nil {
		t.Fatal(err)
	}
	return k
}

// setNode adds a node, or updates it.
func (k *kubernetes) setNode(n *corev1.Node) {
	k.nodes[n.Name] = n
	k.mirror(n.Name)
	k.images()
}

// put sets the node of a pod; "" is none.
func (k *kubernetes) put(pod *corev1.Pod, node string, leaving bool) {
	key := pod.Namespace + "/" + pod.Name
	if old := k.placed[key]; old != nil {
		delete(k.placed, key)
		k.mirror(old.Spec.NodeName)
	}
	if node == "" {
		return
	}
	there := defaulted(pod)
	there.Spec.NodeName = node
	if leaving && there.DeletionTimestamp == nil {
		there.DeletionTimestamp = &metav1.Time{}
	}
	k.placed[key] = there
	k.mirror(node)
}

// mirror creates a node's info again.
func (k *kubernetes) mirror(name string) {
	var pods []*corev1.Pod
	for _, p := range k.placed {
		if p.Spec.NodeName == name {
			pods = append(pods, p)
		}
	}
	info := framework.NewNodeInfo(pods...)
	info.SetNode(k.nodes[name])
	if old := k.infos[name]; old != nil {
		info.ImageStates = old.ImageStates
	}
	k.infos[name] = info
}

// images sets the images of each node, and on how many nodes they are, as the scheduler's cache does.
func (k *kubernetes) images() {
	on := map[string]int{}
	for _, n := range k.nodes {
		for _, image := range n.Status.Images {
			on[image.Names[0]]++
		}
	}
	for name, n := range k.nodes {
		states := map[string]*fwk.ImageStateSummary{}
		for _, image := range n.Status.Images {
			states[image.Names[0]] = &fwk.ImageStateSummary{Size: image.SizeBytes, NumNodes: on[image.Names[0]]}
		}
		k.infos[name].ImageStates = states
	}
}

// defaulted returns a pod as the API server would store it: its selectors contain the label keys of affinity terms.
func defaulted(pod *corev1.Pod) *corev1.Pod {
	p := pod.DeepCopy()
	merge := func(t *corev1.PodAffinityTerm) {
		add := func(keys []string, op metav1.LabelSelectorOperator) {
			for _, key := range keys {
				if v, ok := p.Labels[key]; ok && t.LabelSelector != nil {
					t.LabelSelector.MatchExpressions = append(t.LabelSelector.MatchExpressions,
						metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: []string{v}})
				}
			}
		}
		add(t.MatchLabelKeys, metav1.LabelSelectorOpIn)
		add(t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
	each := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			merge(&required[i])
		}
		for i := range preferred {
			merge(&preferred[i].PodAffinityTerm)
		}
	}
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		each(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		each(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return p
}

// filter returns on which nodes a plugin accepts a pod; asked is false if the plugin does not apply.
func (k *kubernetes) filter(name string, pod *corev1.Pod) (fits map[string]bool, asked bool) {
	pod = defaulted(pod)
	all, _ := k.List()
	state, fits := framework.NewCycleState(), map[string]bool{}
	var only *fwk.PreFilterResult
	if pre, ok := k.plugins[name].(fwk.PreFilterPlugin); ok {
		result, status := pre.PreFilter(k.t.Context(), state, pod, all)
		if status.IsSkip() {
			for _, info := range all {
				fits[info.Node().Name] = true
			}
			return fits, false
		}
		if !status.IsSuccess() && !status.IsRejected() {
			k.t.Fatalf("%s: %v", name, status)
		}
		if !status.IsSuccess() {
			return fits, true
		}
		only = result
	}
	for _, info := range all {
		node := info.Node().Name
		if !only.AllNodes() && !only.NodeNames.Has(node) {
			continue
		}
		status := k.plugins[name].(fwk.FilterPlugin).Filter(k.t.Context(), state, pod, info)
		if !status.IsSuccess() && !status.IsRejected() {
			k.t.Fatalf("%s on %s: %v", name, node, status)
		}
		fits[node] = status.IsSuccess()
	}
	return fits, true
}

// scores returns a plugin's normalised scores for some nodes.
func (k *kubernetes) scores(name string, pod *corev1.Pod, feasible []string) map[string]int64 {
	pod = defaulted(pod)
	var infos []fwk.NodeInfo
	for _, n := range feasible {
		infos = append(infos, k.infos[n])
	}
	plugin := k.plugins[name].(fwk.ScorePlugin)
	state, out := framework.NewCycleState(), map[string]int64{}
	// Some scorers read results of their filter.
	if pre, ok := plugin.(fwk.PreFilterPlugin); ok {
		all, _ := k.List()
		pre.PreFilter(k.t.Context(), state, pod, all)
	}
	if pre, ok := plugin.(fwk.PreScorePlugin); ok {
		status := pre.PreScore(k.t.Context(), state, pod, infos)
		if status.IsSkip() {
			return out
		}
		if !status.IsSuccess() {
			k.t.Fatalf("%s: %v", name, status)
		}
	}
	var list fwk.NodeScoreList
	for _, info := range infos {
		score, status := plugin.Score(k.t.Context(), state, pod, info)
		if !status.IsSuccess() {
			k.t.Fatalf("%s: %v", name, status)
		}
		list = append(list, fwk.NodeScore{Name: info.Node().Name, Score: score})
	}
	if ext := plugin.ScoreExtensions(); ext != nil {
		if status := ext.NormalizeScore(k.t.Context(), state, pod, list); !status.IsSuccess() {
			k.t.Fatalf("%s: %v", name, status)
		}
	}
	for _, s := range list {
		out[s.Name] = s.Score
	}
	return out
}

// The functions below make the mirror readable for plugins.

func (k *kubernetes) NodeInfos() fwk.NodeInfoLister { return k }

func (k *kubernetes) StorageInfos() fwk.StorageInfoLister { return k }

func (k *kubernetes) PodGroupStates() fwk.PodGroupStateLister { return nil }

func (k *kubernetes) IsPVCUsedByPods(string) bool { return false }

func (k *kubernetes) list(of func(*framework.NodeInfo) bool) ([]fwk.NodeInfo, error) {
	var out []fwk.NodeInfo
	for _, info := range k.infos {
		if of(info) {
			out = append(out, info)
		}
	}
	slices.SortFunc(out, func(a, b fwk.NodeInfo) int { return compareNames(a.Node().Name, b.Node().Name) })
	return out, nil
}

func compareNames(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (k *kubernetes) List() ([]fwk.NodeInfo, error) {
	return k.list(func(*framework.NodeInfo) bool { return true })
}

func (k *kubernetes) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	return k.list(func(n *framework.NodeInfo) bool { return len(n.PodsWithAffinity) > 0 })
}

func (k *kubernetes) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return k.list(func(n *framework.NodeInfo) bool { return len(n.PodsWithRequiredAntiAffinity) > 0 })
}

func (k *kubernetes) Get(name string) (fwk.NodeInfo, error) { return k.infos[name], nil }
