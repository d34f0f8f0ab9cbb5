package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
)

// The names of the state machines. The one of jobs defines what a Job's policies may name.
const (
	jobMachine   = "job"
	queueMachine = "queue"
)

// lifecycles contains the state machines that admission uses, and the job plugins of the cluster.
type lifecycles struct {
	job, queue *statemachines.Machine
	plugins    *jobplugin.Set
}

func newLifecycles(o Options) (l lifecycles, err error) {
	for name, machine := range map[string]**statemachines.Machine{jobMachine: &l.job, queueMachine: &l.queue} {
		if *machine = o.StateMachines[name]; *machine != nil {
			continue
		}
		found, issues := statemachines.Default(name)
		if found == nil {
			return l, fmt.Errorf("state machines: %w", issues.Err())
		}
		*machine = found
	}
	if l.plugins = o.JobPlugins; l.plugins == nil {
		found, issues := jobplugin.Default()
		if found == nil {
			return l, fmt.Errorf("job plugins: %w", issues.Err())
		}
		l.plugins = found
	}
	return l, nil
}

// commandActions returns the actions that a Command may name, by the kind of its target.
func (l lifecycles) commandActions() map[string][]string {
	return map[string][]string{jobKind: l.job.CommandActions(), queueKind: l.queue.CommandActions()}
}

// newJobEndpoints returns the endpoints of Jobs: defaults and validation.
func newJobEndpoints(table *Table, o Options, l lifecycles, in cluster, m *metrics) []*endpoint {
	h := &tableHandler{table: table, cluster: in, machine: l.job, plugins: l.plugins, metrics: m}
	ours := condition{name: "our-scheduler", expression: oursExpression(o.SchedulerNames)}
	e := endpoint{
		group: batchv1alpha1.GroupName, version: batchv1alpha1.GroupVersion.Version, resource: "jobs",
		operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		conditions: []condition{ours, {name: "spec-changed", expression: "oldObject == null || object.spec != oldObject.spec"}},
	}
	mutate, validate := e, e
	mutate.path, mutate.name, mutate.mutating = "/jobs/mutate", "mutate-jobs.celsius.dev", true
	mutate.handler = admission.HandlerFunc(h.fillIn)
	validate.path, validate.name = "/jobs/validate", "validate-jobs.celsius.dev"
	validate.handler = admission.HandlerFunc(h.validate)
	// Jobs of other schedulers get only warnings, and pass while the webhook is unavailable. Jobs of Volcano's scheduler are not sent.
	others := e
	others.operations = e.operations[:1]
	others.conditions = []condition{{
		name: "other-scheduler", expression: fmt.Sprintf("!(object.?spec.schedulerName.orValue('') in [%s])",
			quoted(append([]string{"", volcanoScheduler}, o.SchedulerNames...)...)),
	}}
	others.path, others.name, others.optional = "/jobs/others", "warn-other-jobs.celsius.dev", true
	others.handler = admission.HandlerFunc(h.warn)
	return []*endpoint{&mutate, &validate, &others}
}

// warn returns the warnings of validate but never refuses. It is for objects that other programs serve.
func (h *tableHandler) warn(ctx context.Context, r admission.Request) admission.Response {
	said := h.validate(ctx, r)
	return admission.Allowed("").WithWarnings(said.Warnings...)
}

// volcanoScheduler is the name of Volcano's scheduler.
const volcanoScheduler = "volcano"

// quoted formats words as the elements of a list in CEL.
func quoted(words ...string) string {
	out := make([]string, len(words))
	for i, n := range words {
		out[i] = "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(n) + "'"
	}
	return strings.Join(out, ", ")
}

// oursExpression returns a CEL condition for the API server: the new or the old job belongs to our schedulers.
func oursExpression(names []string) string {
	list := quoted(append([]string{""}, names...)...)
	of := func(object string) string {
		return fmt.Sprintf("%[1]s.?spec.schedulerName.orValue('') in [%[2]s]", object, list)
	}
	return of("object") + " || oldObject != null && " + of("oldObject")
}

