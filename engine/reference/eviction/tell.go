package eviction

import "github.com/celsius-scheduler/celsius/engine/model"

// Served returns the jobs of some tasks for which other tasks are evicted, or that wait for the resources of evicted tasks.
func Served(forced map[*model.Task]bool) map[*model.Job]bool {
	served := map[*model.Job]bool{}
	for t := range forced {
		served[t.Job] = true
	}
	return served
}

// Tell returns the evictions of a plan, with those for some rooms. It removes an eviction that is in known and that no room needs any more.
func Tell(plan []model.Evict, rooms []Room, known map[string]bool) (out []model.Evict) {
	goes := map[string]model.Evict{}
	for _, r := range rooms {
		for _, e := range Evicts(r) {
			goes[e.Task] = e
		}
	}
	told := map[string]bool{}
	for _, e := range plan {
		now, stays := goes[e.Task]
		switch {
		case stays:
			out = append(out, now)
		case !known[e.Task]:
			out = append(out, e)
		}
		told[e.Task] = true
	}
	for _, r := range rooms {
		for _, e := range Evicts(r) {
			if known[e.Task] = true; !told[e.Task] {
				out = append(out, e)
			}
		}
	}
	return out
}
