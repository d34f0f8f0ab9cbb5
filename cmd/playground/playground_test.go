package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// playground is the command in a separate process with its own home folder.
type playground struct {
	t    *testing.T
	home string
}

// up starts the playground with these flags, and waits until it reports that it is ready. The returned function ends it with a signal, and
// returns the output and the exit code.
func (p playground) up(args ...string) (end func(os.Signal) (string, int)) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), waitAtMost)
	p.t.Cleanup(cancel)
	cmd := playgroundCommand(ctx, args...)
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+p.home, "TMPDIR="+p.home)
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the exit code contains the result
		_ = write.Close()
		close(exited)
	}()
	var printed strings.Builder
	ready, all := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(all)
		lines := bufio.NewScanner(read)
		for lines.Scan() {
			printed.WriteString(lines.Text() + "\n")
			if strings.HasPrefix(lines.Text(), "Ctrl-C ends it") {
				close(ready)
			}
		}
	}()
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has already ended, unless the test failed
		<-exited
	})
	select {
	case <-ready:
	case <-all:
		<-exited
		p.t.Fatalf("playground %v: exit code %d\n%s", args, cmd.ProcessState.ExitCode(), printed.String())
	}
	return func(signal os.Signal) (string, int) {
		p.t.Helper()
		if err := cmd.Process.Signal(signal); err != nil {
			p.t.Fatal(err)
		}
		<-exited
		<-all
		return printed.String(), cmd.ProcessState.ExitCode()
	}
}

// run runs the playground until it ends.
func (p playground) run(args ...string) ran {
	p.t.Helper()
	cmd := playgroundCommand(p.t.Context(), args...)
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+p.home, "TMPDIR="+p.home)
	return runCommand(p.t, cmd)
}

// kubectl runs `playground kubectl`, which must find the playground by itself.
func (p playground) kubectl(args ...string) string {
	p.t.Helper()
	r := p.run(append([]string{"kubectl"}, args...)...)
	if r.Code != 0 {
		p.t.Fatalf("kubectl %v: exit code %d\n%s%s", args, r.Code, r.Out, r.Err)
	}
	return r.Out
}

// TestPlayground does what a user does: it starts the playground, uses it, ends it, starts it again on the same data, kills it, and starts
// it a third time.
func TestPlayground(t *testing.T) {
	p := playground{t, t.TempDir()}
	dir, kubeconfig := filepath.Join(p.home, "data"), filepath.Join(p.home, "my kubeconfig")
	flags := []string{"--data-dir", dir, "--kubeconfig", kubeconfig}

	end := p.up(append(flags, "--node-shape", "2x cpu=4,label:zone=a", "--node-shape", "cpu=8,nvidia.com/gpu=2", "--nodes", "1")...)
	p.checkReady()
	p.kubectl("create", "configmap", "kept", "--from-literal=a=b")
	p.kubectl("delete", "node", "node-1")
	token := p.kubectl("create", "token", "default")
	if r := p.run("kubectl", "--kubeconfig", kubeconfig, "get", "configmap", "kept"); r.Code != 0 {
		t.Errorf("the kubeconfig of --kubeconfig does not work: %s", r.Err)
	}
	if r, want := p.run("--data-dir", dir), "is in use by the playground with process id"; r.Code != exitFailed ||
		!strings.Contains(r.Err, want) {
		t.Errorf("a second one in the same folder: exit code %d and %q, want %d and %q", r.Code, r.Err, exitFailed, want)
	}

	out, code := end(syscall.SIGINT)
	if code != exitOK || !strings.HasSuffix(out, "stopping …\nstopped\n") {
		t.Errorf("Ctrl-C: exit code %d\n%s", code, out)
	}
	if want := "export KUBECONFIG='" + kubeconfig + "'"; !strings.Contains(out, want) {
		t.Errorf("no line %q in\n%s", want, out)
	}
	if page := regexp.MustCompile(`Look at it in a browser: http://127\.0\.0\.1:\d+/#key=\w{20,}\n`); !page.MatchString(out) {
		t.Errorf("the page is not told of in\n%s", out)
	}
	if r := p.run("kubectl", "get", "nodes"); r.Code == 0 || !strings.Contains(r.Err, "no playground is running") {
		t.Errorf("kubectl without a playground: exit code %d, %q", r.Code, r.Err)
	}

	end = p.up(flags...)
	p.checkKept(token)
	out, _ = end(syscall.SIGKILL)
	if strings.Contains(out, "taken over") {
		t.Errorf("a clean end was taken for another:\n%s", out)
	}

	end = p.up(append(flags, "--only", "control-plane")...)
	p.kubectl("get", "configmap", "kept")
	out, code = end(syscall.SIGTERM)
	if code != exitOK || !strings.Contains(out, "ended without giving "+dir+" back; it is taken over") {
		t.Errorf("start after SIGKILL: exit code %d\n%s", code, out)
	}
}

