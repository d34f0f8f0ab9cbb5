package webhook

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// groupOfPod is the annotation in which a pod names its PodGroup. queueOfPod is the annotation in which a pod without a PodGroup names its
// queue.
const (
	groupOfPod = schedulingv1beta1.KubeGroupNameAnnotationKey
	queueOfPod = `annotations["` + schedulingv1beta1.QueueNameAnnotationKey + `"]`
)

// newPodEndpoints returns the endpoints of Pods. If only built-in rows exist, pods pass while the webhook is unavailable. Then only pods
// with a field that a row reads are sent to it. A cluster's own rules must apply to all pods of our schedulers. They see each new pod, and
// each change of annotations, labels or owners, through any subresource: no pod passes while the webhook is unavailable.
func newPodEndpoints(table *Table, o Options, in cluster, m *metrics) []*endpoint {
	h := &tableHandler{table: table, cluster: in, metrics: m, related: groupOf}
	e := endpoint{
		version: "v1", resource: "pods", operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		conditions: []condition{{
			name: "our-scheduler", expression: fmt.Sprintf("object.?spec.schedulerName.orValue('') in [%s]", quoted(o.SchedulerNames...)),
		}},
	}
	mutate, validate := e, e
	mutate.path, mutate.name, mutate.mutating = "/pods/mutate", "mutate-pods.celsius.dev", true
	mutate.handler = admission.HandlerFunc(h.fillIn)
	validate.path, validate.name = "/pods/validate", "validate-pods.celsius.dev"
	validate.handler = admission.HandlerFunc(h.validate)
	if len(table.own) == 0 {
		validate.optional = true
		validate.conditions = append(validate.conditions, condition{name: "says-something", expression: fmt.Sprintf(
			"object.metadata.?annotations.orValue({}).exists(a, a in [%s] || a == %s && "+
				"!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false)))",
			quoted(schedulingv1beta1.JDBMinAvailable, schedulingv1beta1.JDBMaxUnavailable, schedulingv1beta1.QueueNameAnnotationKey),
			quoted(groupOfPod))})
	} else {
		validate.operations = append(validate.operations[:1:1], admissionregistrationv1.Update)
		validate.subresources = kinds()[podKind].subresources
		validate.conditions = append(validate.conditions, condition{name: "says-something-else", expression: "oldObject == null || " +
			"object.metadata.?annotations != oldObject.metadata.?annotations || object.metadata.?labels != oldObject.metadata.?labels || " +
			"object.metadata.?ownerReferences != oldObject.metadata.?ownerReferences"})
	}
	if !table.fillsIn() {
		return []*endpoint{&validate}
	}
	return []*endpoint{&mutate, &validate}
}

// groupOf returns the PodGroup that a Pod names.
func groupOf(pod map[string]any) (kind schema.GroupVersionKind, name string) {
	annotations, _ := fieldsOf(pod, "metadata")["annotations"].(map[string]any)
	name, _ = annotations[groupOfPod].(string)
	return schedulingv1beta1.GroupVersion.WithKind("PodGroup"), name
}

// newCommandEndpoints returns the endpoint that validates Commands. The guard and the controllers decide what a Command may do. Therefore
// Commands pass while the webhook is unavailable, unless the cluster has rules of its own for Commands.
func newCommandEndpoints(table *Table, l lifecycles, in cluster, m *metrics) []*endpoint {
	h := &tableHandler{table: table, cluster: in, metrics: m, related: targetOf, commandActions: l.commandActions()}
	return []*endpoint{{
		path: "/commands/validate", name: "validate-commands.celsius.dev",
		group: busv1alpha1.GroupName, version: busv1alpha1.GroupVersion.Version, resource: "commands",
		operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		conditions: []condition{{
			name:       "says-something-else",
			expression: "oldObject == null || object.?action != oldObject.?action || object.?target != oldObject.?target",
		}},
		optional: len(table.own) == 0,
		handler:  admission.HandlerFunc(h.validate),
	}}
}

// targetOf returns the Job that a Command targets.
func targetOf(command map[string]any) (kind schema.GroupVersionKind, name string) {
	target := fieldsOf(command, "target")
	if version, _ := target["apiVersion"].(string); target["kind"] == jobKind && strings.HasPrefix(version, batchv1alpha1.GroupName+"/") {
		name, _ = target["name"].(string)
	}
	return batchv1alpha1.GroupVersion.WithKind(jobKind), name
}

// relatedTo reads the object that an object refers to. Only warnings use the result. If the read fails, the handler logs the cause and
// gives no warning.
func (h *tableHandler) relatedTo(ctx context.Context, namespace string, object map[string]any) (*Related, error) {
	kind, name := h.related(object)
	if name == "" || h.find == nil {
		return &Related{}, nil
	}
	found, err := h.find(ctx, kind, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "what an object speaks of is not known, so nothing is said of it", "kind", h.table.Kind)
		return &Related{}, nil
	}
	return found, nil
}

// newCronJobEndpoints returns the endpoint that validates CronJobs.
func newCronJobEndpoints(table *Table, l lifecycles, in cluster, m *metrics) []*endpoint {
	e := ofMakers(table, l, in, m)
	e.group, e.version, e.resource = batchv1alpha1.GroupName, batchv1alpha1.GroupVersion.Version, "cronjobs"
	e.path, e.name = "/cronjobs/validate", "validate-cronjobs.celsius.dev"
	e.conditions = []condition{{name: "spec-changed", expression: "oldObject == null || object.spec != oldObject.spec"}}
	return []*endpoint{e}
}

// newFlowEndpoints returns the endpoints that validate JobFlows and JobTemplates.
func newFlowEndpoints(jobFlows, jobTemplates *Table, l lifecycles, in cluster, m *metrics) (out []*endpoint) {
	for _, table := range []*Table{jobFlows, jobTemplates} {
		e, resource := ofMakers(table, l, in, m), kinds()[table.Kind].resource
		e.group, e.version, e.resource = flowv1alpha1.GroupName, flowv1alpha1.GroupVersion.Version, resource
		e.path, e.name = "/"+resource+"/validate", "validate-"+resource+".celsius.dev"
		e.conditions = []condition{{name: "spec-changed", expression: "oldObject == null || object.?spec != oldObject.?spec"}}
		out = append(out, e)
	}
	return out
}

// ofMakers returns an endpoint for a kind from whose objects the controllers create Jobs.
func ofMakers(table *Table, l lifecycles, in cluster, m *metrics) *endpoint {
	h := &tableHandler{table: table, cluster: in, machine: l.job, plugins: l.plugins, metrics: m}
	return &endpoint{
		operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		handler:    admission.HandlerFunc(h.validate),
	}
}
