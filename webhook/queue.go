package webhook

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// newQueueEndpoints returns the endpoints of Queues: defaults, and validation, which includes deletions. Schedulers and controllers write
// the status through a subresource, which the API server does not send to these endpoints.
func newQueueEndpoints(table *Table, in cluster, m *metrics) []*endpoint {
	h := &tableHandler{table: table, cluster: in, patience: patience, metrics: m}
	e := endpoint{group: schedulingv1beta1.GroupName, version: schedulingv1beta1.GroupVersion.Version, resource: "queues"}
	mutate, validate := e, e
	mutate.path, mutate.name, mutate.mutating = "/queues/mutate", "mutate-queues.celsius.dev", true
	mutate.operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
	mutate.handler = admission.HandlerFunc(h.fillIn)
	validate.path, validate.name = "/queues/validate", "validate-queues.celsius.dev"
	validate.operations = []admissionregistrationv1.OperationType{
		admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
	}
	validate.conditions = []condition{{
		name: "spec-changed", expression: "oldObject == null || object == null || object.?spec != oldObject.?spec || " +
			"object.metadata.?annotations != oldObject.metadata.?annotations",
	}}
	validate.handler = admission.HandlerFunc(h.validate)
	return []*endpoint{&mutate, &validate}
}
