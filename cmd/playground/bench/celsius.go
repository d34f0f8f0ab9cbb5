package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// startScheduler starts the scheduler of Celsius. It ends with ctx at the latest.
func (b *bench) startScheduler(ctx context.Context) (*program, error) {
	s := &program{name: "scheduler", ready: `] "scheduling"`}
	return s, b.startCelsius(ctx, s)
}

// startControllers starts the controllers of Celsius. They end with ctx at the latest.
func (b *bench) startControllers(ctx context.Context) (*program, error) {
	s := &program{name: "controllers", ready: `] "Starting workers" logger="controllers" controller="job"`}
	return s, b.startCelsius(ctx, s)
}

// startCelsius starts a part, with the settings that all parts share.
func (b *bench) startCelsius(ctx context.Context, s *program) error {
	var err error
	if s.metrics, err = FreeAddress(); err != nil {
		return err
	}
	if s.profiles, err = FreeAddress(); err != nil {
		return err
	}
	return b.launch(ctx, s, b.celsius,
		s.name, "--kubeconfig", b.cluster.Kubeconfig,
		"--scheduler-name", schedulerName, "--leader-elect="+strconv.FormatBool(b.idle > 0), "--health-address", "0",
		"--metrics-address", s.metrics, "--metrics-secure=false", "--pprof-address", s.profiles)
}

// startBoth starts the scheduler and the controllers, and waits until both work.
func (b *bench) startBoth(ctx context.Context) (scheduler, controllers *program, err error) {
	return both(ctx, func() (*program, error) { return b.startScheduler(ctx) }, func() (*program, error) { return b.startControllers(ctx) })
}

// both starts two programs, and waits until both work.
func both(ctx context.Context, startFirst, startSecond func() (*program, error)) (first, second *program, err error) {
	if first, err = startFirst(); err != nil {
		return nil, nil, err
	}
	if second, err = startSecond(); err != nil {
		first.stop()
		return nil, nil, err
	}
	for _, p := range []*program{first, second} {
		err = errors.Join(err, p.await(ctx, nil))
	}
	if err != nil {
		first.stop()
		second.stop()
	}
	return first, second, err
}

// peakMemory returns the maximum memory that the process has used, in bytes.
func (p *program) peakMemory() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.process.Process.Pid))
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

// get reads a page that a part serves.
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

// requests returns how many requests the program has sent, by verb and resource, without watches.
func (p *program) requests(ctx context.Context) (requests, error) {
	page, err := get(ctx, "http://"+p.metrics+"/metrics")
	if err != nil {
		return nil, err
	}
	out := requests{}
	for _, m := range requestSeries.FindAllSubmatch(page, -1) {
		n, err := strconv.ParseFloat(string(m[3]), 64)
		if err != nil {
			return nil, fmt.Errorf("metrics of the %s: %w", p.name, err)
		}
		if string(m[2]) != "watch" {
			out[string(m[2])+" "+string(m[1])] = n
		}
	}
	return out, nil
}
