package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// stopWithin is how long a program may take to stop.
const stopWithin = 10 * time.Second

// bindWithin is how long a peer may take from its start to its first binding.
const bindWithin = 2 * time.Minute

// program is a measured program: a separate process, as in a cluster.
type program struct {
	name     string
	process  *exec.Cmd
	metrics  string // the address of the metrics of a part of Celsius
	profiles string
	cancel   context.CancelFunc
	ready    string        // the log line when it begins to work; "": none
	first    chan struct{} // closed when it began to work
	ended    chan struct{} // closed when the process has ended

	// from is the state when first was closed.
	from mark
	err  error
}

// launch starts a program that finds the cluster through KUBECONFIG. It ends with ctx at the latest.
func (b *bench) launch(ctx context.Context, p *program, command string, args ...string) error {
	p.first, p.ended = make(chan struct{}), make(chan struct{})
	var running context.Context
	running, p.cancel = context.WithCancel(ctx)
	p.process = exec.CommandContext(running, command, args...)
	p.process.Env = append(os.Environ(), "KUBECONFIG="+b.cluster.Kubeconfig)
	p.process.Cancel = func() error { return p.process.Process.Signal(syscall.SIGTERM) }
	p.process.WaitDelay = stopWithin
	stderr, err := p.process.StderrPipe()
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	if err := p.process.Start(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	go func() {
		defer close(p.ended)
		p.hear(io.TeeReader(stderr, b.cluster.Log))
		_ = p.process.Wait() // the process state contains the error
		if running.Err() == nil {
			b.cluster.Fail(fmt.Errorf("%s: ended by itself: %s", p.name, p.process.ProcessState))
		}
	}()
	return nil
}

// launchSelf starts a hidden command of this program.
func (b *bench) launchSelf(ctx context.Context, p *program, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	return b.launch(ctx, p, self, args...)
}

// hear reads the log, and detects when the work is about to begin.
func (p *program) hear(log io.Reader) {
	begin := sync.OnceFunc(func() {
		p.from, p.err = take(p)
		close(p.first)
	})
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if p.ready != "" && bytes.Contains(lines.Bytes(), []byte(p.ready)) {
			begin()
		}
	}
	_, _ = io.Copy(io.Discard, log) // if a line was too long: the process must not block on its log
}

// await waits until the program works. A scheduler then begins its first cycle. For a program without a log line it waits for the first pod
// that the program binds.
func (p *program) await(ctx context.Context, w *podWatch) error {
	if p.ready == "" {
		ctx, cancel := context.WithTimeout(ctx, bindWithin)
		defer cancel()
		if err := w.await(ctx, bound, 1); err != nil {
			return fmt.Errorf("the first binding by %s: %w", p.name, err)
		}
		p.from, p.err = take(p)
		return p.err
	}
	select {
	case <-p.first:
		return p.err
	case <-p.ended:
		return fmt.Errorf("the %s ended before it worked", p.name)
	case <-ctx.Done():
		return fmt.Errorf("the beginning of the %s: %w", p.name, errors.Join(ctx.Err(), context.Cause(ctx)))
	}
}

// stop ends the process.
func (p *program) stop() {
	p.cancel()
	<-p.ended
}

// lastPort is the last port that FreeAddress returned.
var lastPort = struct {
	sync.Mutex
	number int
}{number: firstPort + rand.IntN(endPort-firstPort)} //nolint:gosec // no secret

// The ports of FreeAddress are below the ports that Linux uses for connections and for listeners on port 0.
const firstPort, endPort = 10000, 32768

// FreeAddress returns an address of this machine that a process may listen on. No process listens there. No later call returns the address
// before it has tried all other ports, even if no process has opened the address yet.
func FreeAddress() (string, error) {
	lastPort.Lock()
	defer lastPort.Unlock()
	var last error
	for range endPort - firstPort {
		if lastPort.number++; lastPort.number >= endPort {
			lastPort.number = firstPort
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(lastPort.number))
		listener, err := net.Listen("tcp", address)
		if err == nil {
			err = listener.Close()
		}
		if err == nil {
			return address, nil
		}
		last = err
	}
	return "", fmt.Errorf("no port from %d to %d of 127.0.0.1 is free: %w", firstPort, endPort-1, last)
}
