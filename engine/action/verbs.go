package action

import (
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// verb is a verb of the language and the function that runs its steps.
type verb struct {
	name string
	run  func(*Cycle, *policy.Step)
}

// verbs contains each of policy.Verbs.
func verbs() []verb {
	return []verb{
		{policy.Admit, (*Cycle).admit},
		{policy.Place, (*Cycle).place},
		{policy.Displace, (*Cycle).displace},
		{policy.Evict, func(x *Cycle, step *policy.Step) { naming{x, step}.evict() }},
	}
}
