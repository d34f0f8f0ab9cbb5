package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// stored is the only Lease of a test, as the API server stores it.
type stored struct {
	mu      sync.Mutex
	version int // 0: it does not exist
	record  resourcelock.LeaderElectionRecord
}

// access is one instance's access to the Lease. It calls wait before and after each request, which may block.
type access struct {
	of      *stored
	name    string
	wait    func()
	version int // the version that was last read or written
}

func (a *access) RecordEvent(string) {}
func (a *access) Identity() string   { return a.name }
func (a *access) Describe() string   { return "system/scheduler" }

func (a *access) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	a.wait()
	defer a.wait()
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if a.of.version == 0 {
		return nil, nil, apierrors.NewNotFound(leases, "scheduler")
	}
	a.version = a.of.version
	record := a.of.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (a *access) Create(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	a.version = 0
	return a.put(r, apierrors.NewAlreadyExists(leases, "scheduler"))
}

func (a *access) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	return a.put(r, apierrors.NewConflict(leases, "scheduler", errors.New("it was changed")))
}

func (a *access) put(r resourcelock.LeaderElectionRecord, otherwise error) error {
	a.wait()
	defer a.wait()
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if a.version != a.of.version {
		return otherwise
	}
	a.of.version++
	a.version, a.of.record = a.of.version, r
	return nil
}

// testLock returns an instance's lock for a lease of 15 s.
func testLock(s *stored, name string) *lock {
	return &lock{Interface: &access{of: s, name: name, wait: func() {}}, fence: newFence(), tail: Tail(15 * time.Second)}
}

func recordOf(name string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: name, LeaseDurationSeconds: 15}
}

func TestTheFenceOpensForFiveSixthsFromWhenARenewalWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testLock(&stored{}, "a")
		l.Interface.(*access).wait = func() { time.Sleep(time.Second) } // 2 s for a request and its response
		if err := l.fence.Check(); err != nil {
			t.Fatalf("before the first turn: %v", err)
		}
		start := time.Now()
		if err := l.Create(t.Context(), recordOf("a")); err != nil {
			t.Fatal(err)
		}
		closes := func(after time.Duration) {
			t.Helper()
			time.Sleep(time.Until(start.Add(after - time.Nanosecond)))
			if err := l.fence.Check(); err != nil {
				t.Fatalf("just before: %v", err)
			}
			time.Sleep(time.Nanosecond)
			if err := l.fence.Check(); !errors.Is(err, ErrLapsed) {
				t.Fatalf("%s after a renewal was sent: %v", after, err)
			}
		}
		closes(12500 * time.Millisecond)
		// No other instance held the lease in between, so the turn continues.
		start = time.Now()
		if err := l.Update(t.Context(), recordOf("a")); err != nil {
			t.Fatal(err)
		}
		closes(12500 * time.Millisecond)
	})
}

func TestATurnEndsForGood(t *testing.T) {
	for name, takes := range map[string]func(*stored){
		"taken":      func(s *stored) { s.record, s.version = recordOf("b"), s.version+1 },
		"given back": func(s *stored) { s.record, s.version = recordOf(""), s.version+1 },
		"deleted":    func(s *stored) { s.version = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s := &stored{}
			l := testLock(s, "a")
			if err := l.Create(t.Context(), recordOf("a")); err != nil {
				t.Fatal(err)
			}
			takes(s)
			version, holder := s.version, s.record.HolderIdentity
			_, _, _ = l.Get(t.Context())
			if err := l.fence.Check(); !errors.Is(err, ErrLapsed) {
				t.Errorf("it may write still: %v", err)
			}
			whole := &Lease{lock: l}
			if err := whole.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "system/scheduler") {
				t.Errorf("the manager goes on: %v", err)
			}
			// The lease is neither acquired a second time, nor released for another instance.
			for _, r := range []resourcelock.LeaderElectionRecord{recordOf("a"), recordOf("")} {
				if err := l.Update(t.Context(), r); err == nil {
					t.Errorf("%q was written", r.HolderIdentity)
				}
			}
			if s.version != version || s.record.HolderIdentity != holder {
				t.Errorf("the lease was changed: %+v", s.record)
			}
		})
	}
}

func TestAnothersLeaseHoldsAThirdLonger(t *testing.T) {
	s := &stored{}
	a, b := testLock(s, "a"), testLock(s, "b")
	if err := a.Create(t.Context(), recordOf("a")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		by   *lock
		want int
	}{{a, 15}, {b, 20}} {
		if r, _, err := c.by.Get(t.Context()); err != nil || r.LeaseDurationSeconds != c.want {
			t.Errorf("for %s it holds %+v, %v; want %d s", c.by.Identity(), r, err, c.want)
		}
	}
	if err := a.Update(t.Context(), recordOf("")); err != nil {
		t.Fatal(err)
	}
	if r, _, err := b.Get(t.Context()); err != nil || r.LeaseDurationSeconds != 15 || r.HolderIdentity != "" {
		t.Errorf("given back, it is %+v, %v", r, err)
	}
}

func TestALeaseIsGivenBackWhenNothingIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testLock(&stored{}, "a")
		if err := l.Create(t.Context(), recordOf("a")); err != nil {
			t.Fatal(err)
		}
		l.fence.lost()
		time.Sleep(time.Second)
		sent := time.Now()
		if err := l.Update(t.Context(), recordOf("")); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(sent); took != 4*time.Second {
			t.Errorf("given back after %s; a request that was lost a second before may be under way for 4 s more", took)
		}
		if err := l.fence.Check(); !errors.Is(err, ErrLapsed) {
			t.Errorf("it may write still: %v", err)
		}
	})
}

// A process may be suspended after it checked its lease and before the request is sent.
func TestNothingLeavesBehindTheFence(t *testing.T) {
	var mu sync.Mutex
	var came []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		came = append(came, r.Method+" "+r.URL.Path)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()

	f := newFence()
	stopped := false
	cfg := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return between(func(r *http.Request) (*http.Response, error) {
			for stopped && f.Check() == nil {
				time.Sleep(time.Millisecond)
			}
			return next.RoundTrip(r)
		})
	})
	_, client, err := f.Client(cfg, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path string) error {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	if err := ask(http.MethodPost, "/early"); err != nil {
		t.Fatalf("before the first turn: %v", err)
	}
	f.renewed(time.Now(), time.Minute)
	if err := ask(http.MethodPost, "/open"); err != nil {
		t.Fatalf("within a turn: %v", err)
	}
	stopped = true
	f.renewed(time.Now(), 100*time.Millisecond)
	if err := ask(http.MethodPost, "/stopped"); err == nil {
		t.Error("a request that was stopped on its way was answered")
	}
	if err := ask(http.MethodDelete, "/late"); !errors.Is(err, ErrLapsed) {
		t.Errorf("a request after the fence: %v", err)
	}
	stopped = false
	f.renewed(time.Now(), time.Minute)
	if err := ask(http.MethodPut, "/again"); err != nil {
		t.Errorf("the turn goes on: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"POST /early", "POST /open", "PUT /again"}; !slices.Equal(came, want) {
		t.Errorf("the server saw %v, want %v", came, want)
	}
}

type between func(*http.Request) (*http.Response, error)

func (b between) RoundTrip(r *http.Request) (*http.Response, error) { return b(r) }

func TestWhoTakesNoTurnsIsNotHeldUp(t *testing.T) {
	var none *Lease
	cfg, client, err := none.Fence().Client(&rest.Config{Host: "http://127.0.0.1"}, none.Tail())
	if err != nil || cfg.Timeout != 0 || client.Timeout != 0 || cfg.Dial != nil || cfg.WrapTransport != nil {
		t.Errorf("%+v, %+v, %v", cfg, client, err)
	}
	if err := none.Fence().Check(); err != nil {
		t.Error(err)
	}
}

// Only renewals get a short timeout. A watch with this timeout would end every few seconds, and a long list would never finish.
func TestTheConfigIsItsOwners(t *testing.T) {
	cfg := &rest.Config{Host: "http://127.0.0.1", UserAgent: "celsius-scheduler/1"}
	was := *cfg
	l, err := New(cfg, "system", "scheduler", Times{Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(was, *cfg, cmpopts.IgnoreUnexported(rest.TLSClientConfig{})); diff != "" {
		t.Errorf("who made the lease finds another config (-was +is):\n%s", diff)
	}
	written, _, err := l.Fence().Client(cfg, l.Tail())
	if err != nil || written.Timeout != 5*time.Second || cfg.Timeout != 0 {
		t.Errorf("a write gets %s, what only reads %s (%v)", written.Timeout, cfg.Timeout, err)
	}
}

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		times Times
		want  string
	}{
		{Times{}, ""},
		{Times{Duration: 6 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: time.Second}, ""},
		{Times{Duration: 10 * time.Second}, "renew deadline 10s: it must be below the lease duration, 10s"},
		{Times{Duration: 15500 * time.Millisecond}, "lease duration 15.5s: a lease holds for whole seconds, one at least"},
		{Times{RetryPeriod: 9 * time.Second}, "retry period 9s: it must be above 0, and 1.2 times it below the renew deadline, 10s"},
		{Times{RetryPeriod: -1}, "retry period -1ns: it must be above 0, and 1.2 times it below the renew deadline, 10s"},
	} {
		got, err := c.times.Complete()
		if text := fmt.Sprint(err); err != nil && text != c.want || err == nil && c.want != "" {
			t.Errorf("%+v: %v, want %s", c.times, err, c.want)
		}
		if err == nil && (got.Duration == 0 || got.RenewDeadline == 0 || got.RetryPeriod == 0) {
			t.Errorf("%+v is not complete", got)
		}
	}
}

// write is a request that left a process, and the time when it was carried out.
type write struct {
	by   string
	left time.Time
	done time.Time
}

// process takes part in the election, and writes all the time while it leads. It can be suspended for a random time at any point, except
// between its last check of the fence and the write.
type process struct {
	name   string
	random *rand.Rand
	mu     sync.Mutex
	until  time.Time // it is suspended until then
}

func (p *process) wait() {
	time.Sleep(time.Duration(p.draw(300)) * time.Millisecond) // simulates the network
	for {
		p.mu.Lock()
		rest := time.Until(p.until)
		p.mu.Unlock()
		if rest <= 0 {
			return
		}
		time.Sleep(rest)
	}
}

func (p *process) draw(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(n)
}

// run takes part in elections until ctx ends or a turn ends. Like a manager, it ends its work before it leaves the election.
func (p *process) run(ctx context.Context, s *stored, wrote func(write)) {
	l := &lock{Interface: &access{of: s, name: p.name, wait: p.wait}, fence: newFence(), tail: Tail(15 * time.Second)}
	work, stop := context.WithCancel(ctx)
	elect, leave := context.WithCancel(context.WithoutCancel(ctx))
	var turn sync.Mutex // protects the start and the end of leading
	var leading sync.WaitGroup
	end := func() {
		turn.Lock()
		stop()
		turn.Unlock()
		leading.Wait()
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		ReleaseOnCancel: true, Name: p.name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStoppedLeading: stop,
			OnStartedLeading: func(context.Context) {
				turn.Lock()
				defer turn.Unlock()
				if work.Err() != nil {
					return
				}
				for range 4 {
					leading.Go(func() { p.write(work, l.fence, wrote) })
				}
			},
		},
	})
	if err != nil {
		panic(err)
	}
	go func() {
		select {
		case <-l.fence.ended:
		case <-work.Done():
		}
		end()
		leave()
	}()
	elector.Run(elect)
	end()
}

