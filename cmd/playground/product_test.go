package main

import (
	"context"

	"github.com/celsius-scheduler/celsius/engine/live"
	"github.com/celsius-scheduler/celsius/statemachines/controller"
)

// startWebhook starts the only webhook of the test binary. It serves the jobs of all worlds.
func (b *bed) startWebhook() error {
	names := []string{"celsius", "volcano"}
	for i := range maxWorlds {
		names = append(names, worldName(i+1))
	}
	return b.plane.startWebhook(context.Background(), names)
}

// StartScheduler runs a scheduler in this process, for the world's scheduler name, policy and nodes. change modifies its options. It ends
// with the test. A scheduler that ends by itself fails the test.
func (w *world) StartScheduler(change ...func(*live.Options)) {
	w.t.Helper()
	o := live.Options{SchedulerNames: []string{w.SchedulerName}, Policy: w.Policy, NodeSelector: w.NodeSelector}
	for _, f := range change {
		f(&o)
	}
	w.run("scheduler", func(ctx context.Context) error { return live.Run(ctx, w.Config, o) })
}

// StartControllers runs the controllers in this process, for the world's scheduler name. change modifies their options. They end in the
// same way as the scheduler of StartScheduler.
func (w *world) StartControllers(change ...func(*controller.Options)) {
	w.t.Helper()
	o := controller.Options{SchedulerNames: []string{w.SchedulerName}}
	for _, f := range change {
		f(&o)
	}
	w.run("controllers", func(ctx context.Context) error { return controller.Run(ctx, w.Config, o) })
}

// run runs one part in this process until the test ends.
func (w *world) run(name string, part func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := part(ctx); err != nil {
			w.t.Errorf("%s: %v", name, err)
		} else if ctx.Err() == nil {
			w.t.Errorf("%s ended by itself", name)
		}
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
}
