package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"time"
)

// makeProfiles creates the folder of profiles, if profiles are requested.
func (b *bench) makeProfiles() error {
	if b.profiles == "" {
		return nil
	}
	if err := os.MkdirAll(b.profiles, 0o755); err != nil {
		return fmt.Errorf("--profiles: %w", err)
	}
	return nil
}

// profile starts a CPU profile of this process, if profiles are requested.
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

// profilePart requests a CPU profile of the given length from a part of Celsius, if profiles are requested. It ignores other programs.
func (b *bench) profilePart(ctx context.Context, p *program, name string, long time.Duration) {
	if b.profiles == "" || p == nil || p.profiles == "" {
		return
	}
	file := filepath.Join(b.profiles, fmt.Sprintf("%s-%s-%d.pprof", p.name, name, b.runs))
	seconds := max(int(long.Seconds()), 1)
	go func() {
		page, err := get(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", p.profiles, seconds))
		if err == nil {
			err = os.WriteFile(file, page, 0o600)
		}
		if err != nil {
			_, _ = fmt.Fprintf(b.cluster.Log, "profile of the %s: %v\n", p.name, err)
		}
	}()
}
