package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

func barePod(annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a", UID: types.UID("uid-of-a"), Annotations: annotations},
		Spec:       corev1.PodSpec{SchedulerName: "celsius", Containers: []corev1.Container{{Name: "main"}}},
	}
}

// owned returns a bare pod with the given controller.
func owned(apiVersion, kind, name string) *corev1.Pod {
	pod := barePod(nil)
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-of-" + name),
		Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	return pod
}

// TestBarePods checks which pods get a PodGroup, and its content.
func TestBarePods(t *testing.T) {
	set := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "set-uid", Controller: new(true)}
	for _, c := range []struct {
		name      string
		pod       *corev1.Pod
		want      string // the PodGroup; "" for none
		minMember int32
		queue     string
		told      string
	}{
		{name: "alone", pod: barePod(nil), want: "podgroup-uid-of-a", minMember: 1, queue: "default"},
		{name: "of a ReplicaSet", pod: func() *corev1.Pod {
			pod := barePod(map[string]string{schedulingv1beta1.QueueNameAnnotationKey: "gpu"})
			pod.OwnerReferences = []metav1.OwnerReference{set}
			return pod
		}(), want: "podgroup-set-uid", minMember: 1, queue: "gpu"},
		{
			name: "of a gang", pod: barePod(map[string]string{schedulingv1beta1.VolcanoGroupMinMemberAnnotationKey: "4"}),
			want: "podgroup-uid-of-a", minMember: 4, queue: "default",
		},
		{
			name: "with a wrong size", pod: barePod(map[string]string{schedulingv1beta1.VolcanoGroupMinMemberAnnotationKey: "many"}),
			want: "podgroup-uid-of-a", minMember: 1, queue: "default",
			told: `annotation scheduling.volcano.sh/group-min-member is "many"; it must be a whole number from 1, and counts as 1 now`,
		},
		{
			name: "with an amount that takes for ever to parse",
			pod:  barePod(map[string]string{schedulingv1beta1.VolcanoGroupMinResourcesAnnotationKey: `{"cpu": "1e-99999999"}`}),
			want: "podgroup-uid-of-a", minMember: 1, queue: "default",
			told: `annotation scheduling.volcano.sh/group-min-resources cannot be read: [cpu]: Invalid value: "1e-99999999": must be a quantity`,
		},
		{
			name: "of a kind that nobody knows", pod: owned("nowhere.example/v7", "Job", "train"), want: "podgroup-uid-of-train", minMember: 1,
			queue: "default",
		},
		{name: "of no API version", pod: owned("a/b/c", "ReplicaSet", "train"), want: "podgroup-uid-of-train", minMember: 1, queue: "default"},
		{
			name: "of an older version", pod: owned("apps/v1beta1", "StatefulSet", "train"), want: "podgroup-uid-of-train", minMember: 1,
			queue: "default",
		},
		{
			name: "of a name that none can have", pod: owned("batch/v1", "Job", "../pods"), want: "podgroup-uid-of-../pods", minMember: 1,
			queue: "default",
		},
		{name: "of another scheduler", pod: func() *corev1.Pod {
			pod := barePod(nil)
			pod.Spec.SchedulerName = "default-scheduler"
			return pod
		}()},
		{name: "with a PodGroup", pod: barePod(map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: "mine"})},
	} {
		t.Run(c.name, func(t *testing.T) {
			was := c.pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]
			s := newStage(t, Options{}, openQueue(), c.pod)
			s.now = s.now.Add(aloneFor)
			s.settle()
			groups := s.groups()
			if c.want == "" {
				if len(groups) != 0 || objects.GroupOf(s.pods()[0]) != was {
					t.Fatalf("the pod was touched: %d PodGroups, pod says %q", len(groups), objects.GroupOf(s.pods()[0]))
				}
				return
			}
			if len(groups) != 1 {
				t.Fatalf("%d PodGroups, want one", len(groups))
			}
			g := groups[0]
			got := []any{g.Name, g.Spec.MinMember, g.Spec.Queue, string(g.Status.Phase), objects.GroupOf(s.pods()[0])}
			if diff := cmp.Diff([]any{c.want, c.minMember, c.queue, "Pending", c.want}, got); diff != "" {
				t.Errorf("PodGroup (-want +got):\n%s", diff)
			}
			if c.told != "" && !s.told(c.told) {
				t.Errorf("no event %q in %q", c.told, s.lines)
			}
			for _, line := range s.lines {
				if strings.Contains(line, "Warning") && (c.told == "" || !strings.Contains(line, c.told)) {
					t.Errorf("a warning: %s", line)
				}
			}
			for _, owner := range g.OwnerReferences {
				if owner.BlockOwnerDeletion != nil {
					t.Errorf("the PodGroup holds up the deletion of %s %s", owner.Kind, owner.Name)
				}
			}
		})
	}
}

