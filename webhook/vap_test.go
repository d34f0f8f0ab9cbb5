package webhook

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

// asAPIServer compiles a policy as the API server does.
func asAPIServer(t *testing.T, p *admissionregistrationv1.ValidatingAdmissionPolicy) validating.Validator {
	t.Helper()
	c, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(vapVersion()))
	if err != nil {
		t.Fatal(err)
	}
	all, plain := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}, plugincel.OptionalVariableDeclarations{}
	for i := range p.Spec.Variables {
		v := &p.Spec.Variables[i]
		got := c.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, all, environment.NewExpressions)
		if got.Error != nil {
			t.Errorf("%s: variable %s: %v\n%s", p.Name, v.Name, got.Error, v.Expression)
		}
	}
	var conditions, holds, told []plugincel.ExpressionAccessor
	for i := range p.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
	}
	for _, v := range p.Spec.Validations {
		holds = append(holds, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		told = append(told, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	compile := func(e []plugincel.ExpressionAccessor, o plugincel.OptionalVariableDeclarations) plugincel.ConditionEvaluator {
		for _, one := range e {
			if got := c.CompileCELExpression(one, o, environment.NewExpressions); got.Error != nil {
				t.Errorf("%s: %v\n%s", p.Name, got.Error, one.GetExpression())
			}
		}
		return c.CompileCondition(e, o, environment.NewExpressions)
	}
	matcher := matchconditions.NewMatcher(compile(conditions, all), p.Spec.FailurePolicy, "policy", "validate", p.Name)
	return validating.NewValidator(compile(holds, all), matcher, compile(nil, all), compile(told, plain), p.Spec.FailurePolicy, nil)
}

// saidByAPIServer returns the mistakes that a policy finds, one line for each row.
func saidByAPIServer(t *testing.T, v validating.Validator, kind string, r Request) (out []string) {
	t.Helper()
	object := func(fields map[string]any) runtime.Object {
		if fields == nil {
			return nil
		}
		return &unstructured.Unstructured{Object: fields}
	}
	of := kinds()[kind]
	gvk, gvr := of.group.WithKind(kind), of.group.WithResource(of.resource)
	attributes := admission.NewAttributesRecord(object(r.Object), object(r.OldObject), gvk, "default", "x", gvr, "",
		admission.Operation(r.Operation), nil, false, &user.DefaultInfo{Name: r.User.Name})
	versioned := &admission.VersionedAttributes{
		Attributes: attributes, VersionedKind: gvk, VersionedObject: object(r.Object), VersionedOldObject: object(r.OldObject),
	}
	annotations, err := r.NamespaceAnnotations()
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Annotations: annotations}}
	got := v.Validate(t.Context(), gvr, versioned, nil, namespace, celconfig.RuntimeCELCostBudget, nil)
	for _, d := range got.Decisions {
		if d.Action == validating.ActionDeny {
			out = append(out, d.Message)
		}
	}
	return out
}

// TestVAP compares the webhook with the ValidatingAdmissionPolicies that are written from the tables. In all cases, each row must find the
// same mistakes. The objects are tested as people write them, and again with their defaults.
func TestVAP(t *testing.T) {
	for _, s := range suites() {
		t.Run(s.name, func(t *testing.T) {
			table, _, cases := s.read(t)
			first := cases[slices.Sorted(maps.Keys(cases))[0]]
			vap, err := table.renderVAP(first)
			if err != nil {
				t.Fatal(err)
			}
			left := map[string]bool{}
			for _, l := range vap.LeftOut {
				left[l.Row] = true
				t.Logf("left out: %s: %s", l.Row, l.Why)
			}
			if vap.Policy == nil {
				return
			}
			t.Logf("%d rows are written", len(vap.Policy.Spec.Validations))
			v, found := asAPIServer(t, vap.Policy), map[string]bool{}
			defer func() {
				if len(found) != len(vap.Policy.Spec.Validations) {
					t.Errorf("%d rows are written, and in the cases %d of them find something", len(vap.Policy.Spec.Validations), len(found))
				}
			}()
			for name, r := range cases {
				compareVerdicts(t, table, v, left, found, name, r)
				if r.Operation == opDelete {
					continue
				}
				filled, mistakes, err := table.Default(r)
				if err != nil || len(mistakes) > 0 {
					continue
				}
				r.Object = filled
				compareVerdicts(t, table, v, left, found, name+" filled in", r)
			}
		})
	}
}

