package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	applyv1 "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// queueLister returns all queues of the cluster. The caller must not change them.
type queueLister func(context.Context) ([]schedulingv1beta1.Queue, error)

// cluster contains what rows can read from the cluster.
type cluster struct {
	// schedulerNames are the names of our schedulers. The first one is the default.
	schedulerNames []string
	queues         queueLister
	// queuesNow reads the queues from the API server, because the cache may be a moment behind. nil means that only queues exists.
	queuesNow queueLister
	// annotations returns the annotations of a namespace.
	annotations func(ctx context.Context, namespace string) (map[string]string, error)
	// find reads an object that another object refers to. It returns nil if that does not exist.
	find func(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*Related, error)
	// jobTemplates reads the JobTemplates that a JobFlow names.
	jobTemplates func(ctx context.Context, namespace string, jobFlow map[string]any) ([]JobTemplate, error)
	// authorizer decides what a user may do. nil means that this is not known.
	authorizer authorizer.Authorizer
}

// endpoint is one path of the server, with the conditions under which the API server calls it.
type endpoint struct {
	path string
	// name is the name of the webhook in its configuration. Users see it in a refusal.
	name     string
	mutating bool
	// The resources and operations that the API server sends.
	group, version, resource string
	subresources             []string
	operations               []admissionregistrationv1.OperationType
	// conditions avoid calls. They have names, and expressions in the API server's own dialect.
	conditions []condition
	// optional lets requests pass while the webhook is unavailable.
	optional bool
	handler  admission.Handler
}

type condition struct{ name, expression string }

// shippedTables compiles all built-in tables.
func shippedTables() ([]*Table, error) {
	shipped := []func() (*Table, source.Issues){
		JobTable, QueueTable, PodGroupTable, PodTable, CommandTable, CronJobTable, JobFlowTable, JobTemplateTable,
	}
	tables := make([]*Table, 0, len(shipped))
	for _, compile := range shipped {
		table, issues := compile()
		if table == nil {
			return nil, fmt.Errorf("rules of admission: %w", issues.Err())
		}
		tables = append(tables, table)
	}
	return tables, nil
}

// tables returns the active tables: each built-in table, with the cluster's own tables.
func (o Options) tables() ([]*Table, error) {
	tables, err := shippedTables()
	if err != nil {
		return nil, err
	}
	for i, table := range tables {
		tables[i] = table.with(o.AdmissionRules)
	}
	tables, err = withLimits(o.Limits, tables...)
	if err != nil {
		return nil, err
	}
	return linked(tables), nil
}

// newEndpoints lists all endpoints of the server.
func newEndpoints(o Options, in cluster, m *metrics) ([]*endpoint, error) {
	tables, err := o.tables()
	if err != nil {
		return nil, err
	}
	l, err := newLifecycles(o)
	if err != nil {
		return nil, err
	}
	in.schedulerNames = o.SchedulerNames
	all := slices.Concat(newJobEndpoints(tables[0], o, l, in, m), newPodGroupEndpoints(tables[2], in, m), newQueueEndpoints(tables[1], in, m),
		newPodEndpoints(tables[3], o, in, m), newCommandEndpoints(tables[4], l, in, m), newCronJobEndpoints(tables[5], l, in, m),
		newFlowEndpoints(tables[6], tables[7], l, in, m))
	policies := &endpoint{
		path: policyPath, name: "validate-policies.celsius.dev",
		group: policyv1alpha1.GroupName, version: policyv1alpha1.GroupVersion.Version, resource: "schedulingpolicies",
		operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		handler:    newPolicyHandler(),
	}
	return append(all, policies), nil
}

// The time that the API server waits for an answer, in seconds.
const timeout = 10

// clientConfig returns where and how the API server calls an endpoint.
func (s *server) clientConfig(e *endpoint, bundle []byte) *applyv1.WebhookClientConfigApplyConfiguration {
	c := applyv1.WebhookClientConfig()
	if len(bundle) > 0 {
		c.WithCABundle(bundle...)
	}
	if s.options.URLHost == "" {
		return c.WithService(applyv1.ServiceReference().WithNamespace(s.options.Namespace).WithName(s.options.ServiceName).WithPath(
			e.path).WithPort(443))
	}
	host := s.options.URLHost
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(s.port))
	}
	return c.WithURL("https://" + host + e.path)
}