// TestMinResourcesFollowTheOwnersTemplate has a StatefulSet that requests 5 GPUs, more than its queue may have. When its template requests
// one GPU and the pod is created again, the PodGroup of the StatefulSet requests one as well.
func TestMinResourcesFollowTheOwnersTemplate(t *testing.T) {
	asking := func(uid, gpus string) *corev1.Pod {
		pod := owned("apps/v1", "StatefulSet", "l11")
		pod.UID = types.UID(uid)
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse(gpus),
		}
		return pod
	}
	s := newStage(t, Options{}, openQueue(), asking("first", "5"))
	s.settle()
	gpus := func() string {
		t.Helper()
		groups := s.groups()
		if len(groups) != 1 {
			t.Fatalf("%d PodGroups, want one", len(groups))
		}
		of, quota := (*groups[0].Spec.MinResources)["nvidia.com/gpu"], (*groups[0].Spec.MinResources)["requests.nvidia.com/gpu"]
		return of.String() + " " + quota.String()
	}
	if got := gpus(); got != "5 5" {
		t.Fatalf("of the first template: %s GPUs, want 5 5", got)
	}
	if err := s.api.Delete(t.Context(), s.pods()[0]); err != nil {
		t.Fatal(err)
	}
	s.settle()
	s.add(asking("second", "1"))
	s.settle()
	if got := gpus(); got != "1 1" {
		t.Errorf("of the new template: %s GPUs, want 1 1", got)
	}
}

// TestMinResourcesFollowResizes resizes pods of a StatefulSet in place. The PodGroup follows the youngest pod, and no other.
func TestMinResourcesFollowResizes(t *testing.T) {
	s := newStage(t, Options{}, openQueue())
	for i, name := range []string{"parameter-server-0", "parameter-server-1"} {
		pod := owned("apps/v1", "StatefulSet", "parameter-server")
		pod.Name, pod.UID, pod.Generation = name, types.UID(name), 1
		pod.CreationTimestamp = metav1.NewTime(s.now.Add(time.Duration(i) * time.Second))
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Gi")}
		s.add(pod)
		s.settle()
	}
	for _, c := range []struct {
		pod, resized, want string
	}{
		{"parameter-server-0", "24Gi", "16Gi"},
		{"parameter-server-1", "20Gi", "20Gi"},
		{"parameter-server-1", "12Gi", "12Gi"},
	} {
		pod := &corev1.Pod{}
		if err := s.api.Get(t.Context(), types.NamespacedName{Namespace: s.pods()[0].Namespace, Name: c.pod}, pod); err != nil {
			t.Fatal(err)
		}
		pod.Generation++
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse(c.resized)
		if err := s.api.Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		s.settle()
		groups := s.groups()
		if len(groups) != 1 {
			t.Fatalf("%d PodGroups, want one", len(groups))
		}
		if got := groups[0].Spec.MinResources.Memory().String(); got != c.want {
			t.Errorf("after %s was resized to %s: minResources of memory is %s, want %s", c.pod, c.resized, got, c.want)
		}
	}
}

