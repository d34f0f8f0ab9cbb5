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

// runningScheduler is the live scheduler in a run: a process of its own, as in a cluster.
type runningScheduler struct {
	process  *exec.Cmd
	metrics  string // where it serves them
	profiles string
	cancel   context.CancelFunc
	first    chan struct{} // closed when its first cycle begins
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
func (b *bench) startScheduler(ctx context.Context) (*runningScheduler, error) {
	s := &runningScheduler{first: make(chan struct{}), ended: make(chan struct{})}
	for _, address := range []*string{&s.metrics, &s.profiles} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		*address = listener.Addr().String()
		if err := listener.Close(); err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
	}
	var running context.Context
	running, s.cancel = context.WithCancel(ctx)
	s.process = exec.CommandContext(running, b.celsius, "scheduler", "--kubeconfig", b.cluster.Kubeconfig, "--scheduler-name", schedulerName,
		"--leader-elect=false", "--health-address", "0", "--metrics-address", s.metrics, "--metrics-secure=false", "--pprof-address", s.profiles)
	s.process.Cancel = func() error { return s.process.Process.Signal(syscall.SIGTERM) }
	s.process.WaitDelay = stopWithin
	stderr, err := s.process.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	go func() {
		defer close(s.ended)
		s.hear(io.TeeReader(stderr, b.cluster.Log))
		if err := s.process.Wait(); running.Err() == nil {
			b.cluster.Fail(fmt.Errorf("scheduler: ended by itself: %w", err))
		}
	}()
	return s, nil
}

// hear reads the log, which says when the first cycle is about to begin.
func (s *runningScheduler) hear(log io.Reader) {
	begin := sync.OnceFunc(func() {
		s.begun, s.used = time.Now(), s.now()
		close(s.first)
	})
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if bytes.Contains(lines.Bytes(), []byte(`] "scheduling"`)) {
			begin()
		}
	}
	_, _ = io.Copy(io.Discard, log) // where a line was too long; the process must not wait for us
}

// await waits for the first cycle.
func (s *runningScheduler) await(ctx context.Context) error {
	select {
	case <-s.first:
		return nil
	case <-s.ended:
		return errors.New("the scheduler ended before it scheduled")
	case <-ctx.Done():
		return fmt.Errorf("the scheduler's first cycle: %w", ctx.Err())
	}
}

// stop ends the process.
func (s *runningScheduler) stop() {
	s.cancel()
	<-s.ended
}

// now is what was used since the processes started.
func (s *runningScheduler) now() processors {
	own := processorTimeOf(s.process.Process.Pid)
	return processors{processorTime() + own, own}
}

// since is what was used since the first cycle.
func (s *runningScheduler) since() processors {
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
func (s *runningScheduler) peakMemory() (int, error) {
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

// requests is how many requests the scheduler has made, by verb and resource.
func (s *runningScheduler) requests(ctx context.Context) (requests, error) {
	page, err := get(ctx, "http://"+s.metrics+"/metrics")
	if err != nil {
		return nil, err
	}
	out := requests{}
	for _, m := range requestSeries.FindAllSubmatch(page, -1) {
		n, err := strconv.ParseFloat(string(m[3]), 64)
		if err != nil {
			return nil, fmt.Errorf("metrics of the scheduler: %w", err)
		}
		out[string(m[2])+" "+string(m[1])] = n
	}
	return out, nil
}

// profileScheduler has the scheduler write a CPU profile, where they are wanted: of as long as a run of the bare loop is to take
// at least.
func (b *bench) profileScheduler(ctx context.Context, s *runningScheduler, name string) {
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
