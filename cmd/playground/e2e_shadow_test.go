package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/live"
	"github.com/celsius-scheduler/celsius/engine/live/beside"
	"github.com/celsius-scheduler/celsius/statemachines/controller"
)

// packsOrSpreads returns a policy that differs from another in one table only.
func packsOrSpreads(name, table string) string {
	return `
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: "` + name + `"}
spec:
  pipeline: [enqueue, allocate]
  tiers:
  - name: first
    tables: [{name: priority}, {name: gang}, {name: predicates}, {name: proportion}, {name: ` + table + `}]
`
}

// shadowRole matches the ClusterRole in the page about security.
var shadowRole = regexp.MustCompile("(?s)```yaml\n(kind: ClusterRole.*?)```")

// shadowing is a running celsius shadow, as a user with only the permissions of the role.
type shadowing struct {
	t         *testing.T
	command   *exec.Cmd
	out       bytes.Buffer
	mu        sync.Mutex
	errs      bytes.Buffer
	isWatched chan struct{}
	once      sync.Once
}

// Write implements io.Writer for the standard error.
func (s *shadowing) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := s.errs.Write(text)
	if strings.Contains(s.errs.String(), "watching") {
		s.once.Do(func() { close(s.isWatched) })
	}
	return n, nil
}

// shadow starts it, and returns when it is watching.
func (w *world) shadow(t *testing.T, policy string, args ...string) *shadowing {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{
		"shadow", "--as", w.Name + "-shadow", "--policy", file, "--node-selector", w.NodeSelector, "--cycles", "0", "-o", "json",
	}, args...)
	s := &shadowing{t: t, command: exec.CommandContext(w.Context, celsiusBinary(t), args...), isWatched: make(chan struct{})}
	s.command.Env = append(os.Environ(), "KUBECONFIG="+w.Kubeconfig)
	s.command.Stdout, s.command.Stderr = &s.out, s
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	w.Wait("it watches", func() error {
		select {
		case <-s.isWatched:
			return nil
		default:
			s.mu.Lock()
			defer s.mu.Unlock()
			return fmt.Errorf("it says %q", s.errs.String())
		}
	})
	return s
}

// shadowUser gives a user the permissions of the role in the page about security.
func (w *world) shadowUser() {
	w.t.Helper()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		w.t.Fatal(err)
	}
	role := shadowRole.FindSubmatch(page)
	if role == nil {
		w.t.Fatal("docs/security.md shows no ClusterRole")
	}
	w.Apply(strings.Replace(string(role[1]), "{name: celsius-shadow}", `{name: "${world}-shadow"}`, 1))
	w.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "${world}-shadow"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "${world}-shadow"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "${world}-shadow"}]
`)
}

// report interrupts it, and returns its report.
func (s *shadowing) report() *beside.Report {
	s.t.Helper()
	if err := s.command.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	if err := s.command.Wait(); err != nil {
		s.t.Fatalf("%v: %s", err, s.errs.String())
	}
	r := &beside.Report{}
	if err := json.Unmarshal(s.out.Bytes(), r); err != nil {
		s.t.Fatalf("%v in %s", err, s.out.String())
	}
	if strings.Contains(s.errs.String(), "forbidden") {
		s.t.Errorf("something was refused:\n%s", s.errs.String())
	}
	s.t.Logf("%s", s.errs.String())
	return r
}

// TestE2EShadow runs a scheduler with the name volcano and two shadows. One uses the scheduler's own policy, and agrees in everything. The
// other uses another policy, and reports pods that it would place on other nodes. It serves the name volcano, so it is not parallel.
func TestE2EShadow(t *testing.T) {
	w := newWorld(t)
	w.queue("a", 1)
	w.Nodes(3, "cpu=8,memory=16Gi")
	w.Apply(packsOrSpreads("${policy}", "binpack"))
	w.shadowUser()
	volcano := []string{"volcano"}
	w.StartScheduler(func(o *live.Options) { o.SchedulerNames = volcano })
	w.StartControllers(func(o *controller.Options) { o.SchedulerNames = volcano })
	same := w.shadow(t, packsOrSpreads("same", "binpack"))
	other := w.shadow(t, packsOrSpreads("other", "nodeorder"), "--period", "200ms")
	const jobs, pods = 5, 2
	w.runForVolcano(jobs, pods)
	r := same.report()
	if r.Agreement != 1 || len(r.Differences) > 0 || r.Missed > 0 || counted(r, beside.Bind).Alike != jobs*pods ||
		counted(r, beside.Admit).Alike != jobs {
		t.Errorf("by the scheduler's own policy:\n%s\n%+v", r.Text(), r.Differences)
	}
	r = other.report()
	if c := counted(r, beside.Bind); c.All() != jobs*pods || c.Elsewhere < jobs || c.Elsewhere != len(r.Differences) || r.Missed > 0 {
		t.Errorf("by another policy:\n%s", r.Text())
	}
	checkElsewhere(t, r)
	t.Logf("\n%s", r.Text())
	w.Kubectl("delete", "clusterrolebinding", "${world}-shadow")
	w.checkShadowRefused()
}

// runForVolcano runs Jobs of the scheduler volcano one after the other. The pods of each start together.
func (w *world) runForVolcano(jobs, pods int) {
	w.t.Helper()
	for i := range jobs {
		name := fmt.Sprintf("j%d", i)
		w.Apply(`
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: ` + name + `}
spec:
  schedulerName: volcano
  queue: ${queue.a}
  minAvailable: ` + fmt.Sprint(pods) + `
  tasks:` + task("worker", pods, "{run: 1h}"))
		w.phase(name, "Running")
	}
}

// checkElsewhere checks that each difference names two nodes, with the scores of both.
func checkElsewhere(t *testing.T, r *beside.Report) {
	t.Helper()
	for i := range r.Differences {
		if d := &r.Differences[i]; d.Other.Node == d.Celsius.Node || len(d.Other.Scores) == 0 || len(d.Celsius.Scores) == 0 {
			t.Errorf("%s", d)
		}
	}
}

// checkShadowRefused checks the message for a user who may not watch.
func (w *world) checkShadowRefused() {
	w.t.Helper()
	command := exec.CommandContext(w.Context, celsiusBinary(w.t), "shadow", "--as", w.Name+"-shadow")
	command.Env = append(os.Environ(), "KUBECONFIG="+w.Kubeconfig)
	if r := runCommand(w.t, command); r.Code != 1 || !strings.Contains(r.Err, "forbidden") {
		w.t.Errorf("it ends with %d, and says\n%s", r.Code, r.Err)
	}
}

// counted returns the sum of the results for decisions of one kind.
func counted(r *beside.Report, verb string) (sum beside.Counts) {
	for _, c := range r.Queues {
		if c.Verb == verb {
			sum.Alike, sum.Elsewhere, sum.Alone = sum.Alike+c.Alike, sum.Elsewhere+c.Elsewhere, sum.Alone+c.Alone
			sum.Later, sum.NotYet = sum.Later+c.Later, sum.NotYet+c.NotYet
		}
	}
	return sum
}