// checkReady checks that everything works when the playground reports that it is ready, and that no test objects remain.
func (p playground) checkReady() {
	p.t.Helper()
	if got := p.kubectl("get", "nodes", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.metadata.labels.zone} {.status.allocatable.cpu} `+
			`{.status.allocatable.nvidia\.com/gpu};{end}`); got != "node-0 a 4 ;node-1 a 4 ;node-2  8 2;" {
		p.t.Errorf("nodes: %s", got)
	}
	if got := p.kubectl("get", "queue", "root", "default", "-o",
		"jsonpath={range .items[*]}{.metadata.name} {.status.state};{end}"); got != "root Open;default Open;" {
		p.t.Errorf("it says that it is ready, and the queues root and default are %q", got)
	}
	if got := p.kubectl("get", "pods,podgroups", "-A", "-o", "name"); got != "" {
		p.t.Errorf("there are pods already: %s", got)
	}
	// The control plane reports events of its own start if a part was late, for example about the address of a Service.
	workload := regexp.MustCompile(`^(Pod|PodGroup|Job|Queue|SchedulingPolicy|Node) `)
	for event := range strings.Lines(p.kubectl("get", "events", "-A", "-o",
		`jsonpath={range .items[*]}{.involvedObject.kind} {.involvedObject.name}: {.reportingComponent}: {.message}{"\n"}{end}`)) {
		if workload.MatchString(event) {
			p.t.Errorf("something has happened already: %s", event)
		}
	}
}

// checkKept checks that after a restart exactly the earlier objects exist.
func (p playground) checkKept(token string) {
	p.t.Helper()
	p.kubectl("get", "configmap", "kept")
	if nodes := p.kubectl("get", "nodes", "-o", "name"); nodes != "node/node-0\nnode/node-2\n" {
		p.t.Errorf("nodes after a second start: %q", nodes)
	}
	if user := p.kubectl("--token", strings.TrimSpace(token), "auth", "whoami", "-o",
		"jsonpath={.status.userInfo.username}"); user != "system:serviceaccount:default:default" {
		p.t.Errorf("the token of a service account is not good any more: %s", user)
	}
}

// TestPlaygroundRefuses checks the messages for invalid requests.
func TestPlaygroundRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	home := t.TempDir()
	file := filepath.Join(home, "file")
	if err := os.WriteFile(file, []byte("kind: Config\ncontexts: [{name: production, context: {}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"busy port", []string{"--port", port}, exitFailed, "port " + port +
			" of 127.0.0.1 cannot be opened: address already in use; give another --port, or --port 0 for a free one"},
		{"no port", []string{"--port", "99999"}, exitUsage, "--port 99999: give a port from 1 to 65535, or 0 for a free one"},
		{
			"data folder",
			[]string{"--data-dir", filepath.Join(file, "data")},
			exitFailed,
			"cannot be made: not a directory; give another --data-dir",
		},
		{"foreign kubeconfig", []string{"--kubeconfig", file}, exitFailed, "kubeconfig " + file +
			" was not written by a playground and is not overwritten; give another --kubeconfig"},
		{"only", []string{"--only", "etcd"}, exitUsage, "--only etcd: the only value is control-plane"},
		{"dashboard for all", []string{"--dashboard", ":8088"}, exitUsage, "--dashboard: address :8088: without --shared the page is served on"},
		{"flag", []string{"--node", "3"}, exitUsage, "unknown flag: --node; see --help"},
		{"command", []string{"up"}, exitUsage, `there is no command "up"; the only one is kubectl`},
		{"nodes", []string{"--nodes", "-1"}, exitUsage, "--nodes -1: give 0 or more"},
		{"policy file", []string{"--policy", "none.yaml"}, exitUsage, "--policy none.yaml: no such file or directory"},
		{"policy name", []string{"--policy", "My Policy"}, exitUsage, "--policy My Policy is neither a file nor a name of a SchedulingPolicy"},
		{
			"no policy",
			[]string{"--policy", file},
			exitUsage,
			"the file holds no SchedulingPolicy with a name; it opens with apiVersion: scheduling.celsius.dev/v1alpha1, kind: SchedulingPolicy",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := playground{t, home}.run(c.args...)
			if r.Code != c.code || !strings.Contains(r.Err, c.want) {
				t.Errorf("got exit code %d and\n%swant %d and\n%s", r.Code, r.Err, c.code, c.want)
			}
		})
	}
}
