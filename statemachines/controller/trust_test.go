package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
)

// TestPodsStayInTheJobsNamespace checks that a template cannot place a pod in another namespace or give it another owner.
func TestPodsStayInTheJobsNamespace(t *testing.T) {
	job := trainJob(t, "")
	template := &job.Spec.Tasks[0].Template
	template.Name, template.Namespace, template.UID = "another", "kube-system", "forged"
	template.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "n1", Controller: new(true)}}
	job.Spec.Volumes = []batchv1alpha1.VolumeSpec{{MountPath: "/data", VolumeClaimName: "data"}}
	elsewhere := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "data"}}
	s := newStage(t, Options{}, openQueue(), job, elsewhere)
	s.settle()
	if n := len(s.groups()); n != 0 {
		t.Errorf("%d PodGroups: a claim of another namespace was taken for the job's", n)
	}
	s.add(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data"}})
	s.settle()
	s.letIn("Inqueue")
	s.settle()
	pods := s.pods()
	if len(pods) == 0 {
		t.Fatal("there are no pods")
	}
	for _, p := range pods {
		if p.Namespace != namespace || p.Name == "another" || len(p.OwnerReferences) != 1 || p.OwnerReferences[0].UID != job.UID {
			t.Errorf("pod %s/%s of %v", p.Namespace, p.Name, p.OwnerReferences)
		}
	}
}

// TestCommandStaysInItsNamespace checks that a Command does not affect a Job of another namespace, or another Job of the same name.
func TestCommandStaysInItsNamespace(t *testing.T) {
	s := newStage(t, Options{}, openQueue(), trainJob(t, ""))
	s.settle()
	target := metav1.OwnerReference{APIVersion: batchv1alpha1.GroupVersion.String(), Kind: "Job", Name: "train", UID: "job-uid"}
	abroad := &busv1alpha1.Command{
		ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "abort"}, Action: "AbortJob",
		TargetObject: &target,
	}
	s.add(abroad)
	s.settle()
	target.UID = "another"
	s.commandWith("AbortJob", target)
	s.settle()
	if got := s.job().Status.State.Phase; got != "Pending" || len(s.names("command")) != 0 {
		t.Errorf("the job is %s, and %d Commands are left", got, len(s.names("command")))
	}
}
