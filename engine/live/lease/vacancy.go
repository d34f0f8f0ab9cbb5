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

// defaultDuration is the duration of a Lease that states none.
const defaultDuration = 15 * time.Second

// Vacancy is a Lease that no process holds.
type Vacancy struct {
	Name    types.NamespacedName
	Missing bool      // the Lease does not exist
	Holder  string    // the last holder; "": the Lease was released
	Renewed time.Time // a time of the holder's clock; zero: never renewed
	valid   time.Duration
}

// Released reports whether the last holder gave the Lease back. Then a process that takes no Lease may run in its place.
func (v *Vacancy) Released() bool { return !v.Missing && v.Holder == "" }

// IsDisprovedBy reports whether a write shows that a process of this part of Celsius runs without the Lease. written is the time of the
// write, and only this part makes such a write. The write must be later than the end of the Lease, because the last holder may have
// written until then.
func (v *Vacancy) IsDisprovedBy(written time.Time) bool {
	until := v.Renewed
	if v.Holder != "" {
		until = until.Add(v.valid)
	}
	return !v.Missing && written.After(until)
}

// VacancyOf returns nil if a process holds a Lease at the given time. It compares the holder's clock with that of the caller.
func VacancyOf(l *coordinationv1.Lease, now time.Time) *Vacancy {
	v := vacancyOf(l)
	if v.Holder != "" && !now.After(v.Renewed.Add(durationOf(l))) {
		return nil
	}
	return v
}

func vacancyOf(l *coordinationv1.Lease) *Vacancy {
	v := &Vacancy{Name: client.ObjectKeyFromObject(l), valid: durationOf(l)}
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

// String states the vacancy with the time of the last renewal. It does not name the holder, because all users may read the text.
func (v *Vacancy) String() string {
	return v.text("at " + v.Renewed.UTC().Format(time.RFC3339))
}

// Ago states the vacancy with the holder and the time since the last renewal, which the given function formats.
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

// Watch observes the Lease of another part of Celsius. A Watch that has only a Name is ready for use.
type Watch struct {
	Name types.NamespacedName

	version string    // of the Lease at the last look; "": it did not exist
	since   time.Time // when version was first read, a time of our own clock
}

// Look reads the Lease. It returns nil while a process may hold the Lease. No process holds it if it has not changed for 4/3 of its
// duration. The clocks of both processes need not agree, because Look measures the time with its own clock. It returns errors of the API
// server.
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

// Reports remembers the objects on which a vacancy was reported, so that each object gets one report per outage. The zero value is ready
// for use.
type Reports struct{ done map[types.UID]bool }

// Next returns the oldest objects without a report, and marks them as reported. most limits their number. The parameter waiting lists all
// objects that the vacancy affects. Next forgets all other objects.
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
