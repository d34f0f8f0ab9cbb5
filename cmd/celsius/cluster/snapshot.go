package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// snapshotKinds returns the kinds that a scheduler reads, in the order in which they are written. Kinds that others refer to come first.
func snapshotKinds() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, of := range []struct{ group, version, kinds string }{
		{"", "v1", "Namespace Node"},
		{"scheduling.k8s.io", "v1", "PriorityClass"},
		{"scheduling.celsius.dev", "v1alpha1", "SchedulingPolicy"},
		{"scheduling.volcano.sh", "v1beta1", "Queue PodGroup"},
		{"batch.volcano.sh", "v1alpha1", "Job"},
		{"", "v1", "Pod ResourceQuota LimitRange PersistentVolume PersistentVolumeClaim"},
		{"policy", "v1", "PodDisruptionBudget"},
		{"storage.k8s.io", "v1", "StorageClass CSINode CSIDriver CSIStorageCapacity VolumeAttachment"},
		{"nodeinfo.volcano.sh", "v1alpha1", "Numatopology"},
		{"metrics.k8s.io", "v1beta1", "NodeMetrics"},
	} {
		for kind := range strings.FieldsSeq(of.kinds) {
			out = append(out, schema.GroupVersionKind{Group: of.group, Version: of.version, Kind: kind})
		}
	}
	return out
}

// pageOfSnapshot is how many objects one request reads.
const pageOfSnapshot = 500

