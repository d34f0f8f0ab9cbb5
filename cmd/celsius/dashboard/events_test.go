package dashboard

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// slow is an API server that answers slowly to requests for events.
type slow struct {
	asked
	takes time.Duration

	mu              sync.Mutex
	lists, at, most int // the number of all lists, of running lists, and of most at once
}

func (s *slow) Events(ctx context.Context, _, name string) ([]corev1.Event, error) {
	s.mu.Lock()
	s.lists++
	s.at++
	s.most = max(s.most, s.at)
	id := types.UID(fmt.Sprint(name, s.lists))
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.at--
	}()
	select {
	case <-time.After(s.takes):
		return []corev1.Event{{ObjectMeta: metav1.ObjectMeta{UID: id}, Reason: "Said"}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestEventsAreShared checks that the events of a job are read once for all its readers, and at most every 30 s. A reader waits at most 2 s
// for them. The events arrive later, even if each list takes 4 s and all readers give up before.
func TestEventsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &slow{takes: 4 * time.Second}
		e := newEvents(c)
		asks := []string{"sweep-0f3a", "sweep", "sweep-0"}
		began := time.Now()
		for range 38 { // pages ask every two seconds and give up after one second
			for range 3 {
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					e.of(ctx, "team", asks)
				}()
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			told, lacks := e.of(t.Context(), "team", asks)
			passed := time.Since(began)
			if passed < 12*time.Second && (len(told) > 0 || !slices.Equal(lacks, []string{"its events are being read"})) {
				t.Errorf("after %s are told %v, %q", passed, told, lacks)
			}
			if passed > 14*time.Second && (len(told) != len(asks) || len(lacks) > 0) {
				t.Errorf("after %s are told %v, %q", passed, told, lacks)
			}
		}
		if passed := time.Since(began); c.lists != 2*len(asks) || passed < 80*time.Second {
			t.Errorf("in %s there were %d lists", passed, c.lists)
		}
		for i := range 20 {
			go e.of(t.Context(), "team", []string{fmt.Sprint("other-", i)})
		}
		time.Sleep(10 * time.Minute)
		e.of(t.Context(), "team", asks)
		time.Sleep(time.Minute)
		if c.most != mostReads || len(e.jobs) != 1 {
			t.Errorf("%d lists were read at once, and %d jobs are remembered", c.most, len(e.jobs))
		}
	})
}
