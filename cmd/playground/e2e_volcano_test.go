package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/live/beside"
	"github.com/celsius-scheduler/celsius/statemachines/controller"
)

// volcanoConf is packsOrSpreads of binpack in the form of Volcano.
const volcanoConf = `
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: proportion}, {name: binpack}]
`

// startVolcano starts Volcano's own scheduler for the nodes of the world. The test is skipped if make volcano has not built it.
func (w *world) startVolcano() {
	w.t.Helper()
	const folder = "../../bin/volcano"
	program := filepath.Join(folder, "scheduler")
	if _, err := os.Stat(program); err != nil {
		w.t.Skip("SKIPPED: there is no bin/volcano/scheduler; make volcano builds it, where its module can be had")
	}
	crd, err := os.ReadFile(filepath.Join(folder, "topology.volcano.sh_hypernodes.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.Apply(string(crd)) // the scheduler waits for it
	conf := filepath.Join(w.t.TempDir(), "volcano.conf")
	if err := os.WriteFile(conf, []byte(volcanoConf), 0o600); err != nil {
		w.t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(w.t.TempDir(), "volcano.log"))
	if err != nil {
		w.t.Fatal(err)
	}
	c := exec.CommandContext(w.Context, program, "--kubeconfig", w.Kubeconfig, "--scheduler-conf", conf, "--leader-elect=false",
		"--schedule-period", "100ms", "--node-selector", strings.Replace(w.NodeSelector, "=", ":", 1), "--listen-address", "127.0.0.1:0",
		"--logtostderr", "--v", "1")
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && w.t.Failed() {
			w.t.Logf("Volcano says\n%s", text[max(0, len(text)-4000):])
		}
	})
}

// TestE2EShadowVolcano runs Volcano's scheduler and two shadows. One uses Volcano's configuration, and reports no difference. The other
// spreads where Volcano packs, and reports each pod that it would place elsewhere. It serves the name volcano, and Volcano reads PodGroups
// of all names, so it is not parallel. The nodes have three sizes, because Volcano chooses randomly between equal scores.
func TestE2EShadowVolcano(t *testing.T) {
	w := newWorld(t)
	w.queue("a", 1)
	for i := range 3 {
		w.Nodes(1, fmt.Sprintf("cpu=%d,memory=%dGi", 8+2*i, 16+4*i))
	}
	w.shadowUser()
	w.startVolcano()
	w.StartControllers(func(o *controller.Options) { o.SchedulerNames = []string{"volcano"} })
	same := w.shadow(t, packsOrSpreads("same", "binpack"))
	other := w.shadow(t, packsOrSpreads("other", "nodeorder"))
	const jobs, pods = 6, 2
	w.runForVolcano(jobs, pods)
	r := same.report()
	t.Logf("\n%s", r.Text())
	if r.Agreement != 1 || len(r.Differences) > 0 || r.Missed > 0 || counted(r, beside.Bind).Alike != jobs*pods {
		t.Errorf("as Volcano is configured: %+v", r.Differences)
	}
	r = other.report()
	t.Logf("\n%s", r.Text())
	if c := counted(r, beside.Bind); c.All() != jobs*pods || c.Elsewhere < jobs || c.Elsewhere != len(r.Differences) || r.Missed > 0 {
		t.Errorf("by another policy: %+v", c)
	}
	checkElsewhere(t, r)
}
