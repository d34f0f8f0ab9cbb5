package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync"
)

// makeProfiles makes the folder of profiles, where they are wanted.
func (b *bench) makeProfiles() error {
	if b.profiles == "" {
		return nil
	}
	if err := os.MkdirAll(b.profiles, 0o755); err != nil {
		return fmt.Errorf("--profiles: %w", err)
	}
	return nil
}

// profile starts a CPU profile of the process, where they are wanted.
func (b *bench) profile(name string) (stop func(), err error) {
	if b.profiles == "" {
		return func() {}, nil
	}
	file, err := os.Create(filepath.Join(b.profiles, name+".pprof"))
	if err != nil {
		return nil, fmt.Errorf("--profiles: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("--profiles: %w", err), file.Close())
	}
	return sync.OnceFunc(func() {
		pprof.StopCPUProfile()
		_ = file.Close()
	}), nil
}

// profileScheduler has the scheduler write a CPU profile, where they are wanted: of as long as a run of the bare loop is to take
// at least. Others than Celsius' are not asked.
func (b *bench) profileScheduler(ctx context.Context, s *program, name string) {
	if b.profiles == "" || s == nil || s.profiles == "" {
		return
	}
	file := filepath.Join(b.profiles, fmt.Sprintf("scheduler-%s-%d.pprof", name, b.runs))
	seconds := max(int(b.least.Seconds()), 1)
	go func() {
		page, err := get(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", s.profiles, seconds))
		if err == nil {
			err = os.WriteFile(file, page, 0o600)
		}
		if err != nil {
			_, _ = fmt.Fprintf(b.cluster.Log, "profile of the scheduler: %v\n", err)
		}
	}()
}
