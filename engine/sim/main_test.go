package sim

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite what the golden files and scenarios expect")
	os.Exit(m.Run())
}

func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// golden compares text with a file under testdata, or rewrites the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if updating() {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: behaviour changed: explain it in the commit, or -update (-want +got)\n%s", path, diff)
	}
}

// newTestWorld returns a world with the objects in text. It fails on mistakes, not on warnings.
func newTestWorld(t *testing.T, text string) *World {
	t.Helper()
	w := NewWorld(Options{Volumes: volume.New})
	if _, issues := w.Load(manifest.Source{Name: "test.yaml", Data: []byte(text)}); issues.Err() != nil {
		t.Fatal(issues)
	}
	check(t, w)
	return w
}

func check(t *testing.T, w *World) {
	t.Helper()
	if err := w.Cluster().Check(); err != nil {
		t.Fatalf("the cluster broke a promise: %v", err)
	}
}

// withVolumes returns the options of a world with the volume library.
func withVolumes() Options { return Options{Volumes: volume.New} }
