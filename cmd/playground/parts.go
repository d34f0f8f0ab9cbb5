package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// stopWithin is how long one part may take to stop before the next is stopped all the same.
const stopWithin = 10 * time.Second

// parts are what runs in this process: started in one order, stopped in the opposite one.
type parts struct {
	mu       sync.Mutex
	running  []*part
	stopping bool
	failed   chan error // the first failure; nothing after it
}

// part is one of them.
type part struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
}

func newParts() *parts { return &parts{failed: make(chan error, 1)} }

// start runs the part beside the others until stop. A part that ends before that, with an
// error or without, has failed.
func (p *parts) start(ctx context.Context, name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	x := &part{name: name, cancel: cancel, done: make(chan struct{})}
	p.mu.Lock()
	p.running = append(p.running, x)
	p.mu.Unlock()
	go func() {
		defer close(x.done)
		err := run(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("ended by itself")
		}
		p.fail(fmt.Errorf("%s: %w", name, err))
	}()
}

// fail reports that a part cannot go on. While all stop, nothing is a failure any more.
func (p *parts) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return
	}
	select {
	case p.failed <- err:
	default:
	}
}

// stop ends all parts, the last that was started first. The error names those that did not
// end in time.
func (p *parts) stop() error {
	p.mu.Lock()
	p.stopping = true
	running := p.running
	p.running = nil
	p.mu.Unlock()
	var errs []error
	for _, r := range slices.Backward(running) {
		if err := r.stop(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (x *part) stop() error {
	x.cancel()
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-x.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("%s did not stop within %s", x.name, stopWithin)
	}
}

// end stops one part before the others.
func (p *parts) end(name string) {
	p.mu.Lock()
	i := slices.IndexFunc(p.running, func(x *part) bool { return x.name == name })
	if i < 0 {
		p.mu.Unlock()
		return
	}
	x := p.running[i]
	p.running = slices.Delete(p.running, i, i+1)
	p.mu.Unlock()
	x.cancel()
	<-x.done
}
