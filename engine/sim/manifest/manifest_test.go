package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestReadFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"b/z.yml", "a.yaml", "b/c.json", "b/notes.txt"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := Read(strings.NewReader("from a pipe"), "-", dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sources {
		got = append(got, strings.TrimPrefix(s.Name, dir+"/")+"="+string(s.Data))
	}
	want := []string{"<stdin>=from a pipe", "a.yaml=a.yaml", "b/c.json=b/c.json", "b/z.yml=b/z.yml"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sources (-want +got)\n%s", diff)
	}
	if _, err := Read(nil, filepath.Join(dir, "none")); err == nil {
		t.Error("a path that is not there must be an error")
	}
	if _, err := Read(nil, t.TempDir()); err == nil {
		t.Error("an empty folder must be an error")
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		want []string
	}{
		{"n", []string{"n"}},
		{"n[1-3]", []string{"n1", "n2", "n3"}},
		{"a-[08-10]-z", []string{"a-08-z", "a-09-z", "a-10-z"}},
		{"n[3-1]", nil},
		{"n[1-", nil},
		{"n[1-2][3-4]", nil},
		{"n[0-99999999]", nil},
		{"n[-1-2]", nil},
	}
	for _, test := range tests {
		got, err := ExpandName(test.name)
		if (err != nil) != (test.want == nil) {
			t.Errorf("%s: error %v", test.name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestParseTaintAndToleration(t *testing.T) {
	t.Parallel()
	taints := map[string]corev1.Taint{
		"a=b:NoSchedule":      {Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule},
		"x.io/a:NoExecute":    {Key: "x.io/a", Effect: corev1.TaintEffectNoExecute},
		"a":                   {},
		"a:Sometimes":         {},
		":PreferNoSchedule":   {},
		"=b:NoSchedule":       {},
		"a=:PreferNoSchedule": {Key: "a", Effect: corev1.TaintEffectPreferNoSchedule},
	}
	for text, want := range taints {
		got, err := parseTaint(text)
		if (err != nil) != (want.Key == "") {
			t.Errorf("taint %s: error %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("taint %s (-want +got)\n%s", text, diff)
		}
	}
	tolerations := map[string]corev1.Toleration{
		"*":              {Operator: corev1.TolerationOpExists},
		"a":              {Key: "a", Operator: corev1.TolerationOpExists},
		"a=b":            {Key: "a", Operator: corev1.TolerationOpEqual, Value: "b"},
		"a=b:NoSchedule": {Key: "a", Operator: corev1.TolerationOpEqual, Value: "b", Effect: corev1.TaintEffectNoSchedule},
		"a:NoExecute":    {Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	}
	for text, want := range tolerations {
		got, err := parseToleration(text)
		if err != nil {
			t.Errorf("toleration %s: error %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("toleration %s (-want +got)\n%s", text, diff)
		}
	}
	for _, text := range []string{"", ":NoSchedule", "a:Never"} {
		if _, err := parseToleration(text); err == nil {
			t.Errorf("toleration %q must be an error", text)
		}
	}
}
