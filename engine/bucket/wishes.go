package bucket

import (
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// wishes contains what a job's annotations state about its roles.
type wishes struct {
	// near and apart contain the roles that a role should be near to, or apart from. The role itself may be among them.
	near, apart map[string][]string
	// strength is that of the strongest wish that names a role: 4 for apart from its own role, 3 for near others, 2 for near its own role, 1
	// for apart from others.
	strength map[string]int
	// order contains the positions of roles in the order that the owner wants.
	order map[string]int
}

// Written reports whether a job has annotations about which tasks belong together.
func Written(j *model.Job) bool {
	for _, key := range []string{v1beta1.TaskTopologyAffinity, v1beta1.TaskTopologyAntiAffinity, v1beta1.TaskTopologyTaskOrder} {
		if _, ok := j.Annotations[key]; ok {
			return true
		}
	}
	return false
}

// wishesOf reads a job's annotations. false: they name a role that the job does not have, or a role twice, and have no effect.
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

// groups reads lists of roles. Roles are separated by commas, and lists by between.
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

// add adds lists of roles. A list with a single role applies to the role itself, with strength alone. In a longer list, roles apply to each
// other, with strength among.
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

// apartFrom counts the tasks from which a role should be apart.
func (w *wishes) apartFrom(role string, counts map[string]int) (n int) {
	for _, other := range w.apart[role] {
		n += counts[other]
	}
	return n
}

// drawn returns the attraction for a role: the number of tasks that it should be near to, minus those that it should be apart from.
func (w *wishes) drawn(role string, counts map[string]int) int {
	n := -w.apartFrom(role, counts)
	for _, other := range w.near[role] {
		n += counts[other]
	}
	return n
}

// rank returns the position of a role: in the owner's order, and then by the strongest wish. The smaller one comes first.
func (w *wishes) rank(role string) [2]int {
	place, ok := w.order[role]
	if !ok {
		place = len(w.order)
	}
	return [2]int{place, -w.strength[role]}
}
