package live

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

func TestStrip(t *testing.T) {
	s := newStripper()
	p := testPod("a", "g", "1")
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
	p.Annotations[corev1.LastAppliedConfigAnnotation] = "{}"
	p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c"}}
	p.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.1"}}
	p.Spec.SecurityContext = &corev1.PodSecurityContext{}
	p.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}}
	if _, err := s.Strip(p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(testPod("a", "g", "1"), p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	volumes := []corev1.Volume{
		{Name: "claim", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}},
		{Name: "made", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{Name: "disk", VolumeSource: corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}}},
		{Name: "image", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "i"}}},
	}
	p.Spec.Volumes = append([]corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		volumes...)
	if _, err := s.Strip(p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(volumes, p.Spec.Volumes); diff != "" {
		t.Errorf("volumes that nodes are chosen by (-want +got):\n%s", diff)
	}
	n := testNode("n", "1")
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeMemoryPressure})
	n.Status.NodeInfo.KernelVersion = "6"
	if _, err := s.Strip(n); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(testNode("n", "1"), n); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	q := testQueue("q")
	q.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: FieldManager, Subresource: "status"}}
	if _, err := s.Strip(q); err != nil || !ownsAllocated(q) {
		t.Errorf("a queue's field managers are gone: %v", err)
	}
}

// TestPhaseIsASchedulersWord checks which writers of a PodGroup's phase are trusted: this scheduler and Volcano's scheduler, but not the
// creator of the group. A group whose phase is not trusted must be admitted.
func TestPhaseIsASchedulersWord(t *testing.T) {
	owns := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const phase, counts = `{"f:status":{"f:phase":{}}}`, `{"f:status":{"f:running":{}}}`
	for _, c := range []struct {
		name    string
		phase   v1beta1.PodGroupPhase
		written []metav1.ManagedFieldsEntry
		want    v1beta1.PodGroupPhase
	}{
		{
			"ours", v1beta1.PodGroupRunning,
			[]metav1.ManagedFieldsEntry{owns("kubectl", `{"f:spec":{}}`), owns(FieldManager, phase)},
			v1beta1.PodGroupRunning,
		},
		{"Volcano's", v1beta1.PodGroupInqueue, []metav1.ManagedFieldsEntry{owns("vc-scheduler", phase)}, v1beta1.PodGroupInqueue},
		{"a tenant's", v1beta1.PodGroupRunning, []metav1.ManagedFieldsEntry{owns("kubectl", phase)}, ""},
		{"a tenant's, over ours", v1beta1.PodGroupRunning, []metav1.ManagedFieldsEntry{owns("kubectl", phase), owns(FieldManager, counts)}, ""},
		{"the controllers' beyond Pending", v1beta1.PodGroupCompleted, []metav1.ManagedFieldsEntry{owns("celsius-controllers", phase)}, ""},
		{"nobody's", v1beta1.PodGroupUnknown, nil, ""},
		{"Pending", v1beta1.PodGroupPending, nil, v1beta1.PodGroupPending},
	} {
		g := &v1beta1.PodGroup{}
		g.Status.Phase, g.ManagedFields = c.phase, c.written
		for range 2 { // informers strip an object more than once
			if _, err := newStripper().Strip(g); err != nil || g.Status.Phase != c.want || len(g.ManagedFields) > 1 {
				t.Errorf("%s: phase %q and managers %v, want %q (%v)", c.name, g.Status.Phase, g.ManagedFields, c.want, err)
			}
		}
	}
}

// Equal pods share a spec, regardless of their nodes, and other pods do not. The shared spec equals the spec of each pod.
func TestPodsShareSpecs(t *testing.T) {
	s := newStripper()
	kept := func(name, cpu, node string) *corev1.Pod {
		p := testPod(name, "g", cpu)
		p.Spec.NodeName = node
		if _, err := s.Strip(p); err != nil {
			t.Fatal(err)
		}
		want := testPod(name, "g", cpu)
		want.Spec.NodeName = node
		if diff := cmp.Diff(want.Spec, p.Spec); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		return p
	}
	a, b, other := kept("a", "1", ""), kept("b", "1", "n1"), kept("c", "2", "")
	if &a.Spec.Containers[0] != &b.Spec.Containers[0] || &a.Spec.Containers[0] == &other.Spec.Containers[0] {
		t.Error("specs are not shared by pods that are alike, and only by them")
	}
}

