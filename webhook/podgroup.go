package webhook

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// podOfGroup is a CEL condition: o is the controller of pods without a PodGroup, according to the name of the PodGroup.
const podOfGroup = "object.?metadata.?name.orValue('') == 'podgroup-' + o.uid"

// controlledBy returns a CEL condition: the object has a controller o for which a condition is true.
func controlledBy(is string) string {
	return "object.?metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && (" + is + "))"
}

// newPodGroupEndpoints returns the endpoints of PodGroups: defaults and validation. A PodGroup has no status subresource. Schedulers often
// change only its status. The API server does not send such changes to these endpoints.
func newPodGroupEndpoints(table *Table, in cluster, m *metrics) []*endpoint {
	h := &tableHandler{table: table, cluster: in, metrics: m}
	e := endpoint{group: schedulingv1beta1.GroupName, version: schedulingv1beta1.GroupVersion.Version, resource: "podgroups"}
	mutate, validate := e, e
	mutate.path, mutate.name, mutate.mutating = "/podgroups/mutate", "mutate-podgroups.celsius.dev", true
	mutate.operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
	if !table.fillsIn() {
		mutate.conditions = []condition{{name: "leaves-something-open", expression: "!(object.?status.?phase.orValue('') in ['', 'Pending']) " +
			"&& !" + controlledBy(podOfGroup) + " || object.?spec.?queue.orValue('') in ['', 'default'] && !" +
			controlledBy(podOfGroup+" || o.kind == 'Job' && o.apiVersion.startsWith('batch.volcano.sh/')")}}
	}
	mutate.handler = admission.HandlerFunc(h.fillIn)
	validate.path, validate.name = "/podgroups/validate", "validate-podgroups.celsius.dev"
	validate.operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	validate.conditions = []condition{{name: "spec-changed", expression: "oldObject == null || object.?spec != oldObject.?spec"}}
	validate.handler = admission.HandlerFunc(h.validate)
	return []*endpoint{&mutate, &validate}
}