// write writes until ctx ends. Like a client, it checks the fence, is sent through a pool, and is checked again when it leaves. It does not
// wait for some of the responses.
func (p *process) write(ctx context.Context, f *Fence, wrote func(write)) {
	for ctx.Err() == nil {
		p.wait()
		if f.Check() != nil {
			continue
		}
		p.wait()
		if f.Check() != nil {
			continue
		}
		now, takes := time.Now(), time.Duration(p.draw(int(Tail(15*time.Second))))
		wrote(write{p.name, now, now.Add(takes)})
		answer, cut := context.WithTimeout(ctx, takes)
		<-answer.Done()
		if ctx.Err() != nil || p.draw(5) == 0 {
			f.lost()
		}
		cut()
	}
}

// TestNoTwoWriteAtATime lets three processes take turns for ten minutes. Each of them is repeatedly suspended for up to 40 s, or told to
// end.
func TestNoTwoWriteAtATime(t *testing.T) {
	turns := 0
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			s := &stored{}
			var mu sync.Mutex
			var writes []write
			wrote := func(w write) {
				mu.Lock()
				defer mu.Unlock()
				writes = append(writes, w)
			}
			var all sync.WaitGroup
			for i := range 3 {
				all.Go(func() {
					random := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // it is no secret
					for life := 0; ctx.Err() == nil; life++ {
						p := &process{name: fmt.Sprintf("%d.%d", i, life), random: rand.New(rand.NewPCG(seed, uint64(100*i+life)))} //nolint:gosec // it is no secret
						ctx, end := context.WithTimeout(ctx, time.Duration(20+random.IntN(200))*time.Second)
						all.Go(func() { p.stumble(ctx) })
						p.run(ctx, s, wrote)
						end()
					}
				})
			}
			all.Wait()
			turns += checkTurns(t, seed, writes)
		})
	}
	t.Logf("%d turns", turns)
	if turns < 100 {
		t.Error("that is too few to show anything")
	}
}

// stumble suspends a process from time to time.
func (p *process) stumble(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(p.draw(40)) * time.Second)
		p.mu.Lock()
		p.until = time.Now().Add(time.Duration(p.random.IntN(40000)) * time.Millisecond)
		p.mu.Unlock()
	}
}

// checkTurns returns how often the writer changed. No write of one process may be carried out after the next process has begun to write.
func checkTurns(t *testing.T, seed uint64, writes []write) (turns int) {
	t.Helper()
	slices.SortStableFunc(writes, func(a, b write) int { return a.left.Compare(b.left) })
	last := map[string]write{} // for each process, the write that took longest
	for i, w := range writes {
		if i > 0 && writes[i-1].by != w.by {
			turns++
		}
		for by, before := range last {
			if by != w.by && before.done.After(w.left) {
				t.Fatalf("seed %d: %s wrote at %s, while what %s had sent at %s was under way until %s", seed, w.by,
					w.left.Format(time.TimeOnly), by, before.left.Format(time.TimeOnly), before.done.Format(time.TimeOnly))
			}
		}
		if before, ok := last[w.by]; !ok || w.done.After(before.done) {
			last[w.by] = w
		}
	}
	return turns
}
