package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestE2ECommandLine runs a Job through its life with the command line only: under its own name, as kubectl's plugin, and with the names of
// Volcano's programs.
func TestE2ECommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	w.guarded()
	w.Nodes(1, "cpu=8,memory=16Gi")
	bin := t.TempDir()
	for _, name := range []string{"celsius", "kubectl-celsius", "vcctl", "vjobs", "vsub", "vsuspend", "vresume", "vcancel", "vqueues"} {
		if err := os.Symlink(celsiusBinary(t), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(stdin, name string, args ...string) ran {
		t.Helper()
		for i, arg := range args {
			args[i] = w.Expand(arg)
		}
		command := exec.CommandContext(w.Context, filepath.Join(bin, name), args...)
		command.Stdin = strings.NewReader(w.Expand(stdin))
		command.Env = append(os.Environ(), "KUBECONFIG="+w.Kubeconfig, "HOME="+bin)
		return runCommand(t, command)
	}
	says := func(want string, r ran) {
		t.Helper()
		if all := r.Out + r.Err; !strings.Contains(strings.Join(strings.Fields(all), " "), w.Expand(want)) {
			t.Errorf("it says\n%s\nand not %q", all, w.Expand(want))
		}
	}
	until := func(want, name string, args ...string) {
		t.Helper()
		w.Wait(want, func() error {
			r := run("", name, args...)
			if !strings.Contains(strings.Join(strings.Fields(r.Out), " "), w.Expand(want)) {
				return fmt.Errorf("%s says\n%s%s", name, r.Out, r.Err)
			}
			return nil
		})
	}
	ns := "--namespace=" + w.Namespace

	says("job.batch.volcano.sh/filed created", run(jobLike("filed"), "celsius", "job", "run", "-f", "-", ns))
	w.phase("filed", "Running")
	typo := jobLike("typo", "  queue:", "  minAvailible: 1\n  queue:")
	says(`unknown field "spec.minAvailible"`, run(typo, "celsius", "job", "run", "-f", "-", ns))
	until("filed ${queue.a} Running", "kubectl-celsius", "job", "list", ns)
	until("filed-main-0 1/1 Running 0", "celsius", "pod", "list", "-j", "filed", ns)
	until("Normal SuccessfulCreate", "vjobs", "-N", w.Namespace, "-n", "filed")
	until("${queue.a} 1 Open root 0 0 1 0 0", "vcctl", "queue", "list")

	run("", "vsuspend", "-N", w.Namespace, "-n", "filed")
	w.phase("filed", "Aborted")
	says("job.batch.volcano.sh/filed is ", run("", "celsius", "job", "resume", "filed", ns))
	w.phase("filed", "Running")
	says("run job sub successfully", run("", "vsub", "-N", w.Namespace, "-n", "sub", "-S", "${scheduler}", "-c", "sleep '1 h'"))
	w.phase("sub", "Running")
	if got := w.field("pod/sub-default-0", ".spec.containers[0].command"); got != `["sleep","1 h"]` {
		t.Errorf("vsub's container runs %s", got)
	}
	says("queue.scheduling.volcano.sh/${queue.a} is Closing", run("", "celsius", "queue", "operate", "${queue.a}", "--action", "close"))
	w.Kubectl("wait", "queue/${queue.a}", "--for=jsonpath={.status.state}=Closing")
	says("cancel job sub successfully", run("", "vcancel", "-N", w.Namespace, "-n", "sub"))
	says("delete job filed successfully", run("", "vcctl", "job", "delete", "-n", w.Namespace, "-N", "filed"))
	r := run("", "vcctl", "job", "delete", "-n", w.Namespace, "-N", "nobody")
	if want := "Failed to delete job: jobs.batch.volcano.sh \"nobody\" not found\n"; r.Code != 255 || r.Out != want {
		t.Errorf("vcctl fails with %d, %q; want 255 and %q", r.Code, r.Out, want)
	}
	if r := run("", "celsius", "job", "view", "nobody", ns); r.Code != 1 || r.Out != "" || !strings.HasPrefix(r.Err, "celsius: ") {
		t.Errorf("celsius fails with %d, %q, %q", r.Code, r.Out, r.Err)
	}
}
