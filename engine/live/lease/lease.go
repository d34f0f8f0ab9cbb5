package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Times contains the durations of a lease, and of the holder's attempts to renew it.
type Times struct {
	// Duration is how long other instances respect a lease that is not renewed, in whole seconds. They wait a third longer, for requests that
	// the holder has sent. 0: 15 s.
	Duration time.Duration
	// RenewDeadline is how long the holder tries to renew before it gives up. 0: 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two tries. 0: 2 s.
	RetryPeriod time.Duration
}

// Complete sets defaults and refuses times that contradict each other.
func (t Times) Complete() (Times, error) {
	for _, field := range []struct {
		of        *time.Duration
		otherwise time.Duration
	}{{&t.Duration, 15 * time.Second}, {&t.RenewDeadline, 10 * time.Second}, {&t.RetryPeriod, 2 * time.Second}} {
		if *field.of == 0 {
			*field.of = field.otherwise
		}
	}
	switch retries := time.Duration(leaderelection.JitterFactor * float64(t.RetryPeriod)); {
	case t.Duration < time.Second || t.Duration%time.Second != 0:
		return t, fmt.Errorf("lease duration %s: a lease holds for whole seconds, one at least", t.Duration)
	case t.RenewDeadline >= t.Duration:
		return t, fmt.Errorf("renew deadline %s: it must be below the lease duration, %s", t.RenewDeadline, t.Duration)
	case t.RetryPeriod <= 0 || t.RenewDeadline <= retries:
		return t, fmt.Errorf("retry period %s: it must be above 0, and %g times it below the renew deadline, %s", t.RetryPeriod,
			leaderelection.JitterFactor, t.RenewDeadline)
	}
	return t, nil
}

// Lease is the membership of one instance in a leader election. A nil Lease takes part in none.
type Lease struct {
	times  Times
	leases *resourcelock.LeaseLock
	lock   *lock
}

// New returns the membership of an instance in the election by the Lease with this namespace and name. times must be complete.
func New(cfg *rest.Config, namespace, name string, times Times) (*Lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name an instance: %w", err)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = cmp.Or(cfg.UserAgent, rest.DefaultKubernetesUserAgent()) + "/leader-election"
	// A single missing response must not lose the lease.
	cfg.Timeout = max(times.RenewDeadline/2, time.Second)
	client, err := coordinationv1client.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client for leases: %w", err)
	}
	leases := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}
	return &Lease{times, leases, &lock{Interface: leases, fence: newFence(), tail: Tail(times.Duration)}}, nil
}

// Fence returns a fence that is closed while the instance may not write.
func (l *Lease) Fence() *Fence {
	if l == nil {
		return nil
	}
	return l.lock.fence
}

// Tail returns how long the API server may take for a request of the holder.
func (l *Lease) Tail() time.Duration {
	if l == nil {
		return 0
	}
	return Tail(l.times.Duration)
}

// Elect configures a new manager to wait for its turn.
func (l *Lease) Elect(o *manager.Options) {
	if l == nil {
		return
	}
	o.LeaderElection, o.LeaderElectionResourceLockInterface, o.LeaderElectionReleaseOnCancel = true, l.lock, true
	o.LeaderElectionID, o.LeaderElectionNamespace = l.leases.LeaseMeta.Name, l.leases.LeaseMeta.Namespace
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = &l.times.Duration, &l.times.RenewDeadline, &l.times.RetryPeriod
}

// Join makes the manager that Elect configured end with its turn.
func (l *Lease) Join(m manager.Manager) error {
	if l == nil {
		return nil
	}
	l.leases.LockConfig.EventRecorder = m.GetEventRecorderFor(l.lock.Identity()) //nolint:staticcheck // client-go's elector takes a recorder of the older API alone
	return m.Add(l)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (l *Lease) NeedLeaderElection() bool { return true }

// Start returns when ctx ends or the turn ends. For the turn, it returns the reason.
func (l *Lease) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.lock.fence.ended:
	}
	select {
	case <-ctx.Done(): // the lease was released
		return nil
	default:
		return l.lock.fence.why()
	}
}

// lock is the Lease as client-go's elector uses it. Only one goroutine uses it.
type lock struct {
	resourcelock.Interface
	fence *Fence
	tail  time.Duration
	ours  bool // the record that was last read or written is ours
}

var (
	errReleased = errors.New("the lease is given back")
	errNotOurs  = errors.New("the lease is another's, and not ours to give back")
)

// Get reads the record. It extends the validity of another instance's record by the tail.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		l.saw("")
		return record, raw, err
	case err != nil:
		return record, raw, err
	}
	l.saw(record.HolderIdentity)
	if !l.ours && record.HolderIdentity != "" {
		longer := *record
		longer.LeaseDurationSeconds += (record.LeaseDurationSeconds + tailShare - 1) / tailShare
		record = &longer
	}
	return record, raw, nil
}

// saw records the holder of the lease. If another instance holds it, our turn ends.
func (l *lock) saw(holder string) {
	l.ours = holder == l.Identity()
	if l.ours || !l.fence.held() {
		return
	}
	if holder == "" {
		holder = "no instance"
	}
	l.fence.end(fmt.Errorf("the lease %s was lost: it is held by %s", l.Describe(), holder))
}

// Create creates the record.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update writes the next version of the record that was last read or written.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != l.Identity() {
		return l.release(ctx, record)
	}
	return l.write(ctx, record, l.Interface.Update)
}

// write acquires or renews the lease, unless our turn is over: a process has only one turn.
func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord,
	by func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	if err := l.fence.why(); err != nil {
		return err
	}
	sent := time.Now()
	if err := by(ctx, record); err != nil {
		return err
	}
	l.ours = true
	l.fence.renewed(sent, time.Duration(record.LeaseDurationSeconds)*time.Second)
	return nil
}

// release releases the lease if it is ours, after none of our writes is under way any more.
func (l *lock) release(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if !l.ours {
		return errNotOurs // client-go calls it even if it has not noticed the loss yet
	}
	l.fence.end(errReleased)
	if err := l.fence.settle(ctx, l.tail); err != nil {
		return err
	}
	return l.Interface.Update(ctx, record)
}
