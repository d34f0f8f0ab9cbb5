package manifest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShortWorld is the short format: a whole world in a few lines, for scenarios and benchmarks. Everything that is not stated has a default.
//
//	apiVersion: sim.celsius.dev/v1alpha1
//	kind: World
//	nodes:
//	- {name: "n[1-3]", cpu: 4, memory: 8Gi}
//	jobs:
//	- {name: train, replicas: 3, cpu: 2}
//
// A name may contain one range in brackets. It then stands for several objects: n[1-3] is n1, n2 and n3. n[01-10] keeps the zeros.
type ShortWorld struct {
	// APIVersion is sim.celsius.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is World.
	Kind string `json:"kind"`
	// Nodes of the cluster.
	Nodes []ShortNode `json:"nodes"`
	// Queues in addition to root and default, which always exist.
	Queues []ShortQueue `json:"queues"`
	// Quotas are ResourceQuotas.
	Quotas []ShortQuota `json:"quotas"`
	// StorageClasses that claims and volumes refer to.
	StorageClasses []ShortStorageClass `json:"storageClasses"`
	// Volumes are PersistentVolumes.
	Volumes []ShortVolume `json:"volumes"`
	// Claims are PersistentVolumeClaims. Pods refer to them under claims.
	Claims []ShortClaim `json:"claims"`
	// PriorityClasses by name, each with its value.
	PriorityClasses map[string]int32 `json:"priorityClasses"`
	// Jobs are PodGroups with their pods.
	Jobs []ShortJob `json:"jobs"`
	// Pods are pods without a job. Each of our pods gets its own PodGroup. Other pods belong to another scheduler.
	Pods []ShortPod `json:"pods"`
}

// ShortNode is a node. By default it is ready and has no taints.
type ShortNode struct {
	// Name, or a range of names.
	Name string `json:"name"`
	// CPU in cores; default 8.
	CPU *resource.Quantity `json:"cpu"`
	// Memory in bytes; default 32Gi.
	Memory *resource.Quantity `json:"memory"`
	// Pods is the maximum number of pods; default 110.
	Pods *resource.Quantity `json:"pods"`
	// GPUs is the number of devices, as nvidia.com/gpu.
	GPUs int32 `json:"gpus"`
	// GPUModel is the model of all its devices.
	GPUModel string `json:"gpuModel"`
	// GPUMemory of each device, in bytes.
	GPUMemory *resource.Quantity `json:"gpuMemory"`
	// Extended resources by name.
	Extended map[string]resource.Quantity `json:"extended"`
	// Labels of the node. kubernetes.io/hostname always exists.
	Labels map[string]string `json:"labels"`
	// Annotations of the node.
	Annotations map[string]string `json:"annotations"`
	// Taints, each written key=value:Effect or key:Effect.
	Taints []string `json:"taints"`
	// Images that the node has, by name, each with its size in bytes.
	Images map[string]resource.Quantity `json:"images"`
	// Unschedulable means that the node is cordoned.
	Unschedulable bool `json:"unschedulable"`
	// AttachLimits is the maximum number of attached volumes by driver; default no limit.
	AttachLimits map[string]int32 `json:"attachLimits"`
	// Ready is the condition Ready of the node; default true.
	Ready *bool `json:"ready"`
}

// ShortQueue is a queue.
type ShortQueue struct {
	// Name, or a range of names.
	Name string `json:"name"`
	// Weight relative to its siblings; default 1.
	Weight *int32 `json:"weight"`
	// Priority of the queue; default 0.
	Priority int32 `json:"priority"`
	// Parent queue; default none, which is root.
	Parent string `json:"parent"`
	// Capability is the maximum usage of the queue.
	Capability map[string]resource.Quantity `json:"capability"`
	// Deserved is the usage up to which other queues cannot reclaim from it.
	Deserved map[string]resource.Quantity `json:"deserved"`
	// Guarantee is reserved for the queue.
	Guarantee map[string]resource.Quantity `json:"guarantee"`
	// Reclaimable allows other queues to reclaim from it; default true.
	Reclaimable *bool `json:"reclaimable"`
	// DequeueStrategy is fifo or traverse; default traverse.
	DequeueStrategy string `json:"dequeueStrategy"`
	// NodeGroups is spec.affinity: the node groups that the queue requires, prefers or avoids.
	NodeGroups *ShortNodeGroups `json:"nodeGroups"`
	// State is Open, Closing or Closed; default Open.
	State string `json:"state"`
	// Created is the age (5m) or the creation time; default now.
	Created string `json:"created"`
	// Labels of the queue.
	Labels map[string]string `json:"labels"`
	// Annotations of the queue.
	Annotations map[string]string `json:"annotations"`
}

// ShortNodeGroups contains the names of node groups, from the label volcano.sh/nodegroup-name.
type ShortNodeGroups struct {
	// Required groups are the only groups to run on.
	Required []string `json:"required"`
	// Preferred groups get a higher score.
	Preferred []string `json:"preferred"`
	// AntiRequired groups must not be used.
	AntiRequired []string `json:"antiRequired"`
	// AntiPreferred groups get a lower score.
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
	// Used amounts; by default they are computed from the pods of the namespace whose jobs are admitted.
	Used map[string]resource.Quantity `json:"used"`
}

