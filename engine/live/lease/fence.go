package lease

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// ErrLapsed is in the error of a request that was not sent because the lease was not renewed in time.
var ErrLapsed = errors.New("the lease was not renewed in time: nothing is written until it is")

// Of a lease's duration.
const (
	// marginShare is the part at the end of it in which its holder writes nothing: clocks may go differently fast.
	marginShare = 6
	// tailShare is the part of it that a request may take at the API server, and that others wait for beyond it.
	tailShare = 3
)

// Tail is for how long what a holder has sent may be under way, of a lease with this duration.
func Tail(duration time.Duration) time.Duration { return duration / tailShare }

// Fence says whether its process may write. Nil is the fence of who takes no turns: it is open.
type Fence struct {
	until atomic.Pointer[moment] // nil: there was no turn yet

	mu     sync.Mutex
	ended  chan struct{} // closed when the turn is over
	reason error         // of the end
	// unanswered is when a write was sent last of which nobody knows what became.
	unanswered time.Time
}

// moment is a time by two clocks: the one stands still while the machine sleeps, the other can be set.
type moment struct {
	steady time.Time
	wall   int64 // in nanoseconds
}

func newFence() *Fence { return &Fence{ended: make(chan struct{})} }

// Check is ErrLapsed where nothing may be sent.
func (f *Fence) Check() error {
	if f == nil {
		return nil
	}
	until := f.until.Load()
	if until == nil {
		return nil
	}
	if now := time.Now(); now.Before(until.steady) && now.UnixNano() < until.wall {
		return nil
	}
	return ErrLapsed
}

// renewed opens the fence after a renewal that was sent then, unless the turn is over.
func (f *Fence) renewed(sent time.Time, duration time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reason != nil {
		return
	}
	until := sent.Add(duration - duration/marginShare)
	f.until.Store(&moment{until, until.UnixNano()})
}

// held says whether there was a turn.
func (f *Fence) held() bool { return f.until.Load() != nil }

// end ends the turn: the fence stays closed. Only the first reason counts.
func (f *Fence) end(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reason != nil {
		return
	}
	f.reason = why
	f.until.Store(&moment{})
	close(f.ended)
}

// why is the reason for which the turn ended; nil: it did not.
func (f *Fence) why() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reason
}

// lost notes that a write was sent of which no answer came.
func (f *Fence) lost() {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unanswered = now
}

// settle waits until nothing that was sent can be under way any more, given how long a request may be.
func (f *Fence) settle(ctx context.Context, tail time.Duration) error {
	f.mu.Lock()
	last := f.unanswered
	f.mu.Unlock()
	if last.IsZero() {
		return nil
	}
	timer := time.NewTimer(time.Until(last.Add(tail)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("requests are under way: %w", ctx.Err())
	}
}

// Client is the way to the API server for what only the holder of the lease may do. A write is looked
// at when it is sent, and what leaves on a connection once more when it leaves: a process can be
// stopped in between. Each request gets most at the API server and here; 0: as long as the config says.
func (f *Fence) Client(cfg *rest.Config, most time.Duration) (*rest.Config, *http.Client, error) {
	cfg = rest.CopyConfig(cfg)
	if f != nil {
		if most > 0 {
			cfg.Timeout = most
		}
		if cfg.Transport == nil {
			cfg.Dial = f.dial(cfg.Dial)
		}
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &sender{f, next} })
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("make a client: %w", err)
	}
	return cfg, client, nil
}

// sender sends writes while the fence is open.
type sender struct {
	fence *Fence
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (s *sender) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return s.next.RoundTrip(r)
	}
	if err := s.fence.Check(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	answer, err := s.next.RoundTrip(r)
	if err != nil {
		s.fence.lost()
	}
	return answer, err
}

// WrappedRoundTripper lets those see the transport who look for it.
func (s *sender) WrappedRoundTripper() http.RoundTripper { return s.next }

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dial makes connections that end at the fence.
func (f *Fence) dial(by dialer) dialer {
	if by == nil {
		const as = 30 * time.Second // as client-go has it
		by = (&net.Dialer{Timeout: as, KeepAlive: as}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := by(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			// What stands in the kernel's buffer when the connection or the process ends is dropped, not delivered when the network is well again.
			if err := tcp.SetLinger(0); err != nil {
				_ = c.Close()
				return nil, fmt.Errorf("connect to %s: %w", address, err)
			}
		}
		return &conn{c, f}, nil
	}
}

// conn is a connection on which nothing leaves behind the fence.
type conn struct {
	net.Conn
	fence *Fence
}

// Write implements io.Writer.
func (c *conn) Write(data []byte) (int, error) {
	if err := c.fence.Check(); err != nil {
		_ = c.Close()
		return 0, err
	}
	return c.Conn.Write(data)
}