// tableHandler handles the requests for the kind of a table.
type tableHandler struct {
	table *Table
	cluster
	// machine defines which events and actions policies may name. nil means that the kind has no policies.
	machine *statemachines.Machine
	plugins *jobplugin.Set
	// commandActions are the actions that a Command may name, by the kind of its target.
	commandActions map[string][]string
	// related returns the object that an object refers to, or the name "" if there is none. It is nil for kinds without references.
	related func(object map[string]any) (kind schema.GroupVersionKind, name string)
	// patience is how long the handler retries a deletion before it refuses it.
	patience time.Duration
	metrics  *metrics
}

// fillIn returns the defaults as a patch.
func (h *tableHandler) fillIn(ctx context.Context, req admission.Request) admission.Response {
	r, refused := h.request(ctx, req)
	if refused != nil {
		return *refused
	}
	object, mistakes, err := h.table.Default(*r)
	if err != nil {
		return h.broken(ctx, req, err)
	}
	if len(mistakes) > 0 {
		return h.refuse(req, mistakes)
	}
	return admission.Patched("", patchOf(r.Object, object)...)
}

// validate returns all mistakes at once.
func (h *tableHandler) validate(ctx context.Context, req admission.Request) admission.Response {
	r, refused := h.request(ctx, req)
	if refused != nil {
		return *refused
	}
	mistakes, warnings, err := h.table.Check(*r)
	aboutQueue := func(m Mistake) bool { // the message also contains the field of a Job that the object creates
		return strings.Contains(m.Message, "spec.queue: ") || strings.HasSuffix(m.Field, "spec.queue") || m.Field == "spec.parent" ||
			strings.HasSuffix(m.Field, queueOfPod)
	}
	if err == nil && h.queuesNow != nil && slices.ContainsFunc(mistakes, aboutQueue) {
		// The queue may have been created or opened a moment ago, so the check is repeated with the queues of the API server.
		r.Queues = func() ([]map[string]any, error) { return asJSON(ctx, h.queuesNow) }
		mistakes, warnings, err = h.table.Check(*r)
	}
	if err == nil && len(mistakes) > 0 && r.Operation == opDelete && h.queuesNow != nil {
		mistakes, err = h.patient(ctx, *r, mistakes)
	}
	if err != nil {
		return h.broken(ctx, req, err)
	}
	if len(mistakes) > 0 {
		return h.refuse(req, mistakes)
	}
	return admission.Allowed("").WithWarnings(mostOf(warnings)...)
}

// How long and how often a refused deletion of a queue is retried. The pods of jobs that were just deleted may need this time to disappear,
// and must not block the deletion of their queue.
const (
	patience  = 4 * time.Second
	lookEvery = 500 * time.Millisecond
)

// patient repeats the check of a queue's deletion for a while.
func (h *tableHandler) patient(ctx context.Context, r Request, mistakes []Mistake) ([]Mistake, error) {
	name := objectName(r.OldObject)
	for end := time.Now().Add(h.patience); time.Now().Before(end) && len(mistakes) > 0; {
		withoutTurn(ctx, func() {
			select {
			case <-ctx.Done():
			case <-time.After(lookEvery):
			}
		})
		if ctx.Err() != nil {
			return mistakes, nil //nolint:nilerr // the time of the request is over: the answer is what was found last
		}
		all, err := asJSON(ctx, h.queuesNow)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(q map[string]any) bool { return objectName(q) == name })
		if at < 0 {
			return nil, nil
		}
		r.OldObject, r.Queues = all[at], func() ([]map[string]any, error) { return all, nil }
		if mistakes, _, err = h.table.Check(r); err != nil {
			return nil, err
		}
	}
	return mistakes, nil
}

func objectName(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}

