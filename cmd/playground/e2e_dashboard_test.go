package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// shownPage is the page of a celsius dashboard without a browser.
type shownPage struct {
	w    *world
	base string
	key  string
}

// dashboard runs celsius dashboard with flags until the test ends.
func (w *world) dashboard(flags ...string) shownPage {
	w.t.Helper()
	args := append([]string{"dashboard", "--address", "127.0.0.1:0"}, flags...)
	command := exec.CommandContext(context.WithoutCancel(w.Context), celsiusBinary(w.t), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+w.Kubeconfig)
	var errs strings.Builder
	command.Stderr = &errs
	out, err := command.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil {
			w.t.Errorf("celsius dashboard ends with %v\n%s", err, &errs)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	at, found := strings.CutPrefix(line[strings.Index(line, ": open ")+1:], " open ")
	base, key, ok := strings.Cut(strings.TrimSpace(at), "#key=")
	if err != nil || !found || !ok {
		w.t.Fatalf("celsius dashboard says %q: %v\n%s", line, err, &errs)
	}
	return shownPage{w, base, key}
}

func (p shownPage) get(ctx context.Context, path, key string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	return http.DefaultClient.Do(request)
}

// read reads a path into an object.
func (p shownPage) read(path string, into any) error {
	response, err := p.get(p.w.Context, path, p.key)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %d %s", path, response.StatusCode, text)
	}
	return json.Unmarshal(text, into)
}

// until reads the stream until a section shows something.
func (p shownPage) until(section string, shows func(data string) bool) {
	p.w.t.Helper()
	ctx, cancel := context.WithTimeout(p.w.Context, waitAtMost)
	defer cancel()
	response, err := p.get(ctx, "dashboard/stream", p.key)
	if err != nil {
		p.w.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewReader(response.Body)
	event, last := "", ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			p.w.t.Fatalf("section %s never shows it: %v; the last is\n%s", section, err, last)
		}
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			event = strings.TrimSpace(name)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && event == section {
			if last = data; shows(data) {
				return
			}
		}
	}
}

// TestE2EDashboard follows jobs in the stream of celsius dashboard, opens one, and repeats this as a user with fewer permissions.
func TestE2EDashboard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	w.Nodes(1, "cpu=3,memory=16Gi")
	p := w.dashboard("--namespace", w.Namespace)
	response, err := p.get(w.Context, "dashboard/search?text=a", "guessed")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the key: %d", response.StatusCode)
	}
	w.Apply(jobLike("runs"))
	w.phase("runs", "Running")
	w.Apply(jobLike("waits"))
	p.until("line", func(data string) bool {
		return strings.Contains(data, `"name":"waits"`) && strings.Contains(data, "not let into queue") &&
			!strings.Contains(data, `"name":"runs"`)
	})
	p.until("queues", func(data string) bool { return strings.Contains(data, `"name":"`+w.Queue("a")+`"`) })
	p.until("overview", func(data string) bool { return strings.Contains(data, `"Running":2`) })
	var story struct {
		Job     struct{ Phase string }
		Entries []struct{ What string }
		Pods    []struct{ Node, Phase string }
		Lacks   []string
	}
	w.Wait("the story of the job that runs is told", func() error {
		if err := p.read("dashboard/job?"+url.Values{"namespace": {w.Namespace}, "name": {"runs"}}.Encode(), &story); err != nil {
			return err
		}
		text := fmt.Sprint(story)
		for _, want := range []string{"Job made", "PodGroup made", "2 of 2 pods started", "Job Running", "event "} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("%q is not in %s", want, text)
			}
		}
		return nil
	})
	if len(story.Pods) != 2 || story.Pods[0].Node == "" || len(story.Lacks) != 0 {
		t.Errorf("its pods: %+v", story)
	}
	var found struct{ Found []struct{ Kind, Name string } }
	if err := p.read("dashboard/search?text=waits", &found); err != nil || len(found.Found) == 0 || found.Found[0].Kind != "job" {
		t.Errorf("a search finds %+v: %v", found, err)
	}
	w.Kubectl("delete", "vcjob", "runs")
	p.until("line", func(data string) bool { return !strings.Contains(data, `"name":"waits"`) }) // it has free resources now

	dashboardOfOneWhoSeesLess(w)
}

// dashboardOfOneWhoSeesLess opens the dashboard as a user who may only list PodGroups.
func dashboardOfOneWhoSeesLess(w *world) {
	w.Kubectl("create", "role", "sees-groups", "--verb=list,watch", "--resource=podgroups.scheduling.volcano.sh")
	w.Kubectl("create", "rolebinding", "sees-groups", "--role=sees-groups", "--serviceaccount="+w.Namespace+":default")
	w.Apply(jobLike("waits-too", "replicas: 2", "replicas: 9"))
	less := w.dashboard("--namespace", w.Namespace, "--as", "system:serviceaccount:"+w.Namespace+":default")
	less.until("line", func(data string) bool { return strings.Contains(data, "waits-too") })
	less.until("overview", func(data string) bool {
		return strings.Contains(data, "you may not list and watch pods in namespace "+w.Namespace) &&
			strings.Contains(data, "you may not list and watch nodes in the cluster") && !strings.Contains(data, `{"of":"podgroups`)
	})
}