// TestStripJob shows that a stripped Job requests what the whole Job requests, names its scheduler, and has the same cause if it can never
// start.
func TestStripJob(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	cpu := func(n string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}}
	}
	whole := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "a", UID: "u", Annotations: map[string]string{"x": "y"}}}
	whole.Spec = batchv1alpha1.JobSpec{SchedulerName: "celsius", Queue: "q", Tasks: []batchv1alpha1.TaskSpec{
		{Name: "w", Replicas: 3}, {Name: "v", Replicas: 1},
	}}
	for i := range whole.Spec.Tasks {
		spec := &whole.Spec.Tasks[i].Template.Spec
		spec.Containers = []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "A"}}, Resources: cpu("2")}}
		spec.InitContainers = []corev1.Container{{Name: "s", RestartPolicy: &always, Resources: cpu("1")}, {Name: "i", Resources: cpu("9")}}
		spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
		spec.NodeSelector = map[string]string{"a": "b"}
	}
	read := func(j *batchv1alpha1.Job) (request, cause string) {
		g := &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "j-u", Namespace: "a", OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(j, batchv1alpha1.GroupVersion.WithKind("Job")),
		}}}
		c := model.NewCluster(model.Options{Volumes: volume.New})
		for _, err := range c.Apply(model.Delta{Object: testNode("n1", "4")}, model.Delta{Object: j}, model.Delta{Object: g}) {
			t.Error(err)
		}
		job := c.Jobs["a/j-u"]
		return c.Dims.Text(job.Request), report.NeverStarts(c, job, report.Sizes{Largest: c.Nodes.AllocatableOf(0)})
	}
	s, stripped := newStripper(), whole.DeepCopy()
	if _, err := s.Strip(stripped); err != nil {
		t.Fatal(err)
	}
	got, cause := read(stripped)
	want, wholeCause := read(whole)
	if got != want || want != "cpu 41, memory 0, pods 4" {
		t.Errorf("stripped it asks for %s, whole for %s", got, want)
	}
	if cause != wholeCause || !strings.HasPrefix(cause, "init container i of each pod of task w requests cpu 9") {
		t.Errorf("stripped its cause is %q, whole %q", cause, wholeCause)
	}
	a, b := &stripped.Spec.Tasks[0].Template.Spec, &stripped.Spec.Tasks[1].Template.Spec
	if stripped.Spec.SchedulerName != "celsius" || a.NodeSelector != nil || &a.Containers[0] != &b.Containers[0] {
		t.Errorf("too much or too little is left: %+v", stripped.Spec)
	}
	ended := whole.DeepCopy()
	ended.Status.State.Phase = batchv1alpha1.Completed
	if _, err := s.Strip(ended); err != nil || len(ended.Spec.Tasks) != 0 {
		t.Errorf("a Job that makes no more pods keeps %d tasks, %v", len(ended.Spec.Tasks), err)
	}
}

// A pod that is resized counts with its previous resources until its kubelet has released them. If the kubelet never provides the new
// resources, the pod does not count with them.
func TestStripKeepsWhatAResizeHasLeft(t *testing.T) {
	for name, test := range map[string]struct {
		spec, has string
		never     bool
		want      string
	}{
		"none":                 {"2", "2", false, "2"},
		"smaller":              {"1", "4", false, "4"},
		"larger":               {"4", "1", false, "4"},
		"larger than its node": {"1e300", "1", true, "1"},
	} {
		p := testPod("a", "g", test.spec)
		p.Spec.NodeName = "n1"
		granted := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(test.has)}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "c", AllocatedResources: granted, Resources: &corev1.ResourceRequirements{Requests: granted}},
		}
		if test.never {
			p.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
				Reason: corev1.PodReasonInfeasible,
			}}
		}
		if _, err := newStripper().Strip(p); err != nil {
			t.Fatal(err)
		}
		c := model.NewCluster(model.Options{Volumes: volume.New})
		if errs := c.Apply(model.Delta{Object: p}); len(errs) > 0 {
			t.Fatal(errs)
		}
		if got := c.Dims.Quantity(model.CPU, c.Tasks["default/a"].Request.Get(model.CPU)).String(); got != test.want {
			t.Errorf("resized to %s: counts for %s cpu, want %s", name, got, test.want)
		}
		if kept := len(p.Status.ContainerStatuses) > 0; kept != (test.spec != test.has) {
			t.Errorf("resized to %s: statuses of containers are kept: %t", name, kept)
		}
	}
}

// Amounts that are too large to be added up are limited first.
func TestStripTames(t *testing.T) {
	const wild = "1e10000000"
	p := testPod("a", "g", wild)
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(wild)}
	g := testGroup("g", 1)
	g.Spec.MinResources = &corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(wild)}
	claim := &corev1.PersistentVolumeClaim{}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(wild)}
	for _, o := range []any{p, g, claim} {
		if _, err := newStripper().Strip(o); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []resource.Quantity{
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU], p.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU],
		(*g.Spec.MinResources)[corev1.ResourceCPU], claim.Spec.Resources.Requests[corev1.ResourceStorage],
	} {
		if q.CmpInt64(model.Most) != 0 {
			t.Errorf("an amount is %s", q.String())
		}
	}
}
