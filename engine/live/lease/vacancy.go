package lease

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultDuration is how long a Lease holds that does not state it.
const defaultDuration = 15 * time.Second

// Vacancy is a Lease that no process holds.
type Vacancy struct {
	Name    types.NamespacedName
	Missing bool      // the Lease does not exist
	Holder  string    // who held it last; "": it was released
	Renewed time.Time // by the clock of the holder; zero: never
}

// VacancyOf returns nil where a process holds a Lease at the given time. It compares the holder's clock with that of the caller.
func VacancyOf(l *coordinationv1.Lease, now time.Time) *Vacancy {
	v := vacancyOf(l)
	if v.Holder != "" && !now.After(v.Renewed.Add(durationOf(l))) {
		return nil
	}
	return v
}

func vacancyOf(l *coordinationv1.Lease) *Vacancy {
	v := &Vacancy{Name: client.ObjectKeyFromObject(l)}
	if l.Spec.HolderIdentity != nil && l.Spec.RenewTime != nil {
		v.Holder, v.Renewed = *l.Spec.HolderIdentity, l.Spec.RenewTime.Time
	}
	return v
}

func durationOf(l *coordinationv1.Lease) time.Duration {
	if l.Spec.LeaseDurationSeconds == nil {
		return defaultDuration
	}
	return time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
}

// String states it with the time of the last renewal. It does not name the holder, so that it can be written where every user reads it.
func (v *Vacancy) String() string {
	return v.text("at " + v.Renewed.UTC().Format(time.RFC3339))
}

// Ago states it with the holder and the time since the last renewal, as the given function writes it.
func (v *Vacancy) Ago(since func(metav1.Time) string) string {
	return v.text(since(metav1.NewTime(v.Renewed)) + " ago, by " + v.Holder)
}

func (v *Vacancy) text(renewed string) string {
	switch {
	case v.Missing:
		return fmt.Sprintf("Lease %s does not exist", v.Name)
	case v.Holder == "":
		return fmt.Sprintf("nothing holds Lease %s", v.Name)
	default:
		return fmt.Sprintf("Lease %s was last renewed %s", v.Name, renewed)
	}
}

// Watch looks at the Lease of another part of Celsius. Its zero value with a Name is ready.
type Watch struct {
	Name types.NamespacedName

	version string    // of the Lease at the last look; "": it did not exist
	since   time.Time // of which version is the same, by our own clock
}

// Look reads the Lease. It returns nil while a process may hold it, which is until the Lease did not change for four thirds of its
// duration, as for a process that waits for it. Clocks need not agree. Errors of the API server are returned.
func (w *Watch) Look(ctx context.Context, r client.Reader, now time.Time) (*Vacancy, error) {
	l := &coordinationv1.Lease{}
	err := r.Get(ctx, w.Name, l)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, fmt.Errorf("read Lease %s: %w", w.Name, err)
	}
	if w.since.IsZero() || l.ResourceVersion != w.version {
		w.version, w.since = l.ResourceVersion, now
	}
	if now.Sub(w.since) <= cmp.Or(durationOf(l), defaultDuration)*4/3 {
		return nil, nil
	}
	if missing {
		return &Vacancy{Name: w.Name, Missing: true}, nil
	}
	return vacancyOf(l), nil
}

// Reports remembers on which objects a vacancy was reported, so that each is reported on once per outage. Its zero value is ready.
type Reports struct{ done map[types.UID]bool }

// Next returns the oldest objects that were not reported on, at most so many, and counts them as reported on. waiting are all objects to
// which the vacancy matters; others are forgotten.
func (r *Reports) Next(waiting []client.Object, most int) []client.Object {
	still, next := map[types.UID]bool{}, []client.Object{}
	for _, o := range waiting {
		if r.done[o.GetUID()] {
			still[o.GetUID()] = true
		} else {
			next = append(next, o)
		}
	}
	slices.SortFunc(next, func(a, b client.Object) int {
		at := b.GetCreationTimestamp()
		created := a.GetCreationTimestamp()
		return cmp.Or(created.Compare(at.Time), cmp.Compare(a.GetUID(), b.GetUID()))
	})
	next = next[:min(len(next), most)]
	for _, o := range next {
		still[o.GetUID()] = true
	}
	r.done = still
	return next
}
