package bucket

import (
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// wishes are what a job's annotations say of its roles.
type wishes struct {
	// near and apart are the roles with which a role wants to be, or not to be; itself among them.
	near, apart map[string][]string
	// strength is that of the strongest wish that names a role: 4 to be apart from its own, 3 to be near others, 2 to be near its own, 1 to be
	// apart from others.
	strength map[string]int
	// order are the places of roles in the order that the owner wants.
	order map[string]int
}

// Written says whether a job's owner says anything of which tasks belong together.
func Written(j *model.Job) bool {
	for _, key := range []string{v1beta1.TaskTopologyAffinity, v1beta1.TaskTopologyAntiAffinity, v1beta1.TaskTopologyTaskOrder} {
		if _, ok := j.Annotations[key]; ok {
			return true
		}
	}
	return false
}

// wishesOf reads a job's annotations; false: they name a role that the job has not, or one twice, and say nothing then.
func wishesOf(j *model.Job) (*wishes, bool) {
	roles := map[string]bool{}
	for _, t := range j.Tasks {
		roles[t.Role] = true
	}
	near, known := groups(j.Annotations[v1beta1.TaskTopologyAffinity], ";", roles)
	apart, alsoKnown := groups(j.Annotations[v1beta1.TaskTopologyAntiAffinity], ";", roles)
	order, thirdKnown := groups(j.Annotations[v1beta1.TaskTopologyTaskOrder], "\n", roles)
	if !known || !alsoKnown || !thirdKnown {
		return nil, false
	}
	w := &wishes{near: map[string][]string{}, apart: map[string][]string{}, strength: map[string]int{}, order: map[string]int{}}
	w.add(w.near, near, 2, 3)
	w.add(w.apart, apart, 4, 1)
	for _, list := range order {
		for i, role := range list {
			w.order[role] = i
		}
	}
	return w, true
}

// groups reads lists of roles, with commas in them and something else between them.
func groups(text, between string, roles map[string]bool) (out [][]string, known bool) {
	for list := range strings.SplitSeq(text, between) {
		var group []string
		for role := range strings.SplitSeq(list, ",") {
			switch role = strings.TrimSpace(role); {
			case role == "":
				continue
			case !roles[role] || slices.Contains(group, role):
				return nil, false
			}
			group = append(group, role)
		}
		if len(group) > 0 {
			out = append(out, group)
		}
	}
	return out, true
}

// add takes in lists of roles: one that is alone has the wish of its own kind, several of each other.
func (w *wishes) add(of map[string][]string, groups [][]string, alone, among int) {
	for _, group := range groups {
		strength := among
		if len(group) == 1 {
			strength = alone
		}
		for i, role := range group {
			w.strength[role] = max(w.strength[role], strength)
			for k, other := range group {
				if (len(group) == 1 || i != k) && !slices.Contains(of[role], other) {
					of[role] = append(of[role], other)
				}
			}
		}
	}
}

// apartFrom counts those from whom a role wants to be apart.
func (w *wishes) apartFrom(role string, counts map[string]int) (n int) {
	for _, other := range w.apart[role] {
		n += counts[other]
	}
	return n
}

// drawn is how many a role wants to be near, less those from whom it wants to be apart.
func (w *wishes) drawn(role string, counts map[string]int) int {
	n := -w.apartFrom(role, counts)
	for _, other := range w.near[role] {
		n += counts[other]
	}
	return n
}

// rank is where tasks of a role come: as the owner has it, then the strongest wishes first; what is smaller comes first.
func (w *wishes) rank(role string) [2]int {
	place, ok := w.order[role]
	if !ok {
		place = len(w.order)
	}
	return [2]int{place, -w.strength[role]}
}
