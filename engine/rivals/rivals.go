// Package rivals remembers of which jobs pods went for which others, and so which two take room from each other in turn.
package rivals

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Kept is for how long is remembered that a pod of one job went for another.
const Kept = 24 * time.Hour

// Book is what is remembered. The zero value is one of which nothing is.
type Book struct {
	going map[string]going                // by the UID of the pod, while it is there
	last  map[string]map[string]time.Time // by the key of the job whose pods went, and of the one for which: when the last was evicted
	by    map[string]map[string]bool      // the other way round: the jobs whose pods went, by that for which
	swept time.Time
}

type going struct {
	of, ours string // the keys of its job, and of that for which it goes
	at       time.Time
}

// Evicted notes that a pod of one job is evicted for another.
func (b *Book) Evicted(uid, of, ours string, at time.Time) {
	if of == ours || ours == "" {
		return
	}
	if b.going == nil {
		b.going = map[string]going{}
	}
	b.going[uid] = going{of, ours, at}
}

// Stays takes that back of a pod: its eviction was refused, or it ended by itself first.
func (b *Book) Stays(uid string) { delete(b.going, uid) }

// Gone notes that a pod is gone, and gives the keys of the jobs whose rivals are others by that, or are so anew.
func (b *Book) Gone(uid string) (of []string) {
	g, evicted := b.going[uid]
	if !evicted {
		return nil
	}
	delete(b.going, uid)
	if b.last == nil {
		b.last, b.by = map[string]map[string]time.Time{}, map[string]map[string]bool{}
	}
	if b.last[g.of] == nil {
		b.last[g.of] = map[string]time.Time{}
	}
	if b.by[g.ours] == nil {
		b.by[g.ours] = map[string]bool{}
	}
	b.by[g.ours][g.of] = true
	if at := b.last[g.of][g.ours]; at.Before(g.at) {
		b.last[g.of][g.ours] = g.at
	}
	if _, rivals := b.Since(g.of, g.ours); rivals {
		of = append(of, g.of, g.ours)
	}
	return of
}

// Forget forgets, once an hour, what is older than a day, and gives the keys of the jobs that it was about, in order.
func (b *Book) Forget(now time.Time) (of []string) {
	if now.Sub(b.swept) < time.Hour {
		return nil
	}
	b.swept = now
	for job, others := range b.last {
		for other, at := range others {
			if now.Sub(at) > Kept {
				b.drop(job, other)
				of = append(of, job, other)
			}
		}
	}
	slices.Sort(of)
	return slices.Compact(of)
}

func (b *Book) drop(job, other string) {
	if delete(b.last[job], other); len(b.last[job]) == 0 {
		delete(b.last, job)
	}
	if delete(b.by[other], job); len(b.by[other]) == 0 {
		delete(b.by, other)
	}
}

// Left forgets a job that is there no more.
func (b *Book) Left(job string) {
	for other := range b.last[job] {
		b.drop(job, other)
	}
	for of := range b.by[job] {
		b.drop(of, job)
	}
	maps.DeleteFunc(b.going, func(_ string, g going) bool { return g.of == job || g.ours == job })
}

// Since says whether of two jobs pods of each went for the other within a day, and when the last of them was evicted.
func (b *Book) Since(job, other string) (at time.Time, rivals bool) {
	there, went := b.last[job][other]
	back, came := b.last[other][job]
	first, last := there, back
	if last.Before(first) {
		first, last = last, first
	}
	if !went || !came || last.Sub(first) > Kept {
		return time.Time{}, false
	}
	return last, true
}

// Of are the rivals of a job, by key, in the order of their keys.
func (b *Book) Of(job string) []string {
	return slices.DeleteFunc(slices.SortedFunc(maps.Keys(b.last[job]), strings.Compare), func(other string) bool {
		_, rivals := b.Since(job, other)
		return !rivals
	})
}
