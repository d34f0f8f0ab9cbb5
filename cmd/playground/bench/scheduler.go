package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopWithin is how long the scheduler may take to stop.
const stopWithin = 10 * time.Second

// program is a part of Celsius in a run, the scheduler or the controllers: a process of its own, as in a cluster.
type program struct {
	name     string
	process  *exec.Cmd
	metrics  string // where it serves them
	profiles string
	cancel   context.CancelFunc
	ready    string        // what it logs when it begins to work
	first    chan struct{} // closed when it did
	ended    chan struct{} // closed when the process is gone

	// Of the time when first was closed.
	begun time.Time
	used  processors
}

// processors is processor time.
type processors struct {
	all time.Duration // this process's and the scheduler's
	own time.Duration // of it the scheduler's
}

// startScheduler starts the product's scheduler. It ends, at the latest, with ctx.
func (b *bench) startScheduler(ctx context.Context) (*program, error) {
	s := &program{name: "scheduler", ready: `] "scheduling"`}
	if err := freePort(&s.profiles); err != nil {
		return nil, err
	}
	return s, b.start(ctx, s, "--pprof-address", s.profiles)
}

// startControllers starts the product's controllers in the same way.
func (b *bench) startControllers(ctx context.Context) (*program, error) {
	s := &program{name: "controllers", ready: `] "Starting workers" logger="controllers" controller="job"`}
	return s, b.start(ctx, s)
}

// freePort finds a port that nobody listens on.
func freePort(address *string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("find a free port: %w", err)
	}
	*address = listener.Addr().String()
	if err := listener.Close(); err != nil {
		return fmt.Errorf("find a free port: %w", err)
	}
	return nil
}

// start starts a program with what all have in common, and more arguments.
func (b *bench) start(ctx context.Context, s *program, more ...string) error {
	s.first, s.ended = make(chan struct{}), make(chan struct{})
	if err := freePort(&s.metrics); err != nil {
		return err
	}
	var running context.Context
	running, s.cancel = context.WithCancel(ctx)
	s.process = exec.CommandContext(running, b.celsius, append([]string{
		s.name, "--kubeconfig", b.cluster.Kubeconfig,
		"--scheduler-name", schedulerName, "--leader-elect=false", "--health-address", "0", "--metrics-address", s.metrics,
		"--metrics-secure=false",
	}, more...)...)
	s.process.Cancel = func() error { return s.process.Process.Signal(syscall.SIGTERM) }
	s.process.WaitDelay = stopWithin
	stderr, err := s.process.StderrPipe()
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if err := s.process.Start(); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	go func() {
		defer close(s.ended)
		s.hear(io.TeeReader(stderr, b.cluster.Log))
		_ = s.process.Wait() // the state says it
		if running.Err() == nil {
			b.cluster.Fail(fmt.Errorf("%s: ended by itself: %s", s.name, s.process.ProcessState))
		}
	}()
	return nil
}

// hear reads the log, which says when the work is about to begin.
func (s *program) hear(log io.Reader) {
	begin := sync.OnceFunc(func() {
		s.begun, s.used = time.Now(), s.now()
		close(s.first)
	})
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if bytes.Contains(lines.Bytes(), []byte(s.ready)) {
			begin()
		}
	}
	_, _ = io.Copy(io.Discard, log) // where a line was too long; the process must not wait for us
}

// await waits until it works: the scheduler for its first cycle.
func (s *program) await(ctx context.Context) error {
	select {
	case <-s.first:
		return nil
	case <-s.ended:
		return fmt.Errorf("the %s ended before it worked", s.name)
	case <-ctx.Done():
		return fmt.Errorf("the beginning of the %s: %w", s.name, ctx.Err())
	}
}

// stop ends the process.
func (s *program) stop() {
	s.cancel()
	<-s.ended
}

// now is what was used since the processes started.
func (s *program) now() processors {
	own := processorTimeOf(s.process.Process.Pid)
	return processors{processorTime() + own, own}
}

// since is what was used since the first cycle.
func (s *program) since() processors {
	return s.now().since(s.used)
}

func (p processors) since(before processors) processors {
	return processors{p.all - before.all, p.own - before.own}
}

// processorTimeOf is what another process has used so far, to the hundredth of a second that Linux counts by.
func processorTimeOf(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// After the name, which is in parentheses: user and system time are the fields 14 and 15 of all.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

// peakMemory is the most memory that the process ever held, in bytes.
func (s *program) peakMemory() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("memory of the scheduler: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if size, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(size), "kB")))
			return n << 10, err
		}
	}
	return 0, errors.New("memory of the scheduler: the system does not tell")
}

// get reads a page that the scheduler serves.
func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	body, err := io.ReadAll(response.Body)
	return body, errors.Join(err, response.Body.Close())
}

var requestSeries = regexp.MustCompile(`(?m)^celsius_api_requests_total\{resource="([^"]*)",verb="([^"]*)"\} (\d+)`)

// requests is how many requests the program has made, by verb and resource, but for watches.
func (s *program) requests(ctx context.Context) (requests, error) {
	page, err := get(ctx, "http://"+s.metrics+"/metrics")
	if err != nil {
		return nil, err
	}
	out := requests{}
	for _, m := range requestSeries.FindAllSubmatch(page, -1) {
		n, err := strconv.ParseFloat(string(m[3]), 64)
		if err != nil {
			return nil, fmt.Errorf("metrics of the %s: %w", s.name, err)
		}
		if string(m[2]) != "watch" {
			out[string(m[2])+" "+string(m[1])] = n
		}
	}
	return out, nil
}

// profileScheduler has the scheduler write a CPU profile, where they are wanted: of as long as a run of the bare loop is to take
// at least.
func (b *bench) profileScheduler(ctx context.Context, s *program, name string) {
	if b.profiles == "" {
		return
	}
	file := filepath.Join(b.profiles, fmt.Sprintf("scheduler-%s-%d.pprof", name, b.runs))
	seconds := max(int(b.least.Seconds()), 1)
	go func() {
		page, err := get(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", s.profiles, seconds))
		if err == nil {
			err = os.WriteFile(file, page, 0o600)
		}
		if err != nil {
			_, _ = fmt.Fprintf(b.cluster.Log, "profile of the scheduler: %v\n", err)
		}
	}()
}