// ShortJob is a PodGroup and its pods. A job without tasks has a single task: its pods are <job>-<index>. With tasks they are
// <job>-<task>-<index>.
type ShortJob struct {
	// Name, or a range of names.
	Name string `json:"name"`
	// Namespace; default "default".
	Namespace string `json:"namespace"`
	// Queue; default "default".
	Queue string `json:"queue"`
	// Min is the number of pods that must start together; default all (for a task with a min: that number).
	Min *int32 `json:"min"`
	// Priority is the priority class of the PodGroup, and of the pods of tasks without one.
	Priority string `json:"priority"`
	// MinResources is what the job reserves when it is admitted; default nothing.
	MinResources map[string]resource.Quantity `json:"minResources"`
	// AutoMinResources computes MinResources as the controllers do for a Volcano Job: the amounts that ResourceQuotas count for its first Min
	// pods.
	AutoMinResources bool `json:"autoMinResources"`
	// Phase of the PodGroup: Pending, Inqueue, Running, Unknown, Completed; default Running if a pod has a node, else Pending.
	Phase string `json:"phase"`
	// Created is the age (5m) or the creation time (2026-01-31T12:00:00Z); default now.
	Created string `json:"created"`
	// Comes is the time from now until the job is submitted; default 0.
	Comes *metav1.Duration `json:"comes"`
	// Labels of the PodGroup.
	Labels map[string]string `json:"labels"`
	// Annotations of the PodGroup.
	Annotations map[string]string `json:"annotations"`
	// Tasks are the job's roles.
	Tasks []ShortTask `json:"tasks"`
	// Replicas of the single task, if no tasks are listed; default 1.
	Replicas *int32 `json:"replicas"`
	// ShortSpec of the single task, if no tasks are listed.
	ShortSpec
}

// ShortTask is a role of a job.
type ShortTask struct {
	// Name of the role; default task<index>.
	Name string `json:"name"`
	// Replicas is the number of pods; default 1.
	Replicas *int32 `json:"replicas"`
	// Min is the number of these pods that must start together; default all.
	Min *int32 `json:"min"`
	// Priority is the pods' priority class; default the job's.
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
	// Scheduler; default celsius. A pod with another name only counts as usage.
	Scheduler string `json:"scheduler"`
	// Queue of the PodGroup that the pod gets; default "default".
	Queue string `json:"queue"`
	// Created is the age or the creation time; default now.
	Created string `json:"created"`
	// Comes is the time from now until the pod is submitted; default 0.
	Comes *metav1.Duration `json:"comes"`
	// Priority is the pod's priority class.
	Priority string `json:"priority"`
	// Labels of the pod.
	Labels map[string]string `json:"labels"`
	// Annotations of the pod.
	Annotations map[string]string `json:"annotations"`
	ShortSpec
}

// ShortSpec contains the requests of a pod, and its state.
type ShortSpec struct {
	// CPU in cores; default none.
	CPU *resource.Quantity `json:"cpu"`
	// Memory in bytes; default none.
	Memory *resource.Quantity `json:"memory"`
	// GPUs is the number of devices. With GPUMilli or GPUMemory the pod uses that part of each, otherwise whole devices.
	GPUs int32 `json:"gpus"`
	// GPUMilli is the used part of each device, in thousandths. Then GPUs is 1 by default.
	GPUMilli int32 `json:"gpuMilli"`
	// GPUMemory of each device, in bytes.
	GPUMemory *resource.Quantity `json:"gpuMemory"`
	// GPUModels are the allowed models; default any.
	GPUModels []string `json:"gpuModels"`
	// Extended resources by name.
	Extended map[string]resource.Quantity `json:"extended"`
	// NodeSelector contains the labels that the node must have.
	NodeSelector map[string]string `json:"nodeSelector"`
	// Tolerations, each written key=value:Effect, key:Effect, key=value or key; "*" tolerates all taints.
	Tolerations []string `json:"tolerations"`
	// Affinity to nodes and other pods, as in spec.affinity of a pod.
	Affinity *corev1.Affinity `json:"affinity"`
	// Spread is spec.topologySpreadConstraints of a pod.
	Spread []corev1.TopologySpreadConstraint `json:"spread"`
	// Image of its only container; default main.
	Image string `json:"image"`
	// Ports are host ports.
	Ports []int32 `json:"ports"`
	// Claims that it mounts, by name. Replicas share them.
	Claims []string `json:"claims"`
	// Gated pods have a scheduling gate.
	Gated bool `json:"gated"`
	// Node on which it already is. The pods of a task, or of a range of names, get the nodes of a range in turn.
	Node string `json:"node"`
	// Status: Pending, Bound, Running, Releasing, Succeeded, Failed; default Running with a node, else Pending.
	Status string `json:"status"`
	// Run is how long it runs before it ends; default: until it is deleted.
	Run *metav1.Duration `json:"run"`
	// ExitCode at the end of Run: 0, the default, is success.
	ExitCode int32 `json:"exitCode"`
}
