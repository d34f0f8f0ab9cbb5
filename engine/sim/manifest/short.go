package manifest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShortWorld is the short format: a whole world in a few lines, for scenarios and
// benchmarks. It states only what matters; everything else has a default.
//
//	apiVersion: sim.celsius.dev/v1alpha1
//	kind: World
//	nodes:
//	- {name: "n[1-3]", cpu: 4, memory: 8Gi}
//	jobs:
//	- {name: train, replicas: 3, cpu: 2}
//
// Names may hold one range in brackets, which stands for one object each: n[1-3] is
// n1, n2 and n3, and n[01-10] keeps the zeros.
type ShortWorld struct {
	// APIVersion is sim.celsius.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is World.
	Kind string `json:"kind"`
	// Nodes of the cluster.
	Nodes []ShortNode `json:"nodes"`
	// Queues beside root and default, which are always there.
	Queues []ShortQueue `json:"queues"`
	// Quotas are ResourceQuotas.
	Quotas []ShortQuota `json:"quotas"`
	// StorageClasses that claims and volumes name.
	StorageClasses []ShortStorageClass `json:"storageClasses"`
	// Volumes are PersistentVolumes.
	Volumes []ShortVolume `json:"volumes"`
	// Claims are PersistentVolumeClaims, which pods name under claims.
	Claims []ShortClaim `json:"claims"`
	// PriorityClasses by name, each with its value.
	PriorityClasses map[string]int32 `json:"priorityClasses"`
	// Jobs are PodGroups with their pods.
	Jobs []ShortJob `json:"jobs"`
	// Pods are pods without a job: of ours, where each gets a PodGroup of its own, or another scheduler's.
	Pods []ShortPod `json:"pods"`
}

// ShortNode is a node. It is ready and has no taints unless it says so.
type ShortNode struct {
	// Name, or a range of names.
	Name string `json:"name"`
	// CPU in cores; default 8.
	CPU *resource.Quantity `json:"cpu"`
	// Memory in bytes; default 32Gi.
	Memory *resource.Quantity `json:"memory"`
	// Pods is how many pods the node takes; default 110.
	Pods *resource.Quantity `json:"pods"`
	// GPUs is how many devices the node has, as nvidia.com/gpu.
	GPUs int32 `json:"gpus"`
	// GPUModel names the model of all its devices.
	GPUModel string `json:"gpuModel"`
	// GPUMemory of each device, in bytes.
	GPUMemory *resource.Quantity `json:"gpuMemory"`
	// Extended resources by name.
	Extended map[string]resource.Quantity `json:"extended"`
	// Labels of the node. kubernetes.io/hostname is always there.
	Labels map[string]string `json:"labels"`
	// Annotations of the node.
	Annotations map[string]string `json:"annotations"`
	// Taints, each written key=value:Effect or key:Effect.
	Taints []string `json:"taints"`
	// Images that the node has, by name, each with its size in bytes.
	Images map[string]resource.Quantity `json:"images"`
	// Unschedulable is a cordoned node.
	Unschedulable bool `json:"unschedulable"`
	// AttachLimits is how many volumes of each driver the node can attach; default no limit.
	AttachLimits map[string]int32 `json:"attachLimits"`
	// Ready is the node's condition; default true.
	Ready *bool `json:"ready"`
}

// ShortQueue is a queue.
type ShortQueue struct {
	// Name, or a range of names.
	Name string `json:"name"`
	// Weight against its siblings; default 1.
	Weight *int32 `json:"weight"`
	// Priority of the queue; default 0.
	Priority int32 `json:"priority"`
	// Parent queue; default none, which is root.
	Parent string `json:"parent"`
	// Capability is the most that the queue may hold.
	Capability map[string]resource.Quantity `json:"capability"`
	// Deserved is what the queue may hold before others may reclaim from it.
	Deserved map[string]resource.Quantity `json:"deserved"`
	// Guarantee is what no other queue may take.
	Guarantee map[string]resource.Quantity `json:"guarantee"`
	// Reclaimable says whether others may reclaim from it; default true.
	Reclaimable *bool `json:"reclaimable"`
	// DequeueStrategy is fifo or traverse; default traverse.
	DequeueStrategy string `json:"dequeueStrategy"`
	// NodeGroups is spec.affinity: the groups of nodes that the queue is for or against.
	NodeGroups *ShortNodeGroups `json:"nodeGroups"`
	// State is Open, Closing or Closed; default Open.
	State string `json:"state"`
	// Created is how long ago, or when; default now.
	Created string `json:"created"`
	// Labels of the queue.
	Labels map[string]string `json:"labels"`
	// Annotations of the queue.
	Annotations map[string]string `json:"annotations"`
}

// ShortNodeGroups names groups of nodes, by their label volcano.sh/nodegroup-name.
type ShortNodeGroups struct {
	// Required groups are those to run on.
	Required []string `json:"required"`
	// Preferred groups are those that are better.
	Preferred []string `json:"preferred"`
	// AntiRequired groups are those to keep away from.
	AntiRequired []string `json:"antiRequired"`
	// AntiPreferred groups are those to keep away from if possible.
	AntiPreferred []string `json:"antiPreferred"`
}

// ShortQuota is a ResourceQuota.
type ShortQuota struct {
	// Name, or a range of names.
	Name string `json:"name"`
	// Namespace; default "default".
	Namespace string `json:"namespace"`
	// Hard limits by name: cpu, requests.cpu, pods.
	Hard map[string]resource.Quantity `json:"hard"`
	// Used of them; where it is left out, it is counted from the pods of the namespace whose jobs were let in.
	Used map[string]resource.Quantity `json:"used"`
}