func (t *tool) snapshotCommand() *cobra.Command {
	var to string
	var anonymous bool
	c := &cobra.Command{
		Use:   "snapshot",
		Short: "Write what a scheduler reads of a cluster, for simulate",
		Long: `Write all that a scheduler reads of a cluster as YAML, for celsius simulate: to
try another policy on it, to examine a decision again, or to send it to
someone else.

No Secret or ConfigMap is read. Of pods and of templates of Jobs only that is
kept which places them: no environment, commands, probes or volumes but claims.
Labels and annotations stay.

With --anonymize names of namespaces, nodes, pods, Jobs, PodGroups, Queues,
classes, claims and volumes, values of labels that are not Kubernetes' or
Volcano's, and images become numbers, in the order of what they stand for, so
that the same is decided; annotations but those that a scheduler reads, and
messages, are left out. Names within expressions of policies stay as they are.`,
		Example: `  celsius snapshot --to cluster.yaml
  celsius snapshot | celsius simulate --policy new.yaml -
  celsius snapshot --anonymize --to report.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			r, _, err := t.reach(true)
			if err != nil {
				return err
			}
			objects, err := takeSnapshot(c.Context(), r, func(kind string, err error) { say(c.ErrOrStderr(), "%ss are left out: %v\n", kind, err) })
			if err != nil {
				return err
			}
			if anonymous {
				Anonymize(objects)
			}
			out := c.OutOrStdout()
			if to != "" {
				file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) // it contains data of a whole cluster
				if err != nil {
					return fmt.Errorf("--to: %w", err)
				}
				defer func() { err = errors.Join(err, file.Close()) }()
				out = file
			}
			return writeSnapshot(out, objects)
		},
	}
	c.Flags().StringVar(&to, "to", "", "write to this file instead of standard output")
	c.Flags().BoolVar(&anonymous, "anonymize", false, "write numbers in place of names")
	return c
}

// takeSnapshot reads a cluster. It omits kinds that the user may not read, and calls leftOut for them. It also omits kinds that the cluster
// does not have, without a call.
func takeSnapshot(ctx context.Context, r *Reach, leftOut func(kind string, err error)) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, gvk := range snapshotKinds() {
		objects, err := listAll(ctx, r, gvk)
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			continue // the cluster does not have this kind
		case apierrors.IsForbidden(err):
			leftOut(gvk.Kind, err)
			continue
		case err != nil:
			return nil, fmt.Errorf("list %ss: %w", gvk.Kind, err)
		}
		for _, o := range objects {
			Trim(o)
			out = append(out, o)
		}
	}
	return out, nil
}

func listAll(ctx context.Context, r *Reach, gvk schema.GroupVersionKind, of ...client.ListOption) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for next := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := r.List(ctx, list, append(of, client.Limit(pageOfSnapshot), client.Continue(next))...); err != nil {
			return nil, err
		}
		for i := range list.Items {
			o := &list.Items[i]
			o.SetGroupVersionKind(gvk)
			out = append(out, o)
		}
		if next = list.GetContinue(); next == "" {
			return out, nil
		}
	}
}

func writeSnapshot(to io.Writer, objects []*unstructured.Unstructured) error {
	w := bufio.NewWriter(to)
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return fmt.Errorf("write %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return fmt.Errorf("write the snapshot: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the snapshot: %w", err)
	}
	return nil
}

// Trim removes everything from an object that a scheduler does not read. Of pods it keeps what determines their placement.
func Trim(o *unstructured.Unstructured) {
	keepOf(o.Object, "metadata", "name namespace uid labels annotations creationTimestamp deletionTimestamp deletionGracePeriodSeconds "+
		"ownerReferences")
	annotations := o.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	o.SetAnnotations(annotations)
	switch o.GetKind() {
	case "Namespace":
		keep(o.Object, "apiVersion kind metadata")
	case "Node":
		keepOf(o.Object, "spec", "taints unschedulable")
		keepOf(o.Object, "status", "allocatable capacity conditions images")
	case "Pod":
		trimPod(o.Object)
		keepOf(o.Object, "status", "phase conditions startTime nominatedNodeName resourceClaimStatuses containerStatuses initContainerStatuses")
		trimStatuses(o.Object)
	case "Job":
		spec, _ := o.Object["spec"].(map[string]any)
		if plugins, ok := spec["plugins"].(map[string]any); ok {
			for name := range plugins {
				plugins[name] = []any{} // arguments may contain keys
			}
		}
		for _, task := range listOf(spec, "tasks") {
			if template, ok := task["template"].(map[string]any); ok {
				trimPod(template)
			}
		}
	case "PersistentVolume":
		spec, _ := o.Object["spec"].(map[string]any)
		if csi, ok := spec["csi"].(map[string]any); ok {
			keep(csi, "driver volumeHandle")
		}
	case "StorageClass":
		delete(o.Object, "parameters")
	case "VolumeAttachment":
		keepOf(o.Object, "status", "attached")
	}
}

// placing are the names of volume fields that determine on which nodes a pod can run.
const placing = "name persistentVolumeClaim ephemeral csi gcePersistentDisk awsElasticBlockStore azureDisk iscsi rbd"

// trimStatuses keeps only the containers that wait, and their reasons: they explain why a task that depends on the pod waits.
func trimStatuses(pod map[string]any) {
	status, _ := pod["status"].(map[string]any)
	for _, list := range []string{"containerStatuses", "initContainerStatuses"} {
		var waiting []any
		for _, c := range listOf(status, list) {
			state, _ := c["state"].(map[string]any)
			if waits, ok := state["waiting"].(map[string]any); ok {
				waiting = append(waiting, map[string]any{
					"name": c["name"], "ready": false, "state": map[string]any{"waiting": map[string]any{"reason": waits["reason"]}},
				})
			}
		}
		if delete(status, list); waiting != nil {
			status[list] = waiting
		}
	}
}

// trimPod keeps of a pod or pod template what determines its placement.
func trimPod(pod map[string]any) {
	keepOf(pod, "spec", "nodeName schedulerName priority priorityClassName preemptionPolicy nodeSelector affinity tolerations "+
		"topologySpreadConstraints overhead resources resourceClaims schedulingGates schedulingGroup hostNetwork activeDeadlineSeconds "+
		"terminationGracePeriodSeconds restartPolicy runtimeClassName containers initContainers volumes")
	spec, _ := pod["spec"].(map[string]any)
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range listOf(spec, list) {
			keep(c, "name image resources ports restartPolicy")
		}
	}
	var volumes []any
	for _, v := range listOf(spec, "volumes") {
		if keep(v, placing); len(v) > 1 {
			if csi, ok := v["csi"].(map[string]any); ok {
				keep(csi, "driver")
			}
			volumes = append(volumes, v)
		}
	}
	if delete(spec, "volumes"); volumes != nil {
		spec["volumes"] = volumes
	}
}

// listOf returns the objects in a list of an object.
func listOf(in map[string]any, key string) []map[string]any {
	all, _ := in[key].([]any)
	var out []map[string]any
	for _, item := range all {
		if o, ok := item.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// keep removes all fields of an object except the given ones.
func keep(o map[string]any, fields string) {
	these := strings.Fields(fields)
	for field := range o {
		if !slices.Contains(these, field) {
			delete(o, field)
		}
	}
}

// keepOf removes all fields of a nested object except the given ones.
func keepOf(o map[string]any, of, fields string) {
	if within, ok := o[of].(map[string]any); ok {
		keep(within, fields)
	}
}
