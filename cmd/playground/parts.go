package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// stopWithin is how long one part may take to stop. After it, the next part is stopped anyway.
const stopWithin = 10 * time.Second

// parts are the parts that run in this process. They are started in one order, and stopped in the opposite order.
type parts struct {
	mu       sync.Mutex
	running  []*part
	stopping bool
	failed   chan error // the first failure only
}

// part is one running part.
type part struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
}

func newParts() *parts { return &parts{failed: make(chan error, 1)} }

// start runs a part in the background until stop. A part that ends earlier, with an error or without, has failed.
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

// fail reports that a part cannot continue. While all parts stop, it ignores failures.
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

// stop ends all parts, in the opposite order of their start. The error names the parts that did not end in time.
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
