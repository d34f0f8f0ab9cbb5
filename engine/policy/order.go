package policy

import (
	"cmp"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Compare compares two keys of the row. An object without a key comes last in both sort directions.
func (r *Rule) Compare(x, y *language.Key) int {
	switch {
	case x.None() && y.None():
		return 0
	case x.None():
		return 1
	case y.None():
		return -1
	}
	if r.Descending {
		return y.Compare(x)
	}
	return x.Compare(y)
}

// QueueAge is the last criterion in the order of queues.
func QueueAge(a, b *model.Queue) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Name, b.Name))
}

// NeededFirst is the order of tasks that comes before the rows of taskOrder. The tasks that the minimums of their roles need come first. So
// no other task takes their nodes while their gang cannot start.
func NeededFirst(a, b *model.Task) int {
	x, y := neededByRole(a), neededByRole(b)
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// TaskTie is the last criterion in the order of tasks. Names come before UIDs: creation times are whole seconds, UIDs are random, and one
// manifest must not get different placements each time.
func TaskTie(a, b *model.Task) int {
	if a.Index >= 0 && b.Index >= 0 && a.Index != b.Index {
		return cmp.Compare(a.Index, b.Index)
	}
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Key, b.Key), cmp.Compare(a.UID, b.UID))
}

// neededByRole reports whether the minimum of its role needs a task: the tasks with the lowest numbers count. As in jobReady, minimums of
// roles count only if minMember covers all of them.
func neededByRole(t *model.Task) bool {
	j := t.Job
	return j != nil && len(j.RoleMin) > 0 && j.MinMember >= j.RoleMinTotal && t.Index >= 0 && t.Index < j.RoleMin[t.Role]
}

// JobTie is the last criterion between jobs. It compares the names that users know, because names of PodGroups may contain a UID.
func JobTie(a, b *model.Job) int {
	return cmp.Or(cmp.Compare(a.Title, b.Title), cmp.Compare(a.Key, b.Key))
}

// JobAge orders jobs by age, then by JobTie.
func JobAge(a, b *model.Job) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), JobTie(a, b)) }
