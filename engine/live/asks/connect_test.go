package asks

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine/extender"
)

// listen accepts connections until the test ends.
func listen(t *testing.T, with func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				with(c)
				_ = c.Close() // it may be closed already
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // no more requests come
		all.Wait()
	})
	return l.Addr().String()
}

// A connection to a server that accepts it and never responds is closed. It does not outlive its request forever.
func TestConnectionsThatAreNotMadeEnd(t *testing.T) {
	var open, most atomic.Int32
	address := listen(t, func(c net.Conn) {
		most.Store(max(most.Load(), open.Add(1)))
		_, _ = io.Copy(io.Discard, c) // until it is closed
		open.Add(-1)
	})
	r := newRig(t)
	for range 3 {
		ask := about("https://"+address, extender.JobReady)
		ask.Timeout = 50 * time.Millisecond
		if got := said(r.one(ask)); got != "did not answer within 50ms" {
			t.Errorf("%q", got)
		}
	}
	if most.Load() == 0 {
		t.Error("nobody came")
	}
	for end := time.Now().Add(3 * mostDial); open.Load() > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections are open still", open.Load())
		}
	}
	if got := said(r.one(about("https://"+address, extender.JobReady))); got != "did not answer within 2s" {
		t.Errorf("%q", got)
	}
}

// A request on a connection that the server closes at that moment is sent again on another connection.
func TestAskedAgainWhereAConnectionIsClosed(t *testing.T) {
	var came atomic.Int32
	address := listen(t, func(c net.Conn) {
		first, in := came.Add(1) == 1, bufio.NewReader(c)
		for range 2 {
			request, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, request.Body)
			if key := request.Header.Values("Idempotency-Key"); key != nil {
				t.Errorf("sent %q", key)
			}
			const text = `{"status": true}`
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n"+text)
			if first {
				_, _ = http.ReadRequest(in) // the next request is read and not answered
				return
			}
		}
	})
	r := newRig(t)
	for range 2 {
		if got := said(r.one(about("http://"+address, extender.JobReady))); got != "yes" {
			t.Errorf("%q", got)
		}
	}
	if came.Load() != 2 {
		t.Errorf("%d connections, want 2", came.Load())
	}
}

// A shared connection whose other end disappeared silently is replaced.
func TestDeadConnectionsAreGivenUp(t *testing.T) {
	a := newAuthority(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("asked by %s", r.Proto)
		}
		reply200(w, `{"status": true}`)
	}))
	cert, key := a.pair("extender")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	server.TLS, server.EnableHTTP2 = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, true
	server.StartTLS()
	defer server.Close()
	dead := make(chan struct{}) // when closed, existing connections pass no data
	var came atomic.Int32
	between := listen(t, func(in net.Conn) {
		first := came.Add(1) == 1
		out, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			return
		}
		defer func() { _ = out.Close() }()
		go func() { _, _ = io.Copy(in, out) }()
		buffer := make([]byte, 1<<16)
		for {
			n, err := in.Read(buffer)
			if err != nil {
				return
			}
			select {
			case <-dead:
				if first {
					continue
				}
			default:
			}
			if _, err := out.Write(buffer[:n]); err != nil {
				return
			}
		}
	})
	r := newRigOf(t, Options{TLS: map[string]string{between: folder(t, map[string][]byte{authorityFile: a.pem()})}}, nil)
	of := r.client.Transport.(*http.Transport).HTTP2
	if of.SendPingTimeout != mostQuiet || of.PingTimeout != mostQuiet {
		t.Fatalf("%+v", of)
	}
	of.SendPingTimeout, of.PingTimeout = 50*time.Millisecond, 50*time.Millisecond
	ask := about("https://"+between, extender.JobReady)
	if got := said(r.one(ask)); got != "yes" {
		t.Fatalf("%q", got)
	}
	close(dead)
	ask.Timeout = time.Second
	r.one(ask) // fails, or is sent again on another connection
	if got := said(r.one(ask)); got != "yes" {
		t.Errorf("%q", got)
	}
}

// The text of a connection error is the same each time, and contains no address of the scheduler.
func TestWithoutPorts(t *testing.T) {
	ends := func(op string, err error) error {
		return &net.OpError{
			Op: op, Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 45678}, Addr: &net.TCPAddr{IP: net.IPv4(10, 9, 9, 9), Port: 1},
			Err: err,
		}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{ends("read", os.NewSyscallError("read", syscall.ECONNRESET)), "read: connection reset by peer"},
		{ends("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)), "dial: connection refused"},
		{ends("dial", os.ErrDeadlineExceeded), "no connection within 5s"},
		{context.DeadlineExceeded, "no connection within 5s"},
		{ends("dial", &net.DNSError{Err: "no such host", Name: "x", Server: "10.0.0.10:53", IsNotFound: true}), "looking up x: no such host"},
		{
			ends("dial", &net.DNSError{Err: "read udp 10.1.2.3:4->10.0.0.10:53: i/o timeout", Name: "x", IsTimeout: true}),
			"looking up x: no answer in time",
		},
		{
			ends("dial", &net.DNSError{Err: "read udp 10.1.2.3:4->10.0.0.10:53: read: connection refused", Name: "x", IsTemporary: true}),
			"looking up x: the name server could not be asked",
		},
		{
			errors.New("http2: server sent GOAWAY and closed the connection; LastStreamID=1999, ErrCode=NO_ERROR"),
			"http2: server sent GOAWAY and closed the connection; ErrCode=NO_ERROR",
		},
		{errors.New("stream error: stream ID 17; INTERNAL_ERROR; received from peer"), "stream error: INTERNAL_ERROR; received from peer"},
		{io.ErrUnexpectedEOF, "unexpected EOF"},
	} {
		if got := withoutPorts(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
	if got := oneLine("a\u202eb\nc\xff"); got != "a b c" {
		t.Errorf("%q", got)
	}
}
