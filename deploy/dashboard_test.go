package deploy

import (
	"bytes"
	"os"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"
)

// documents are those of a file that have a kind.
func documents[T any](t *testing.T, file, kind string) (out []T) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for text := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var head struct{ Kind string }
		if err := yaml.Unmarshal(text, &head); err != nil {
			t.Fatal(err)
		}
		if head.Kind != kind {
			continue
		}
		var object T
		if err := yaml.UnmarshalStrict(text, &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, object)
	}
	return out
}

// TestDashboardReadsOnly: the account of a dashboard that is shared reads what it shows, and asks who looks; and who looks has one right.
func TestDashboardReadsOnly(t *testing.T) {
	roles := documents[rbacv1.ClusterRole](t, "dashboard/rbac.yaml", "ClusterRole")
	if len(roles) != 2 || roles[0].Name != "celsius-dashboard" || roles[1].Name != "celsius-dashboard-viewer" {
		t.Fatalf("roles are %v", roles)
	}
	for _, rule := range roles[0].Rules {
		readsOnly(t, rule)
	}
	look := rbacv1.PolicyRule{NonResourceURLs: []string{"/dashboard"}, Verbs: []string{"get"}}
	if r := roles[1].Rules; len(r) != 1 || !equality.Semantic.DeepEqual(r[0], look) {
		t.Errorf("who looks may %v", r)
	}
	bound := documents[rbacv1.ClusterRoleBinding](t, "dashboard/rbac.yaml", "ClusterRoleBinding")
	if len(bound) != 1 || bound[0].RoleRef.Name != "celsius-dashboard" {
		t.Errorf("bound is %v", bound)
	}
}

func readsOnly(t *testing.T, rule rbacv1.PolicyRule) {
	t.Helper()
	reviews := slices.Equal(rule.Resources, []string{"tokenreviews"}) || slices.Equal(rule.Resources, []string{"subjectaccessreviews"})
	for _, verb := range rule.Verbs {
		if !slices.Contains([]string{"get", "list", "watch"}, verb) && (!reviews || verb != "create") {
			t.Errorf("it may %s %v", verb, rule.Resources)
		}
	}
	if slices.ContainsFunc(rule.Resources, func(r string) bool { return r == "*" || r == "secrets" || r == "configmaps" }) {
		t.Errorf("it may read %v", rule.Resources)
	}
}

// TestDashboardIsHardened holds its pod to what a restricted namespace asks for.
func TestDashboardIsHardened(t *testing.T) {
	d := documents[appsv1.Deployment](t, "dashboard/deployment.yaml", "Deployment")
	if len(d) != 1 {
		t.Fatalf("%d Deployments", len(d))
	}
	pod := d[0].Spec.Template.Spec
	c := pod.Containers[0]
	for what, ok := range map[string]bool{
		"an account of its own":           pod.ServiceAccountName == d[0].Name,
		"not as root":                     *pod.SecurityContext.RunAsNonRoot && *pod.SecurityContext.RunAsUser == 65532,
		"seccomp":                         pod.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"no escalation":                   !*c.SecurityContext.AllowPrivilegeEscalation,
		"a file system that is only read": *c.SecurityContext.ReadOnlyRootFilesystem,
		"no capabilities":                 slices.Equal(c.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}),
		"bounds":                          c.Resources.Limits.Memory().Sign() > 0 && c.Resources.Requests.Cpu().Sign() > 0,
		"shared":                          slices.Equal(c.Args, []string{"dashboard", "--shared", "--address=:8443"}),
	} {
		if !ok {
			t.Errorf("it has not %s", what)
		}
	}
}
