package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Volumes with a real volume controller: it binds volumes, the scheduler chooses nodes, and no pod is bound before its claims.

// localClass creates a storage class of this world whose volumes wait for their first consumer. An empty provisioner means none.
func (w *world) localClass(provisioner string) {
	w.t.Helper()
	w.Apply(fmt.Sprintf(`
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: "${world}-local"}
provisioner: %s
volumeBindingMode: WaitForFirstConsumer
`, cmp.Or(provisioner, "kubernetes.io/no-provisioner")))
	w.forgetLater(func(ctx context.Context) error {
		return w.Kube.StorageV1().StorageClasses().Delete(ctx, w.Name+"-local", metav1.DeleteOptions{})
	})
}

// volume creates a volume of this world that only one node can use.
func (w *world) volume(name, node string) {
	w.t.Helper()
	w.Apply(fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: "${world}-%s"}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: ${world}-local
  local: {path: /data/%s}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]
`, name, name, node))
	w.forgetLater(func(ctx context.Context) error {
		return w.Kube.CoreV1().PersistentVolumes().Delete(ctx, w.Name+"-"+name, metav1.DeleteOptions{})
	})
	// A waiting gang may bind it before this check.
	w.Wait("volume is Available or Bound", func() error {
		v, err := w.Kube.CoreV1().PersistentVolumes().Get(w.Context, w.Name+"-"+name, metav1.GetOptions{})
		if err == nil && v.Status.Phase != corev1.VolumeAvailable && v.Status.Phase != corev1.VolumeBound {
			err = fmt.Errorf("it is %q", v.Status.Phase)
		}
		return err
	})
}

func (w *world) forgetLater(forget func(context.Context) error) {
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitAtMost)
		defer cancel()
		if err := forget(ctx); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *world) claim(name string) {
	w.t.Helper()
	w.Apply(fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s}
spec: {storageClassName: "${world}-local", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, name))
}

// claimants creates a gang of pods with a claim each. Pods and claims have the same names.
func (w *world) claimants(gang string, claims ...string) {
	w.t.Helper()
	w.Apply(fmt.Sprintf(`
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: %s}
spec: {queue: "${queue.a}", minMember: %d}
`, gang, len(claims)))
	for _, claim := range claims {
		w.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %s
  annotations: {scheduling.k8s.io/group-name: %s}
spec:
  schedulerName: ${scheduler}
  containers: [{name: main, image: main, resources: {requests: {cpu: "1"}}}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: %s}}]
`, claim, gang, claim))
	}
}

// bound waits until each pod is on its node, and its claim, which has the same name, is bound to its volume; "" means any volume.
func (w *world) bound(nodes, volumes map[string]string) {
	w.t.Helper()
	w.Wait("pods are bound, with their claims", func() error {
		for _, name := range slices.Sorted(maps.Keys(nodes)) {
			pod, claim := &corev1.Pod{}, &corev1.PersistentVolumeClaim{}
			if err := w.Get(name, pod); err != nil {
				return err
			}
			if err := w.Get(name, claim); err != nil {
				return err
			}
			switch {
			case pod.Spec.NodeName != "" && claim.Status.Phase != corev1.ClaimBound:
				return fmt.Errorf("pod %s was bound before its claim, which is %s", name, claim.Status.Phase)
			case pod.Spec.NodeName != nodes[name]:
				return fmt.Errorf("pod %s is on %q, not on %s; claim: %q, %s", name, pod.Spec.NodeName, nodes[name], claim.Spec.VolumeName,
					claim.Status.Phase)
			case volumes[name] != "" && claim.Spec.VolumeName != w.Name+"-"+volumes[name]:
				return fmt.Errorf("claim %s has volume %q, not %s", name, claim.Spec.VolumeName, volumes[name])
			}
		}
		return nil
	})
}

