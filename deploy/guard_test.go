package deploy

import (
	"context"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// guardOf is the first document of a file of the guard, at work as in the API server.
func guardOf(t *testing.T, file string) validating.Validator {
	t.Helper()
	data, err := os.ReadFile("guard/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var p admissionv1.ValidatingAdmissionPolicy
	first, _, _ := strings.Cut(string(data), "\n---\n")
	if err := yaml.UnmarshalStrict([]byte(first), &p); err != nil {
		t.Fatal(err)
	}
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	var variables []cel.NamedExpressionAccessor
	for _, v := range p.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	var conditions, validations, messages []cel.ExpressionAccessor
	for i := range p.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
	}
	for _, v := range p.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	asks, says := cel.OptionalVariableDeclarations{HasAuthorizer: true}, cel.OptionalVariableDeclarations{}
	compiler.CompileAndStoreVariables(variables, asks, environment.NewExpressions)
	compile := func(of []cel.ExpressionAccessor, with cel.OptionalVariableDeclarations) cel.ConditionEvaluator {
		c := compiler.CompileCondition(of, with, environment.NewExpressions)
		for _, err := range c.CompilationErrors() {
			t.Error(err)
		}
		return c
	}
	fail := admissionv1.Fail
	return validating.NewValidator(compile(validations, asks), matchconditions.NewMatcher(compile(conditions, asks), &fail, "policy",
		"validate", p.Name), compile(nil, asks), compile(messages, says), &fail, nil)
}

// Nobody but a binding writes what a binding writes, and what a pod asks of devices is settled with its node.
func TestGuardOfPods(t *testing.T) {
	guard := guardOf(t, "pods.yaml")
	pod := func(node, annotations string) *corev1.Pod {
		p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "a"}}
		p.Spec.NodeName = node
		for part := range strings.FieldsSeq(annotations) {
			key, value, _ := strings.Cut(part, "=")
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value)
		}
		return p
	}
	const record = "celsius.dev/bound={} celsius.dev/gpus=0 celsius.dev/policy=x@1 "
	for name, test := range map[string]struct{ was, is, refused string }{
		"a new pod":                          {"", " a=b celsius.dev/gpu-milli=300", ""},
		"a new pod without annotations":      {"", " ", ""},
		"a new pod on a node":                {"", "n1 a=b", ""},
		"a new pod on a node with devices":   {"", "n1 celsius.dev/gpu-count=8", "celsius.dev/gpu-count is settled"},
		"a new pod with a record":            {"", " celsius.dev/bound={}", "leave it out"},
		"a new pod with devices":             {"", " celsius.dev/gpus=0", "leave it out"},
		"a wish changes while the pod waits": {" celsius.dev/gpu-milli=300", " celsius.dev/gpu-milli=400", ""},
		"a record while the pod waits":       {" a=b", " a=b celsius.dev/bound={}", "only a binding writes the annotation celsius.dev/bound"},
		"the first annotations of all":       {" ", " celsius.dev/bound={}", "only a binding writes"},
		"nothing changes":                    {"n1 " + record, "n1 " + record, ""},
		"something else changes":             {"n1 " + record + "a=b", "n1 " + record + "a=c", ""},
		"another record": {
			"n1 " + record, "n1 " + strings.Replace(record, "{}", "[]", 1),
			"only a binding writes the annotation celsius.dev/bound",
		},
		"no record any more": {"n1 " + record, "n1 ", "leave it as it is"},
		"other devices":      {"n1 " + record, "n1 " + strings.Replace(record, "=0", "=1", 1), "celsius.dev/gpus"},
		"a smaller share":    {"n1 celsius.dev/gpu-milli=900", "n1 celsius.dev/gpu-milli=100", "celsius.dev/gpu-milli is settled"},
		"no share any more":  {"n1 celsius.dev/gpu-milli=900", "n1 ", "celsius.dev/gpu-milli is settled"},
		"a share of late":    {"n1 a=b", "n1 a=b celsius.dev/gpu-count=8", "celsius.dev/gpu-count is settled"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			read := func(text string) *corev1.Pod {
				node, annotations, _ := strings.Cut(text, " ")
				return pod(node, annotations)
			}
			var was runtime.Object
			if test.was != "" {
				was = read(test.was)
			}
			text := refusal(t, guard, was, read(test.is), corev1.SchemeGroupVersion.WithKind("Pod"), "tenant")
			if (text == "") != (test.refused == "") || !strings.Contains(text, test.refused) || strings.Contains(text, "expression") {
				t.Errorf("refused with %q, want %q", text, test.refused)
			}
		})
	}
}

// Who may not write the groups of all namespaces says neither where a group stands nor, once it was let in, in which queue.
func TestGuardOfPodGroups(t *testing.T) {
	guard := guardOf(t, "podgroups.yaml")
	for name, test := range map[string]struct{ was, is, refused string }{
		"a new group":                   {"", "a", ""},
		"a new group that waits":        {"", "a Pending", ""},
		"a new group that runs":         {"", "a Running", "status.phase is Running"},
		"another queue while it waits":  {"a Pending", "b Pending", ""},
		"it lets itself in":             {"a Pending", "a Inqueue", "may say where a group stands"},
		"it is as it was":               {"a Running", "a Running", ""},
		"another queue while it runs":   {"a Running", "b Running", "was let into the queue a, and stays there"},
		"no queue any more":             {"a Inqueue", " Inqueue", "was let into the queue a"},
		"back, and into another queue":  {"a Running", "b Pending", "status.phase is Pending"},
		"its status is gone":            {"a Running", "a", "status.phase is"},
		"another queue when it is done": {"a Completed", "b Completed", "was let into the queue a"},
	} {
		read := func(text string) runtime.Object {
			if text == "" {
				return nil
			}
			g := &schedulingv1beta1.PodGroup{
				TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.volcano.sh/v1beta1", Kind: "PodGroup"},
				ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "a"},
			}
			queue, phase, _ := strings.Cut(text, " ")
			g.Spec.Queue, g.Status.Phase = queue, schedulingv1beta1.PodGroupPhase(phase)
			return g
		}
		kind := schedulingv1beta1.GroupVersion.WithKind("PodGroup")
		if text := refusal(t, guard, read(test.was), read(test.is), kind, "tenant"); (text == "") != (test.refused == "") ||
			!strings.Contains(text, test.refused) {
			t.Errorf("%s: refused with %q, want %q", name, text, test.refused)
		}
		if text := refusal(t, guard, read(test.was), read(test.is), kind, "scheduler"); text != "" {
			t.Errorf("%s: the scheduler is refused it with %q", name, text)
		}
	}
}

// refusal is what a guard says to a change, "" where it lets it pass. was is nil for what is new.
func refusal(t *testing.T, guard validating.Validator, was, is runtime.Object, kind schema.GroupVersionKind, by string) string {
	t.Helper()
	operation := admission.Update
	if was == nil {
		operation = admission.Create
	}
	resource := kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
	attributes := admission.NewAttributesRecord(is, was, kind, "a", "p", resource, "", operation, nil, false, &user.DefaultInfo{Name: by})
	rights := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetUser().GetName() == "scheduler" && a.GetNamespace() == "" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	result := guard.Validate(t.Context(), resource, &admission.VersionedAttributes{
		Attributes: attributes, VersionedObject: is,
		VersionedOldObject: was, VersionedKind: kind,
	}, nil, nil, celconfig.RuntimeCELCostBudget, rights)
	var said []string
	for _, d := range result.Decisions {
		if d.Action != validating.ActionAdmit {
			said = append(said, d.Message)
		}
	}
	return strings.Join(said, "; ")
}
