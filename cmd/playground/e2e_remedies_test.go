package main

import (
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestE2ERemedies runs the commands in messages and on the dashboard that need a cluster, without any change.
func TestE2ERemedies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	queue := w.queue("a", 1)
	w.Nodes(1, "cpu=3,memory=16Gi")
	w.Apply(jobLike("runs"))
	w.phase("runs", "Running")
	for _, c := range []struct{ yaml, prints string }{
		{strings.Replace(jobLike("lost"), "${queue.a}", "qqqqqqqqqqqqqqqq", 1), queue},
		{
			"apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: lost}\nspec: {minMember: 1, " +
				"queue: qqqqqqqqqqqqqqqq}\n", queue,
		},
		{
			strings.Replace(w.commandText("CloseQueue", "Queue", queue), w.field("queue/"+queue, ".metadata.uid"), `""`, 1),
			w.field("queue/"+queue, ".metadata.uid"),
		},
	} {
		message := w.refused(c.yaml)
		found := regexp.MustCompile("kubectl get [^`)]*").FindString(message)
		if found == "" {
			t.Errorf("no command is named in %s", message)
			continue
		}
		if out := w.shell(found); !strings.Contains(out, c.prints) {
			t.Errorf("%s does not print %s:\n%s", found, c.prints, out)
		}
	}
	if out := w.shell("kubectl get spol -o yaml"); !strings.Contains(out, "kind: List") {
		t.Errorf("policies are not listed:\n%s", out)
	}

	p := w.dashboard()
	node := w.Kubectl("get", "nodes", "-l", w.NodeSelector, "-o", "jsonpath={.items[0].metadata.name}")
	ran := 0
	for _, path := range []string{
		"dashboard/job?" + url.Values{"namespace": {w.Namespace}, "name": {"runs"}}.Encode(),
		"dashboard/queue?" + url.Values{"name": {queue}}.Encode(), "dashboard/node?" + url.Values{"name": {node}}.Encode(),
	} {
		var page struct{ Commands []string }
		w.Wait("the page "+path+" is shown", func() error { return p.read(path, &page) })
		for _, command := range page.Commands {
			if strings.HasPrefix(command, "celsius explain ") {
				continue // TestE2EDeploy has a scheduler that answers
			}
			ran++
			w.shell(command)
		}
	}
	if ran < 8 {
		t.Errorf("%d commands of the dashboard are run, want at least 8", ran)
	}
}

// shell runs a command as a user who copies it into a shell, and returns the output.
func (w *world) shell(line string) string {
	w.t.Helper()
	d := newDesk(w.t.(*testing.T), w.Kubeconfig, celsiusBinary(w.t))
	command := exec.CommandContext(w.Context, "bash", "-e", "-c", line)
	command.Dir, command.Env = d.dir, slices.Concat(os.Environ(), d.env)
	out, err := command.CombinedOutput()
	if err != nil {
		w.t.Errorf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}