// guess matches the proposals that only the webhook can make.
var guess = regexp.MustCompile(`did you mean \w+\? ?`)

func compareVerdicts(t *testing.T, table *Table, v validating.Validator, left, found map[string]bool, name string, r Request) {
	t.Helper()
	own := *table
	own.includes = nil // the policy does not contain them
	mistakes, _, err := own.Check(r)
	if err != nil || len(mistakes) > 0 && mistakes[0].Rule == "" { // the schema refuses the object
		return
	}
	rows := map[string][]string{}
	bounded := false
	for _, m := range mistakes {
		bounded = bounded || slices.ContainsFunc(table.bounds, func(r *row) bool { return r.name == m.Rule })
		if !left[m.Rule] {
			m.Message = guess.ReplaceAllString(m.Message, "")
			found[m.Rule], rows[m.Rule] = true, append(rows[m.Rule], m.String())
		}
	}
	want := []string{}
	for _, told := range rows {
		want = append(want, strings.Join(told, "; "))
	}
	got := append([]string{}, saidByAPIServer(t, v, table.Kind, r)...)
	slices.Sort(want)
	slices.Sort(got)
	if bounded { // then the webhook evaluates no other row
		got = slices.DeleteFunc(got, func(told string) bool { return !slices.Contains(want, told) })
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-webhook +API server):\n%s", name, diff)
	}
}

// TestVAPOfOwnRules also writes policies from the rules in samples/admission. They use numbers for limits, and names of users. Rows that
// ask for rights are omitted.
func TestVAPOfOwnRules(t *testing.T) {
	own := samples(t)
	more, issues := LoadFile("more.yaml", []byte(`
apiVersion: rules.celsius.dev/v1alpha1
kind: AdmissionRules
metadata: {name: people}
of: Job
validations:
- {name: nobody, expression: "user.name != 'joe' && !('robots' in user.groups)", fieldPath: spec, message: "is of {{user.name}}; ask"}
- {name: hides, expression: "object.spec.tasks.all(limits, limits.replicas > 0)", fieldPath: spec, message: wrong}
`))
	if issues.Err() != nil {
		t.Fatal(issues.Error())
	}
	written := map[string]string{}
	for _, table := range append(own, more...) {
		vap, err := table.renderVAP(Request{SchedulerNames: []string{"celsius"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range vap.LeftOut {
			written[l.Row] = l.Why
		}
		if vap.Policy == nil || table.Kind != jobKind {
			continue
		}
		v := asAPIServer(t, vap.Policy)
		var said []string
		for who, change := range map[string]string{
			"jane": "metadata: {namespace: prod}\nspec: {queue: research, tasks: [{name: w, replicas: 13, template: {spec: {containers: " +
				"[{name: a, image: x, resources: {limits: {nvidia.com/gpu: 5}}}]}}}]}",
			"joe": "metadata: {namespace: dev}",
		} {
			r := jobIn(t, change)
			r.User.Name, r.NamespaceAnnotations = who, func() (map[string]string, error) { return nil, nil }
			said = append(said, saidByAPIServer(t, v, jobKind, r)...)
		}
		written[table.Name] = strings.Join(said, "\n")
	}
	const may = "asks the API server what the user may do"
	want := map[string]string{
		"may-use-account": may, "may-use-queue": may, "templates-may-use-queue": may, "queue-is-written": "fills in",
		"gpus-of-a-research-job": "spec.tasks: ask for 65 GPUs, and a job in queue research may have 64; ask for fewer, or name another queue",
		"production-has-a-priority": "spec.priorityClassName: is missing, and a job in namespace prod says how urgent it is; write one of " +
			"those that `kubectl get priorityclasses` lists",
		"people": "spec: is of joe; ask", "hides": "calls something in a loop limits, which all rows see",
		"management": "fills in", "interactive": "fills in", "gpus": "fills in", "spot": "fills in",
	}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
