package controller

import (
	"os"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// guard returns the policy and the binding in deploy.
func guard(t *testing.T) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/guard/commands.yaml")
	if err != nil {
		t.Fatal(err)
	}
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	first, second, _ := strings.Cut(string(text), "\n---\n")
	for text, into := range map[string]any{first: policy, second: binding} {
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	return policy, binding
}

// guarded installs the guard of deploy, with a creation time one minute ago.
func (s *stage) guarded() {
	s.t.Helper()
	policy, binding := guard(s.t)
	policy.CreationTimestamp = metav1.NewTime(s.now.Add(-time.Minute))
	binding.CreationTimestamp = policy.CreationTimestamp
	s.add(policy)
	s.add(binding)
}

// TestCommandOnQueueNeedsGuard checks that a Command acts on a queue only if the API server has checked its creator's permissions, and only
// with a UID. Otherwise the Command is dropped, and an event states what to install.
func TestCommandOnQueueNeedsGuard(t *testing.T) {
	type (
		policySpec  = admissionv1.ValidatingAdmissionPolicySpec
		bindingSpec = admissionv1.ValidatingAdmissionPolicyBindingSpec
	)
	some := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	for _, c := range []struct {
		name    string
		policy  func(*policySpec)
		binding func(*bindingSpec)
		age     time.Duration // age of the guard
		without string        // the missing part
		uid     string
		told    string // "": the queue closes
	}{
		{name: "as it ships", age: time.Minute, uid: "queue-uid"},
		{name: "no uid", age: time.Minute, told: "target.uid is empty"},
		{name: "another uid", age: time.Minute, uid: "other", told: "-"},
		{
			name: "no policy", age: time.Minute, uid: "queue-uid", without: "policy",
			told: "admission policy commands.celsius.dev is not there; install deploy/guard",
		},
		{name: "no binding", age: time.Minute, uid: "queue-uid", without: "binding", told: "admission binding commands.celsius.dev is not there"},
		{name: "installed just now", age: 4 * time.Second, uid: "queue-uid", told: "is as it is since"},
		{name: "installed afterwards", age: -time.Hour, uid: "queue-uid", told: "is as it is since"},
		{
			name: "may fail", age: time.Minute, uid: "queue-uid", policy: func(p *policySpec) { p.FailurePolicy = new(admissionv1.Ignore) },
			told: "does not ask",
		},
		{name: "under a condition", age: time.Minute, uid: "queue-uid", policy: func(p *policySpec) {
			p.MatchConditions = []admissionv1.MatchCondition{{Name: "a", Expression: "false"}}
		}, told: "does not ask"},
		{
			name: "some namespaces", age: time.Minute, uid: "queue-uid", policy: func(p *policySpec) { p.MatchConstraints.NamespaceSelector = some },
			told: "does not ask",
		},
		{name: "CREATE alone", age: time.Minute, uid: "queue-uid", policy: func(p *policySpec) {
			p.MatchConstraints.ResourceRules[0].Operations = []admissionv1.OperationType{admissionv1.Create}
		}, told: "does not ask"},
		{
			name: "asks nobody", age: time.Minute, uid: "queue-uid", policy: func(p *policySpec) { p.Validations = p.Validations[:1] },
			told: "does not ask",
		},
		{name: "of all kinds", age: time.Minute, uid: "queue-uid", policy: func(p *policySpec) {
			r := &p.MatchConstraints.ResourceRules[0]
			r.APIGroups, r.Resources, r.Operations = []string{"*"}, []string{"*"}, []admissionv1.OperationType{admissionv1.OperationAll}
		}},
		{name: "warns only", age: time.Minute, uid: "queue-uid", binding: func(b *bindingSpec) {
			b.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
		}, told: "does not deny"},
		{name: "binds some", age: time.Minute, uid: "queue-uid", binding: func(b *bindingSpec) {
			b.MatchResources = &admissionv1.MatchResources{ObjectSelector: some}
		}, told: "does not deny"},
		{
			name: "binds another", age: time.Minute, uid: "queue-uid", binding: func(b *bindingSpec) { b.PolicyName = "another" },
			told: "does not deny",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, Options{}, openQueue())
			policy, binding := guard(t)
			policy.CreationTimestamp = metav1.NewTime(s.now.Add(-c.age))
			binding.CreationTimestamp = policy.CreationTimestamp
			if c.policy != nil {
				c.policy(&policy.Spec)
			}
			if c.binding != nil {
				c.binding(&binding.Spec)
			}
			if c.without != "policy" {
				s.add(policy)
			}
			if c.without != "binding" {
				s.add(binding)
			}
			s.settle()
			s.commandWith("CloseQueue", metav1.OwnerReference{
				APIVersion: schedulingv1beta1.GroupVersion.String(), Kind: "Queue", Name: "default", UID: types.UID(c.uid),
			})
			s.settle()
			want := schedulingv1beta1.QueueStateClosed
			if c.told != "" {
				want = schedulingv1beta1.QueueStateOpen
			}
			if got := s.queue("default").Status.State; got != want {
				t.Errorf("the queue is %s, want %s", got, want)
			}
			if n := len(s.names("command")); n != 0 {
				t.Error("the Command is still there")
			}
			if c.told != "" && c.told != "-" && !s.told(c.told) {
				t.Errorf("no event says %q: %q", c.told, s.lines)
			}
		})
	}
}

// TestLastChange checks that a write of a policy's status does not count as a change.
func TestLastChange(t *testing.T) {
	made := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	written := func(subresource string, after time.Duration) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: "a", Subresource: subresource, Time: new(metav1.NewTime(made.Add(after)))}
	}
	policy, _ := guard(t)
	policy.CreationTimestamp = metav1.NewTime(made)
	for _, c := range []struct {
		fields []metav1.ManagedFieldsEntry
		want   time.Duration
	}{
		{nil, 0},
		{[]metav1.ManagedFieldsEntry{written("", time.Hour), written("", time.Minute)}, time.Hour},
		{[]metav1.ManagedFieldsEntry{written("", time.Minute), written("status", time.Hour), {Manager: "b"}}, time.Minute},
	} {
		policy.ManagedFields = c.fields
		if got := lastChange(policy); !got.Equal(made.Add(c.want)) {
			t.Errorf("%v: %s, want %s", c.fields, got, made.Add(c.want))
		}
	}
}
