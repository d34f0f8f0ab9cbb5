package cluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// installed adds an installation of Celsius to a world. One pod of its scheduler restarted. Many of its objects contain secrets.
func installed(t *testing.T, w *world) {
	t.Helper()
	meta := func(name, part string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: "celsius-system", Name: name, UID: "1"}
		if part != "" {
			m.Labels = map[string]string{partLabel: part}
		}
		return m
	}
	pod := corev1.PodSpec{NodeName: "node-of-acme", Containers: []corev1.Container{{
		Name: "scheduler", Image: "registry.acme.example/celsius:1.0",
		Args: []string{"scheduler", "--leader-elect", "--prometheus-url=https://user:s3cr3t@prometheus.acme.example/x"},
		Env:  []corev1.EnvVar{{Name: "TOKEN", Value: "s3cr3t"}},
	}}}
	one := admissionregistrationv1.ValidatingWebhook{
		Name:         "validate-jobs.celsius.dev",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte("certificate")},
	}
	other := one
	other.Name = "other.example"
	stored := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.celsius.dev/v1alpha1", "kind": "SchedulingPolicy", "metadata": map[string]any{"name": "default"},
		"spec": map[string]any{"pipeline": []any{"enqueue", "allocate"}}, "status": map[string]any{"conditions": []any{
			map[string]any{"type": "Active", "status": "True", "reason": "Serving", "message": "acme is served by it"},
		}},
	}}
	holder, machine := "celsius-scheduler-1_x", "laptop-of-acme_x"
	for _, o := range []client.Object{
		stored,
		&appsv1.Deployment{ObjectMeta: meta("celsius-scheduler", "celsius-scheduler"), Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Template: corev1.PodTemplateSpec{Spec: pod},
		}},
		&corev1.Pod{ObjectMeta: meta("celsius-scheduler-1", "celsius-scheduler"), Spec: pod, Status: corev1.PodStatus{
			Phase: corev1.PodRunning, HostIP: "10.1.1.1",
			ContainerStatuses: []corev1.ContainerStatus{{Name: "scheduler", RestartCount: 1, ImageID: "registry.acme.example/celsius@sha256:1"}},
		}},
		&corev1.Pod{ObjectMeta: meta("database", ""), Spec: pod},
		&corev1.Secret{ObjectMeta: meta("celsius-webhook-certs", ""), Data: map[string][]byte{"tls.key": []byte("s3cr3t")}},
		&corev1.ConfigMap{ObjectMeta: meta("settings", ""), Data: map[string]string{"password": "s3cr3t"}},
		&coordinationv1.Lease{ObjectMeta: meta("celsius-scheduler", ""), Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}},
		&coordinationv1.Lease{ObjectMeta: meta("celsius-controllers", ""), Spec: coordinationv1.LeaseSpec{HolderIdentity: &machine}},
		&corev1.Event{ObjectMeta: meta("e1", ""), Type: "Warning", Reason: "BackOff", Message: "Back-off of acme", LastTimestamp: metav1.NewTime(
			now().Add(-time.Minute)), InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "celsius-scheduler-1"}},
		&corev1.Event{ObjectMeta: meta("e2", ""), Type: "Normal", Reason: "Pulled", Message: "Image is there", LastTimestamp: metav1.NewTime(
			now().Add(-time.Hour)), InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "celsius-scheduler-1"}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "celsius"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{one},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "other"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{other},
		},
	} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// holderOfLease stays in an anonymous bundle, because it is the name of a pod of Celsius.
const holderOfLease = "holderIdentity: celsius-scheduler-1_x"

// answers returns the answer of an API server for a path. Metrics can be read by TLS only. The log of the container before the restart
// cannot be read.
func answers(_ context.Context, path, _ string, _ []byte) ([]byte, error) {
	at, query, _ := strings.Cut(path, "?")
	switch {
	case at == "/version":
		return []byte(`{"gitVersion": "v1.36.3"}`), nil
	case strings.HasSuffix(at, "/pods/https:celsius-scheduler-1:8080/proxy/metrics"):
		return []byte("celsius_cycles_total 5\n"), nil
	case strings.HasSuffix(at, "/celsius-scheduler-1/log") && strings.Contains(query, "previous=false&tailLines=2000&limitBytes=1048576"):
		return []byte("2026-11-26T11:59:00Z scheduling for acme\n"), nil
	}
	return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods/log"}, "celsius-scheduler-1", errors.New("alice may not"))
}

// bundles runs the command. It returns the output and the content of the file, each part as "-- NAME --" and its text.
func (w *world) bundles(t *testing.T, reach *Reach, args ...string) (printed, files string, err error) {
	t.Helper()
	root := &cobra.Command{Use: "celsius", SilenceErrors: true, SilenceUsage: true, Version: "v1.2.3"}
	root.AddCommand(Commands(Options{Now: now, Connect: func(*genericclioptions.ConfigFlags) (*Reach, error) { return reach, nil }})...)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"support-bundle"}, args...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		return out.String(), "", err
	}
	all, err := filepath.Glob("*.tar.gz")
	if err != nil || len(all) != 1 {
		t.Fatalf("written is %v, %v", all, err)
	}
	return out.String(), unpacked(t, all[0]), nil
}

