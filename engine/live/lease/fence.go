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

// ErrLapsed is wrapped in the error of a request that was not sent because the lease was not renewed in time.
var ErrLapsed = errors.New("the lease was not renewed in time: nothing is written until it is")

// Fractions of a lease's duration.
const (
	// marginShare: in the last 1/6 of the duration its holder writes nothing, because the speeds of clocks may differ.
	marginShare = 6
	// tailShare: a request may take 1/3 of the duration at the API server, and other instances wait for this time after the lease ends.
	tailShare = 3
)

// Tail returns how long a request of the holder may be under way, for a lease with this duration.
func Tail(duration time.Duration) time.Duration { return duration / tailShare }

// Fence decides whether its process may write. A nil Fence is always open; it is for instances that do not take turns.
type Fence struct {
	until atomic.Pointer[moment] // nil: no turn has begun

	mu     sync.Mutex
	ended  chan struct{} // closed when the turn ends
	reason error         // why the turn ended
	// unanswered is when the last write with an unknown outcome was sent.
	unanswered time.Time
}

// moment is a time on two clocks. The monotonic clock stops while the machine sleeps; the wall clock can be set.
type moment struct {
	steady time.Time
	wall   int64 // a time in nanoseconds since 1970
}

func newFence() *Fence { return &Fence{ended: make(chan struct{})} }

// Check returns ErrLapsed if nothing may be sent.
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

// renewed opens the fence after a renewal that was sent at the given time, unless the turn is over.
func (f *Fence) renewed(sent time.Time, duration time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reason != nil {
		return
	}
	until := sent.Add(duration - duration/marginShare)
	f.until.Store(&moment{until, until.UnixNano()})
}

// held reports whether a turn has begun.
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

// why returns the reason why the turn ended; nil: it has not ended.
func (f *Fence) why() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reason
}

// lost records that a write was sent and got no answer.
func (f *Fence) lost() {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unanswered = now
}

// settle waits until no request can be under way any more. tail is how long a request may be under way.
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

// Client returns the configuration and the client for requests that only the holder of the lease may send. A write is checked when it is
// sent, and again when its bytes leave on the connection: the process may be suspended in between. most limits each request at the API
// server and in the client; 0: the limit of the config.
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

// sender sends writes only while the fence is open.
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

// WrappedRoundTripper returns the wrapped transport for callers that look for it.
func (s *sender) WrappedRoundTripper() http.RoundTripper { return s.next }

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dial returns a dialer whose connections check the fence.
func (f *Fence) dial(by dialer) dialer {
	if by == nil {
		const as = 30 * time.Second // the same value as in client-go
		by = (&net.Dialer{Timeout: as, KeepAlive: as}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := by(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			// When the connection or the process ends, the kernel drops its send buffer instead of delivering it after a network failure.
			if err := tcp.SetLinger(0); err != nil {
				_ = c.Close()
				return nil, fmt.Errorf("connect to %s: %w", address, err)
			}
		}
		return &conn{c, f}, nil
	}
}

// conn is a connection that sends nothing while the fence is closed.
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