func TestE2EVolumesLocal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.queue("a", 1)
	nodes := w.Nodes(3, "cpu=4,memory=16Gi")
	w.localClass("")
	w.volume("v1", nodes[1])
	w.volume("v2", nodes[2])
	w.claim("c1")
	w.claim("c2")
	w.claimants("gang", "c1", "c2")
	w.Wait("both pods are bound", func() error {
		for _, name := range []string{"c1", "c2"} {
			pod := &corev1.Pod{}
			if err := w.Get(name, pod); err != nil || pod.Spec.NodeName == "" {
				return fmt.Errorf("pod %s has no node (%w)", name, err)
			}
		}
		return nil
	})
	on := map[string]string{}
	for _, name := range []string{"c1", "c2"} {
		claim := &corev1.PersistentVolumeClaim{}
		if err := w.Get(name, claim); err != nil {
			t.Fatal(err)
		}
		on[name] = map[string]string{w.Name + "-v1": nodes[1], w.Name + "-v2": nodes[2]}[claim.Spec.VolumeName]
	}
	if on["c1"] == on["c2"] || on["c1"] == "" || on["c2"] == "" {
		t.Fatalf("the claims have the volumes of nodes %v", on)
	}
	w.bound(on, nil)
}

// TestE2EVolumesOfAGangThatWaits checks a gang in which one pod has no volume: no pods and no volumes are bound until the volume exists.
func TestE2EVolumesOfAGangThatWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.queue("a", 1)
	nodes := w.Nodes(2, "cpu=4,memory=16Gi")
	w.localClass("")
	w.volume("v1", nodes[0])
	w.claim("c1")
	w.claim("c2")
	w.claimants("gang", "c1", "c2")
	w.Wait("a pod says that it lacks a volume", func() error {
		said := ""
		for _, pod := range w.Pods("") {
			for _, c := range pod.Status.Conditions {
				said += c.Message + "\n"
			}
		}
		if !strings.Contains(said, "persistent volumes") {
			return fmt.Errorf("they say %q", said)
		}
		return nil
	})
	v, err := w.Kube.CoreV1().PersistentVolumes().Get(w.Context, w.Name+"-v1", metav1.GetOptions{})
	if err != nil || v.Spec.ClaimRef != nil || v.Status.Phase != corev1.VolumeAvailable {
		t.Fatalf("while the gang waits its volume is %s, for %v (%v)", v.Status.Phase, v.Spec.ClaimRef, err)
	}
	w.volume("v2", nodes[1])
	w.Kubectl("wait", "pod/c1", "pod/c2", "--for=jsonpath={.status.phase}=Running")
}

// TestE2EVolumesProvisioned checks that a volume is created for the chosen node. The test acts as the provisioner.
func TestE2EVolumesProvisioned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.queue("a", 1)
	nodes := w.Nodes(1, "cpu=4,memory=16Gi")
	w.localClass("volumes.example.com")
	w.claim("c1")
	w.claimants("gang", "c1")
	claim := &corev1.PersistentVolumeClaim{}
	w.Wait("the claim says for which node", func() error {
		if err := w.Get("c1", claim); err != nil {
			return err
		}
		if node := claim.Annotations["volume.kubernetes.io/selected-node"]; node != nodes[0] {
			return fmt.Errorf("it says %q", node)
		}
		return nil
	})
	pod := &corev1.Pod{}
	if err := w.Get("c1", pod); err != nil || pod.Spec.NodeName != "" {
		t.Fatalf("before there is a volume the pod is on %q (%v)", pod.Spec.NodeName, err)
	}
	w.Apply(fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: "${world}-made", annotations: {pv.kubernetes.io/provisioned-by: volumes.example.com}}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: ${world}-local
  persistentVolumeReclaimPolicy: Retain
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: "${namespace}", name: c1, uid: %s}
  csi: {driver: volumes.example.com, volumeHandle: made}
`, claim.UID))
	w.forgetLater(func(ctx context.Context) error {
		return w.Kube.CoreV1().PersistentVolumes().Delete(ctx, w.Name+"-made", metav1.DeleteOptions{})
	})
	w.bound(map[string]string{"c1": nodes[0]}, map[string]string{"c1": "made"})
}