func unpacked(t *testing.T, name string) string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the bundle has the mode %v, %v: others can read it", info.Mode(), err)
	}
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for packed := tar.NewReader(plain); ; {
		head, err := packed.Next()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(packed)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "-- %s --\n%s", head.Name, text)
	}
}

// TestBundle compares a bundle with testdata/bundle.txt. The bundle must not contain a secret.
func TestBundle(t *testing.T) {
	golden, err := filepath.Abs("testdata/bundle.txt")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	installed(t, w)
	t.Chdir(t.TempDir())
	t.Setenv("KUBECONFIG", "none")
	printed, files, err := w.bundles(t, &Reach{WithWatch: w.client, Raw: answers})
	if err != nil {
		t.Fatal(err)
	}
	got := printed + files
	if strings.Contains(got, "s3cr3t") {
		t.Error("what is secret stands in the bundle")
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the bundle (-want +got; -update writes it):\n%s", diff)
	}
	// The command does not replace an existing file without --overwrite.
	if _, _, err := w.bundles(t, &Reach{WithWatch: w.client, Raw: answers}); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("over a file that is there: %v", err)
	}
	if _, again, err := w.bundles(t, &Reach{WithWatch: w.client, Raw: answers}, "--overwrite"); err != nil || again != files {
		t.Errorf("with --overwrite: %v", err)
	}
	printed, _, err = w.bundles(t, &Reach{WithWatch: w.client, Raw: answers}, "--overwrite", "-n", "team")
	if err != nil || !strings.Contains(printed, "pods.yaml: there is none in namespace team; -n says where Celsius is installed") {
		t.Errorf("in another namespace: %v\n%s", err, printed)
	}
}

func TestBundleWithoutNames(t *testing.T) {
	w := newWorld(t)
	installed(t, w)
	t.Chdir(t.TempDir())
	t.Setenv("KUBECONFIG", "none")
	printed, files, err := w.bundles(t, &Reach{WithWatch: w.client, Raw: answers}, "--anonymize")
	if err != nil {
		t.Fatal(err)
	}
	told := strings.ReplaceAll(printed+files, "uid: u-train", "") // the bundle keeps UIDs; only in this test, they contain names
	for _, word := range []string{"s3cr3t", "acme", "alice", "research", "train", "10.1.1.1", "-- logs"} {
		if strings.Contains(told, word) {
			t.Errorf("%q stands in the bundle without names:\n%s", word, told)
		}
	}
	if !strings.Contains(printed, "left out by --anonymize") || !strings.Contains(files, "image: celsius:1.0") ||
		!strings.Contains(files, holderOfLease) {
		t.Errorf("it is not said what is left out:\n%s", printed)
	}
}

// TestBundleOfLittle checks a user with almost no rights. The bundle then states what is forbidden. If the API server does not answer, no
// bundle is written.
func TestBundleOfLittle(t *testing.T) {
	w := newWorld(t)
	t.Chdir(t.TempDir())
	t.Setenv("KUBECONFIG", "none")
	forbidden := func(context.Context, string, string, []byte) ([]byte, error) {
		return answers(t.Context(), "", "", nil)
	}
	reach := &Reach{Raw: forbidden, WithWatch: interceptor.NewClient(w.client, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: fmt.Sprint(list.GetObjectKind().GroupVersionKind().Kind)}, "", nil)
		},
	})}
	printed, files, err := w.bundles(t, reach)
	if err != nil || !strings.Contains(files, "snapshot.yaml: Pods: PodList is forbidden") ||
		!strings.Contains(printed, "deployments.yaml: DeploymentList is forbidden") {
		t.Errorf("%v\n%s", err, printed)
	}
	gone := errors.New("connection refused")
	reach.Raw = func(context.Context, string, string, []byte) ([]byte, error) { return nil, gone }
	if _, _, err := w.bundles(t, reach, "--to", "other.tar.gz"); !errors.Is(err, gone) {
		t.Errorf("where nobody answers: %v", err)
	}
	if _, err := os.Stat("other.tar.gz"); err == nil {
		t.Error("a file is written where nobody answers")
	}
}

// TestBundleIsBounded checks that a long file is cut between two objects, or otherwise between two lines. A note states this.
func TestBundleIsBounded(t *testing.T) {
	b := &bundle{}
	object := "---\nname: x\n"
	b.add("objects.yaml", []byte(strings.Repeat(object, mostOfFile/len(object)+1)))
	b.add("a.log", []byte(strings.Repeat("a line\n", mostOfFile/7+1)))
	b.add("one.log", bytes.Repeat([]byte("x"), mostOfFile+1))
	for i, end := range []string{"name: x\n", "a line\n", ""} {
		data := b.files[i].data
		if len(data) > mostOfFile || !bytes.HasSuffix(data, []byte(end)) {
			t.Errorf("%s has %d bytes, and ends with %q", b.files[i].name, len(data), data[max(len(data)-20, 0):])
		}
	}
	if len(b.notes) != 3 || !strings.Contains(b.notes[0], "bytes are kept") {
		t.Errorf("told is %v", b.notes)
	}
}
