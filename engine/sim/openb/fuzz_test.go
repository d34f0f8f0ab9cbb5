package openb

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// FuzzTrace checks that no content of a trace's files causes a panic, and that an error names its file. The metrics can count every trace
// that is read.
func FuzzTrace(f *testing.F) {
	f.Add([]byte(smallNodes), []byte(smallPods), []byte("workload,policy,seed,0,1\ndefault,05-BestFit,42,0,0.5\n"))
	f.Add([]byte("sn,cpu_milli,memory_mib,gpu,model\n\"a\nb\",1,1,1,T4\n"),
		[]byte("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n\xff,1,1,1,1\n"), []byte("workload,policy,seed\n"))
	f.Add([]byte("sn,cpu_milli,memory_mib,gpu,model\na,9223372036854775807,9223372036854775807,9223372036854775807,x\n"),
		[]byte("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,9223372036854775807,9223372036854775807,9223372036854775807,1\n"), []byte(""))
	dir := f.TempDir()
	files := []string{nodeListFile, podListPrefix + "default.csv", publishedFile}
	f.Fuzz(func(t *testing.T, nodes, pods, published []byte) {
		for i, data := range [][]byte{nodes, pods, published} {
			if err := os.WriteFile(filepath.Join(dir, files[i]), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		named := func(err error) bool { return strings.HasPrefix(err.Error(), dir) }
		if _, err := LoadPublished(dir); err != nil && !named(err) {
			t.Errorf("an error does not name its file: %v", err)
		}
		trace, err := Load(dir, "default")
		if err != nil {
			if !named(err) {
				t.Errorf("an error does not name its file: %v", err)
			}
			return
		}
		counted(t, trace)
	})
}

// counted fails for a trace with a negative amount or a missing name.
func counted(t *testing.T, trace *Trace) {
	t.Helper()
	var err error
	for _, n := range trace.Nodes {
		if n.Name == "" || n.CPUMilli < 0 || n.MemoryMiB < 0 || n.GPUs < 0 {
			err = errors.Join(err, errors.New("a bad node "+n.Name))
		}
	}
	for _, p := range trace.Pods {
		if p.Name == "" || p.CPUMilli < 0 || p.MemoryMiB < 0 || badDemand(&p) {
			err = errors.Join(err, errors.New("a bad pod "+p.Name))
		}
	}
	if trace.devices <= 0 {
		err = errors.Join(err, errors.New("no devices"))
	}
	if err != nil {
		t.Error(err)
	}
}

func badDemand(p *Pod) bool {
	return p.Demand() < 0 || p.GPUMilli > model.WholeGPU || p.GPUs > 0 && p.GPUMilli == 0
}