// TestAPodAloneGetsItsGroupFromItsScheduler checks pods without an owner. The controllers create the PodGroup of such a pod only if the
// scheduler has not created it for a long time. This applies to bound pods, which get the name from the binding, and to waiting pods.
func TestAPodAloneGetsItsGroupFromItsScheduler(t *testing.T) {
	s := newStage(t, Options{}, openQueue(), barePod(nil))
	pod := s.pods()[0]
	pod.CreationTimestamp = metav1.NewTime(s.now)
	update := func() {
		t.Helper()
		if err := s.api.Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		s.settle()
	}
	pod.Spec.NodeName = "n"
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, schedulingv1beta1.KubeGroupNameAnnotationKey, objects.BareGroupName(pod))
	update()
	if n := len(s.groups()); n != 0 {
		t.Fatalf("%d PodGroups beside one that may be on its way", n)
	}
	s.now = s.now.Add(aloneFor)
	s.settle()
	if groups := s.groups(); len(groups) != 1 || groups[0].Name != objects.BareGroupName(pod) {
		t.Errorf("%d PodGroups of a pod that is bound", len(groups))
	}
	if s.pods()[0].ResourceVersion != pod.ResourceVersion {
		t.Errorf("the pod was written, which named its PodGroup already")
	}

	s = newStage(t, Options{}, openQueue(), barePod(nil))
	pod = s.pods()[0]
	pod.CreationTimestamp = metav1.NewTime(s.now)
	update()
	s.now = s.now.Add(aloneFor)
	s.settle()
	if n, name := len(s.groups()), objects.GroupOf(s.pods()[0]); n != 1 || name != objects.BareGroupName(pod) {
		t.Errorf("%d PodGroups of a pod that waits, which names %q", n, name)
	}
}

// TestQueue checks that a queue is counted, is Closing after a Command while work is left, is Closed after that, and is opened.
func TestQueue(t *testing.T) {
	s := newStage(t, Options{}, openQueue(), trainJob(t, ""))
	s.guarded()
	s.settle()
	is := func(state schedulingv1beta1.QueueState, pending, running int32) {
		t.Helper()
		st := s.queue("default").Status
		if diff := cmp.Diff([]any{state, pending, running}, []any{st.State, st.Pending, st.Running}); diff != "" {
			t.Errorf("the queue's state, pending and running (-want +got):\n%s", diff)
		}
	}
	is(schedulingv1beta1.QueueStateOpen, 1, 0)
	s.letIn(schedulingv1beta1.PodGroupRunning)
	s.settle()
	is(schedulingv1beta1.QueueStateOpen, 0, 1)
	s.commandQueue("CloseQueue")
	is(schedulingv1beta1.QueueStateClosing, 0, 1)
	if !s.told("default Normal CloseQueue: CloseQueue succeeded: the queue is Closing") || !s.told("default Normal CommandIssued:") {
		t.Errorf("nobody was told: %q", s.lines)
	}
	s.play("train", corev1.PodRunning, 0)
	s.settle()
	s.play("train", corev1.PodSucceeded, 0)
	s.settle()
	is(schedulingv1beta1.QueueStateClosed, 0, 0)
	s.commandQueue("OpenQueue")
	is(schedulingv1beta1.QueueStateOpen, 0, 0)
}

// TestQueueKeepsAllocated checks that the fields of other writers in a queue's status stay.
func TestQueueKeepsAllocated(t *testing.T) {
	queue := openQueue()
	queue.Status.Allocated = schedulingv1beta1.Queue{}.Status.Allocated
	s := newStage(t, Options{}, queue)
	q := s.queue("default")
	q.Status.Reservation = schedulingv1beta1.Reservation{
		Nodes: []string{"n1"}, Resource: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")},
	}
	if err := s.api.Status().Update(context.Background(), q); err != nil {
		t.Fatal(err)
	}
	s.settle()
	got := s.queue("default").Status
	if r := got.Reservation; got.State != schedulingv1beta1.QueueStateOpen || len(r.Nodes) != 1 || r.Resource.Cpu().Value() != 8 {
		t.Errorf("status %+v", got)
	}
}

// TestCommandDropped checks Commands without an effect: their target does not exist, is another object of that name, or belongs to other
// controllers.
func TestCommandDropped(t *testing.T) {
	foreign := trainJob(t, "")
	foreign.Spec.SchedulerName = "other"
	s := newStage(t, Options{}, openQueue(), trainJob(t, ""))
	s.command("AbortJob", "Job", "batch.volcano.sh/v1alpha1", "nobody")
	s.settle()
	if n := len(s.names("command")); n != 0 {
		t.Errorf("%d Commands are left of a target that is not there", n)
	}
	s.command("AbortJob", "Job", "batch/v1", "train")
	s.settle()
	if n := len(s.names("command")); n != 1 {
		t.Errorf("%d Commands are left; one for a kind that is not ours must be left alone", n)
	}
	if got := s.job().Status.State.Phase; got != "Pending" {
		t.Errorf("the job is %s, want Pending", got)
	}
	s = newStage(t, Options{}, openQueue(), foreign)
	s.commandJob("AbortJob")
	if n := len(s.names("command")); n == 0 {
		t.Error("the Command for another controller's job was taken")
	}
}
