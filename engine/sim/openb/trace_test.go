package openb

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	smallNodes = "sn,cpu_milli,memory_mib,gpu,model\nb,64000,1024,2,P100\na,32000,1024,1,T4\n"
	smallPods  = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n" +
		"p2,1000,16,1,460,T4|P100\np1,2000,16,1,1500,\np3,500,8,0,700,T4\n"
)

// small writes a trace directory and returns its path.
func small(t *testing.T, nodes, pods string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{nodeListFile: nodes, podListPrefix + "default.csv": pods} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLoad(t *testing.T) {
	got, err := Load(small(t, smallNodes, smallPods), "default")
	if err != nil {
		t.Fatal(err)
	}
	want := &Trace{
		Workload: "default",
		Nodes:    []Node{{"a", 32000, 1024, 1, "T4"}, {"b", 64000, 1024, 2, "P100"}},
		Pods: []Pod{
			{"p1", 2000, 16, 1, 1000, ""}, // at most one whole device
			{"p2", 1000, 16, 1, 460, "T4|P100"},
			{"p3", 500, 8, 0, 0, ""}, // no device: its share and its models have no effect
		},
		devices: 3000,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Trace{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLoadErrors(t *testing.T) {
	for _, test := range []struct{ name, nodes, pods, want string }{
		{
			"not a number", smallNodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,2000,16,1,500\np2,2000,many,1,500\n",
			`default.csv:3:9: memory_mib: must be a whole number from 0, found "many"`,
		},
		{
			"negative", strings.Replace(smallNodes, "32000", "-1", 1), smallPods,
			`gpu_node.csv:3:3: cpu_milli: must be a whole number from 0, found "-1"`,
		},
		{"no name", smallNodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n,2000,16,1,500\n", "default.csv:2:1: name: must not be empty"},
		{
			"no share", smallNodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,2000,16,2,0\n",
			"default.csv:2:14: gpu_milli: must be above 0 where num_gpu is 2",
		},
		{"a column missing", smallNodes, "name,cpu_milli,memory_mib,num_gpu\n", `default.csv:1:1: the header lacks column "gpu_milli"`},
		{
			"a field missing", smallNodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,2000\n",
			"default.csv: record on line 2: wrong number of fields",
		},
		{"no pod with a device", smallNodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,2000,16,0,0\n", "found 3 devices and 1 pods"},
		{
			"too much", smallNodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,2000,16,9000000000,1\n",
			"default.csv:2:12: num_gpu: must be at most 1000000000, found 9000000000",
		},
		{
			"no pods", smallNodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n",
			"a trace needs GPUs and pods that ask for some, found 3 devices and 0 pods",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Load(small(t, test.nodes, test.pods), "default")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestLoadNamesTheOtherWorkloads(t *testing.T) {
	_, err := Load(small(t, smallNodes, smallPods), "cpu100")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `workload "cpu100" is not there; there are: default`) {
		t.Errorf("got %v", err)
	}
}

// A run requests 1.3 times the existing devices, whether the pod list requests less or more.
func TestReplayAsksForTune(t *testing.T) {
	heavy := strings.Replace(smallPods, "p1,2000,16,1,1500,", "p1,2000,16,9,1000,", 1)
	for name, pods := range map[string]string{"below": smallPods, "above": heavy} {
		trace, err := Load(small(t, smallNodes, pods), "default")
		if err != nil {
			t.Fatal(err)
		}
		for seed := range int64(20) {
			run := trace.replay(seed)
			asked := int64(0)
			for _, p := range run.pods {
				asked += p.Demand()
			}
			// 3900 is the target. The rest that did not fit is at most one whole device.
			if asked > 3900 || name == "below" && asked <= 2900 {
				t.Errorf("%s, seed %d: the pods ask for %d of %d", name, seed, asked, trace.devices)
			}
			if diff := cmp.Diff(run, trace.replay(seed), cmp.AllowUnexported(replay{})); diff != "" {
				t.Errorf("seed %d gives two runs (-first +second)\n%s", seed, diff)
			}
		}
	}
}