// ShortJob is a PodGroup and its pods. One that lists no tasks is itself its one
// task: its pods are <job>-<index>. With tasks they are <job>-<task>-<index>.
type ShortJob struct {
	// Name, or a range of names.
	Name string `json:"name"`
	// Namespace; default "default".
	Namespace string `json:"namespace"`
	// Queue; default "default".
	Queue string `json:"queue"`
	// Min is how many pods must start together; default all (of a task with a min: that many).
	Min *int32 `json:"min"`
	// Priority is the name of the priority class of the PodGroup, and of the pods of tasks that name none.
	Priority string `json:"priority"`
	// MinResources is what the job reserves when it is let in; default nothing.
	MinResources map[string]resource.Quantity `json:"minResources"`
	// AutoMinResources has MinResources derived as the controllers derive it for a Volcano Job: what ResourceQuotas count of its first Min
	// pods.
	AutoMinResources bool `json:"autoMinResources"`
	// Phase of the PodGroup: Pending, Inqueue, Running, Unknown, Completed; default Running where a pod has a node, else Pending.
	Phase string `json:"phase"`
	// Created is how long ago (5m), or when (2026-01-31T12:00:00Z); default now.
	Created string `json:"created"`
	// Comes is how long from now the job is submitted; default now.
	Comes *metav1.Duration `json:"comes"`
	// Labels of the PodGroup.
	Labels map[string]string `json:"labels"`
	// Annotations of the PodGroup.
	Annotations map[string]string `json:"annotations"`
	// Tasks are the job's roles.
	Tasks []ShortTask `json:"tasks"`
	// Replicas of the one task, where no tasks are listed; default 1.
	Replicas *int32 `json:"replicas"`
	// ShortSpec of the one task, where no tasks are listed.
	ShortSpec
}

// ShortTask is a role of a job.
type ShortTask struct {
	// Name of the role; default task<index>.
	Name string `json:"name"`
	// Replicas is how many pods; default 1.
	Replicas *int32 `json:"replicas"`
	// Min of these that must start together; default all.
	Min *int32 `json:"min"`
	// Priority is the name of the pods' priority class; default the job's.
	Priority string `json:"priority"`
	// Labels of the pods, in addition to those that the controllers write.
	Labels map[string]string `json:"labels"`
	// Annotations of the pods, in addition to those that the controllers write.
	Annotations map[string]string `json:"annotations"`
	ShortSpec
}

// ShortPod is a pod without a job.
type ShortPod struct {
	// Name, or a range of names.
	Name string `json:"name"`
	// Namespace; default "default".
	Namespace string `json:"namespace"`
	// Scheduler; default celsius. Another's name makes the pod usage only.
	Scheduler string `json:"scheduler"`
	// Queue of the PodGroup that the pod gets; default "default".
	Queue string `json:"queue"`
	// Created is how long ago, or when; default now.
	Created string `json:"created"`
	// Comes is how long from now the pod is submitted; default now.
	Comes *metav1.Duration `json:"comes"`
	// Priority is the name of the pod's priority class.
	Priority string `json:"priority"`
	// Labels of the pod.
	Labels map[string]string `json:"labels"`
	// Annotations of the pod.
	Annotations map[string]string `json:"annotations"`
	ShortSpec
}

// ShortSpec is what a pod asks for, and where it is.
type ShortSpec struct {
	// CPU in cores; default none.
	CPU *resource.Quantity `json:"cpu"`
	// Memory in bytes; default none.
	Memory *resource.Quantity `json:"memory"`
	// GPUs is how many devices; with GPUMilli or GPUMemory that part of each, else whole ones.
	GPUs int32 `json:"gpus"`
	// GPUMilli is how many thousandths of each device; GPUs is then 1 unless it is given.
	GPUMilli int32 `json:"gpuMilli"`
	// GPUMemory of each device, in bytes.
	GPUMemory *resource.Quantity `json:"gpuMemory"`
	// GPUModels that will do; default any.
	GPUModels []string `json:"gpuModels"`
	// Extended resources by name.
	Extended map[string]resource.Quantity `json:"extended"`
	// NodeSelector is the labels that the node must have.
	NodeSelector map[string]string `json:"nodeSelector"`
	// Tolerations, each written key=value:Effect, key:Effect, key=value or key; "*" tolerates all.
	Tolerations []string `json:"tolerations"`
	// Affinity to nodes and other pods, as in spec.affinity of a pod.
	Affinity *corev1.Affinity `json:"affinity"`
	// Spread is spec.topologySpreadConstraints of a pod.
	Spread []corev1.TopologySpreadConstraint `json:"spread"`
	// Image of its one container; default main.
	Image string `json:"image"`
	// Ports of the host that it claims.
	Ports []int32 `json:"ports"`
	// Claims that it mounts, by name. Replicas share them.
	Claims []string `json:"claims"`
	// Gated pods have a scheduling gate.
	Gated bool `json:"gated"`
	// Node where it already is. The pods of a task, or of a range of names, get the nodes of a range in turn.
	Node string `json:"node"`
	// Status: Pending, Bound, Running, Releasing, Succeeded, Failed; default Running with a node, else Pending.
	Status string `json:"status"`
	// Run is how long it runs before it ends; default until it is deleted.
	Run *metav1.Duration `json:"run"`
	// ExitCode it ends with after Run: 0, the default, is success.
	ExitCode int32 `json:"exitCode"`
}