func (e *endpoint) rule() *applyv1.RuleWithOperationsApplyConfiguration {
	return applyv1.RuleWithOperations().WithOperations(e.operations...).WithAPIGroups(e.group).WithAPIVersions(e.version).
		WithResources(e.resource).WithResources(e.subresources...).WithScope(admissionregistrationv1.AllScopes)
}

func (e *endpoint) matchConditions() []*applyv1.MatchConditionApplyConfiguration {
	var out []*applyv1.MatchConditionApplyConfiguration
	for _, c := range e.conditions {
		out = append(out, applyv1.MatchCondition().WithName(c.name).WithExpression(c.expression))
	}
	return out
}

func (e *endpoint) failurePolicy() admissionregistrationv1.FailurePolicyType {
	if e.optional {
		return admissionregistrationv1.Ignore
	}
	return admissionregistrationv1.Fail
}

// others selects every namespace except our own and the system namespaces.
func (s *server) others() *applymetav1.LabelSelectorApplyConfiguration {
	return applymetav1.LabelSelector().WithMatchExpressions(applymetav1.LabelSelectorRequirement().
		WithKey("kubernetes.io/metadata.name").WithOperator(metav1.LabelSelectorOpNotIn).
		WithValues(s.options.Namespace, metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease"))
}

// register writes both configurations, with the CA that the API server uses to verify this server.
func (s *server) register(ctx context.Context, bundle []byte) error {
	mutating := applyv1.MutatingWebhookConfiguration(s.options.ConfigurationName)
	validating := applyv1.ValidatingWebhookConfiguration(s.options.ConfigurationName)
	for _, e := range s.endpoints {
		if e.mutating {
			mutating.WithWebhooks(applyv1.MutatingWebhook().WithName(e.name).WithClientConfig(s.clientConfig(e, bundle)).WithRules(e.rule()).
				WithFailurePolicy(e.failurePolicy()).WithSideEffects(admissionregistrationv1.SideEffectClassNone).
				WithReinvocationPolicy(admissionregistrationv1.IfNeededReinvocationPolicy).WithTimeoutSeconds(timeout).
				WithAdmissionReviewVersions("v1").WithNamespaceSelector(s.others()).WithMatchConditions(e.matchConditions()...))
			continue
		}
		validating.WithWebhooks(applyv1.ValidatingWebhook().WithName(e.name).WithClientConfig(s.clientConfig(e, bundle)).WithRules(e.rule()).
			WithFailurePolicy(e.failurePolicy()).WithSideEffects(admissionregistrationv1.SideEffectClassNone).
			WithTimeoutSeconds(timeout).
			WithAdmissionReviewVersions("v1").WithNamespaceSelector(s.others()).WithMatchConditions(e.matchConditions()...))
	}
	if err := s.write(ctx, mutating, &admissionregistrationv1.MutatingWebhookConfiguration{}, mutating.Webhooks); err != nil {
		return fmt.Errorf("write the MutatingWebhookConfiguration %s: %w", s.options.ConfigurationName, err)
	}
	if err := s.write(ctx, validating, &admissionregistrationv1.ValidatingWebhookConfiguration{}, validating.Webhooks); err != nil {
		return fmt.Errorf("write the ValidatingWebhookConfiguration %s: %w", s.options.ConfigurationName, err)
	}
	return nil
}

// write applies a configuration and keeps fields of other writers. If the API server reaches this server by URL, a built-in configuration
// may still contain a Service. One webhook cannot have both, and an apply cannot remove the Service of another writer. In this case write
// replaces all webhooks in one request, so that the API server always calls some webhook.
func (s *server) write(ctx context.Context, apply runtime.ApplyConfiguration, object client.Object, webhooks any) error {
	err := s.client.Apply(ctx, apply, client.FieldOwner(FieldManager), client.ForceOwnership)
	if s.options.URLHost == "" || !apierrors.IsInvalid(err) {
		return err
	}
	patch, invalid := json.Marshal(map[string]any{"webhooks": webhooks})
	if invalid != nil {
		return invalid
	}
	object.SetName(s.options.ConfigurationName)
	if err := s.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager)); err != nil {
		return err
	}
	return s.client.Apply(ctx, apply, client.FieldOwner(FieldManager), client.ForceOwnership)
}

// unregister removes both configurations.
func (s *server) unregister(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	meta := metav1.ObjectMeta{Name: s.options.ConfigurationName}
	return errors.Join(
		client.IgnoreNotFound(s.client.Delete(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta})),
		client.IgnoreNotFound(s.client.Delete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta})),
	)
}