// request decodes a review. It refuses an object that cannot be read, and an operation that the table does not handle.
func (h *tableHandler) request(ctx context.Context, req admission.Request) (*Request, *admission.Response) {
	refuse := func(format string, args ...any) (*Request, *admission.Response) {
		response := admission.Errored(http.StatusBadRequest, fmt.Errorf(format, args...))
		return nil, &response
	}
	operation := string(req.Operation)
	if known := h.table.operations(); !slices.Contains(known, operation) {
		return refuse("the operation is %q, and only %s are looked at here; the webhook configuration calls this path for too much", operation,
			strings.Join(known, " and "))
	}
	if req.Kind.Kind != h.table.Kind {
		return refuse("the object is a %s, and only a %s is looked at here; the webhook configuration calls this path for too much",
			req.Kind.Kind, h.table.Kind)
	}
	var object map[string]any
	var err error
	if operation != opDelete {
		if object, err = decodeObject(req.Object); err != nil {
			return refuse("the %s cannot be read: %w", h.table.Kind, err)
		}
	}
	r := &Request{
		Operation: operation, Object: object, SchedulerNames: h.schedulerNames, JobPlugins: h.plugins,
		Queues:               func() ([]map[string]any, error) { return asJSON(ctx, h.queues) },
		NamespaceAnnotations: func() (map[string]string, error) { return h.annotations(ctx, req.Namespace) },
		User:                 h.userOf(ctx, req.UserInfo),
		CommandActions:       h.commandActions,
	}
	if h.jobTemplates != nil && h.table.Kind == jobFlowKind {
		r.JobTemplates = sync.OnceValues(func() ([]JobTemplate, error) { return h.jobTemplates(ctx, req.Namespace, object) })
	}
	if h.related != nil {
		r.Related = func() (*Related, error) { return h.relatedTo(ctx, req.Namespace, object) }
	}
	if h.machine != nil {
		r.PolicyEvents, r.PolicyActions = h.machine.PolicyEvents(), h.machine.PolicyActions()
	}
	if operation != opCreate {
		if r.OldObject, err = decodeObject(req.OldObject); err != nil {
			return refuse("the %s before the update cannot be read: %w", h.table.Kind, err)
		}
	}
	return r, nil
}

func decodeObject(raw runtime.RawExtension) (map[string]any, error) {
	if len(raw.Raw) == 0 {
		return nil, errors.New("there is none in the request")
	}
	var object map[string]any
	if err := kubejson.Unmarshal(raw.Raw, &object); err != nil {
		return nil, fmt.Errorf("it is not the JSON of an object: %w", err)
	}
	if object == nil {
		return nil, errors.New("it is null")
	}
	return object, nil
}

// asJSON lists the queues in the form that rules read.
func asJSON(ctx context.Context, lister queueLister) ([]map[string]any, error) {
	list, err := lister(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]map[string]any, len(list))
	for i := range list {
		if out[i], err = queueFields(&list[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func queueFields(q *schedulingv1beta1.Queue) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(q)
	if err != nil {
		return nil, fmt.Errorf("queue %s: %w", q.Name, err)
	}
	return fields, nil
}

// refuse returns all mistakes as one text, and also one by one for clients that can show them.
func (h *tableHandler) refuse(req admission.Request, mistakes []Mistake) admission.Response {
	status := &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Details: &metav1.StatusDetails{Group: req.Kind.Group, Kind: req.Kind.Kind, Name: req.Name},
	}
	for _, m := range mistakes {
		h.metrics.refused.WithLabelValues(req.Kind.Kind, m.Rule).Inc()
	}
	var lines []string
	for _, m := range most(mistakes) {
		lines = append(lines, m.String())
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Field: m.Field,
			Message: m.Message,
		})
	}
	if more := beyond(len(mistakes)); more != "" {
		lines = append(lines, more)
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: metav1.CauseTypeTooMany, Message: more})
	}
	status.Message = lines[0]
	if len(mistakes) > 1 {
		count := strconv.Itoa(len(mistakes))
		if len(mistakes) >= mostMistakes { // the rows stopped at this number
			count = "at least " + count
		}
		status.Message = fmt.Sprintf("%s mistakes:\n* %s", count, strings.Join(lines, "\n* "))
	}
	response := admission.Response{}
	response.Result = status
	return response
}

// broken returns the answer after a rule itself failed. The request is refused because the object was not checked. The log contains the
// cause.
func (h *tableHandler) broken(ctx context.Context, req admission.Request, err error) admission.Response {
	h.metrics.broken.WithLabelValues(req.Kind.Kind).Inc()
	ctrl.LoggerFrom(ctx).Error(err, "a rule of admission failed", "kind", req.Kind.Kind, "namespace", req.Namespace, "name", req.Name)
	return admission.Errored(http.StatusInternalServerError,
		fmt.Errorf("a rule of admission of Celsius failed, which says nothing of the object: %w", err))
}
