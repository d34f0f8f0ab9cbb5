// Package rivals remembers for which jobs the pods of a job were evicted. So it knows which job would close a circle if it took resources
// from another.
package rivals

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Kept is how long an eviction of one job's pod for another job is remembered.
const Kept = 24 * time.Hour

// Book stores the evictions that are remembered. The zero value is empty.
type Book struct {
	going map[string]going                // by the UID of the pod, while it exists
	last  map[string]map[string]time.Time // time of the last eviction, by the keys of the losing job and of the taker
	by    map[string]map[string]bool      // the reverse: the losing jobs, by taker
	swept time.Time
}

type going struct {
	of, ours string // keys of the pod's job, and of the job for which it is evicted
	at       time.Time
}

// Clone returns a copy.
func (b *Book) Clone() Book {
	out := Book{going: maps.Clone(b.going), last: maps.Clone(b.last), by: maps.Clone(b.by), swept: b.swept}
	for job := range out.last {
		out.last[job] = maps.Clone(out.last[job])
	}
	for job := range out.by {
		out.by[job] = maps.Clone(out.by[job])
	}
	return out
}

// SameTakers reports whether all jobs have the same takers in both books.
func (b *Book) SameTakers(other *Book) bool {
	return maps.EqualFunc(b.last, other.last, func(x, y map[string]time.Time) bool { return maps.EqualFunc(x, y, time.Time.Equal) })
}

// Losers returns the keys of the jobs that have takers, in order.
func (b *Book) Losers() []string { return slices.Sorted(maps.Keys(b.last)) }

// Evicted records that a pod of one job is evicted for another.
func (b *Book) Evicted(uid, of, ours string, at time.Time) {
	if of == ours || ours == "" {
		return
	}
	if b.going == nil {
		b.going = map[string]going{}
	}
	b.going[uid] = going{of, ours, at}
}

// Stays removes the record of Evicted: the eviction of the pod was refused, or the pod ended by itself first.
func (b *Book) Stays(uid string) { delete(b.going, uid) }

// Gone records that a pod is gone. It returns, in order, the keys of the jobs whose takers, or the times of these, change.
func (b *Book) Gone(uid string) (of []string) {
	g, evicted := b.going[uid]
	if !evicted {
		return nil
	}
	delete(b.going, uid)
	if !b.last[g.of][g.ours].Before(g.at) {
		return nil
	}
	if b.last == nil {
		b.last, b.by = map[string]map[string]time.Time{}, map[string]map[string]bool{}
	}
	if b.last[g.of] == nil {
		b.last[g.of] = map[string]time.Time{}
	}
	if b.by[g.ours] == nil {
		b.by[g.ours] = map[string]bool{}
	}
	b.last[g.of][g.ours], b.by[g.ours][g.of] = g.at, true
	return slices.Sorted(maps.Keys(b.losers(g.of)))
}

// losers returns a job, and all jobs that have it among their takers.
func (b *Book) losers(job string) map[string]bool {
	all, open := map[string]bool{job: true}, []string{job}
	for len(open) > 0 {
		ours := open[len(open)-1]
		open = open[:len(open)-1]
		for of := range b.by[ours] {
			if !all[of] {
				all[of] = true
				open = append(open, of)
			}
		}
	}
	return all
}

// Takers returns the jobs for which pods of a job were evicted, by key. It also returns the jobs for which pods of these jobs were evicted,
// and so on. The job itself is left out. The value is the time of the oldest eviction on the chain that leads to a job. If several chains
// lead to it, the latest of these times counts.
func (b *Book) Takers(job string) map[string]time.Time {
	if len(b.last[job]) == 0 { // this applies to nearly all jobs, and the function is called for each pair
		return nil
	}
	since, open := map[string]time.Time{}, []string{job}
	for len(open) > 0 {
		of := open[len(open)-1]
		open = open[:len(open)-1]
		for ours, at := range b.last[of] {
			if of != job && since[of].Before(at) {
				at = since[of]
			}
			if ours != job && since[ours].Before(at) {
				since[ours] = at
				open = append(open, ours)
			}
		}
	}
	return since
}

// Forget removes, once per hour, entries older than a day. It returns the keys of the jobs whose takers change, in order.
func (b *Book) Forget(now time.Time) (of []string) {
	if now.Sub(b.swept) < time.Hour {
		return nil
	}
	b.swept = now
	told := map[string]bool{}
	for job, others := range b.last {
		for other, at := range others {
			if now.Sub(at) > Kept {
				maps.Copy(told, b.losers(job))
				b.drop(job, other)
			}
		}
	}
	return slices.Sorted(maps.Keys(told))
}

// Left removes a job that no longer exists. It returns the keys of the jobs whose takers change, in order.
func (b *Book) Left(job string) (of []string) {
	told := b.losers(job)
	for other := range b.last[job] {
		b.drop(job, other)
	}
	for other := range b.by[job] {
		b.drop(other, job)
	}
	maps.DeleteFunc(b.going, func(_ string, g going) bool { return g.of == job || g.ours == job })
	delete(told, job)
	return slices.Sorted(maps.Keys(told))
}

func (b *Book) drop(job, other string) {
	if delete(b.last[job], other); len(b.last[job]) == 0 {
		delete(b.last, job)
	}
	if delete(b.by[other], job); len(b.by[other]) == 0 {
		delete(b.by, other)
	}
}

// written is the JSON form of a book.
type written struct {
	Going map[string]writtenGoing         `json:"going,omitempty"`
	Last  map[string]map[string]time.Time `json:"last,omitempty"`
	Swept time.Time                       `json:"swept,omitzero"`
}

type writtenGoing struct {
	Of, For string
	At      time.Time
}

// MarshalJSON writes the whole book.
func (b *Book) MarshalJSON() ([]byte, error) {
	w := written{Last: b.last, Swept: b.swept, Going: map[string]writtenGoing{}}
	for uid, g := range b.going {
		w.Going[uid] = writtenGoing{g.of, g.ours, g.at}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (b *Book) UnmarshalJSON(text []byte) error {
	var w written
	if err := json.Unmarshal(text, &w); err != nil {
		return err //nolint:wrapcheck // json names the place
	}
	*b = Book{last: w.Last, swept: w.Swept}
	for uid, g := range w.Going {
		b.Evicted(uid, g.Of, g.For, g.At)
	}
	for of, others := range b.last {
		for ours := range others {
			if b.by == nil {
				b.by = map[string]map[string]bool{}
			}
			if b.by[ours] == nil {
				b.by[ours] = map[string]bool{}
			}
			b.by[ours][of] = true
		}
	}
	return nil
}
