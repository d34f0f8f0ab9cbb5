package policy

import "github.com/celsius-scheduler/celsius/engine/language"

// Derived is the common part of cached values that depend on many objects: sums, shares of a total, quota trees and share trees. Such a
// value is valid at one moment. It is updated from the change logs if its inputs allow this, and rebuilt otherwise.
type Derived struct {
	Accounts *Accounts
	// byAction means that it reads the action. Follows means that within a cycle it changes only with the entries of the logs. Lasts means
	// that it can be carried over to the next cycle, and past changes of objects.
	byAction, Follows, Lasts bool
	// settles means that it keeps its first value of a cycle until the cycle ends.
	settles bool

	made    bool
	at      language.Stamp // the time of the last update, with the clock of the objects
	clock   uint64         // the clock of the cluster at that time
	Version uint64         // changes with each rebuild
	erred   bool           // an error occurred since the last rebuild; each cycle reports it
}

// Deriver is a value with its own steps to carry, replay and rebuild.
type Deriver interface {
	// Carry reports whether the value is still valid at a moment of another cycle, or after a change of objects. It ignores changes that the
	// logs name, because Replay applies them. Apart from these changes, the value must equal the value that Rebuild would compute. The value
	// still has its old moment.
	Carry(to language.Stamp) bool
	// Replay applies the entries of the logs; false: the value must be rebuilt.
	Replay(to language.Stamp) bool
	// Rebuild computes the value from scratch; false: there is no value.
	Rebuild() bool
}

// Bring updates a value to the present.
func (d *Derived) Bring(x Deriver) {
	s := d.Accounts
	if d.made && d.settles && d.at.Cycle == s.Cycle {
		return
	}
	at := s.Ask.StampOf(d.byAction)
	at.Clock = s.c.ObjectClock
	moved, stepped := d.at != at, d.clock != s.c.Clock
	holds := d.made && (!moved || d.Lasts && x.Carry(at))
	erring := s.Ask.Errors()
	if holds && (stepped || moved && d.Follows) {
		holds = d.Follows && x.Replay(at)
		d.erred = d.erred || s.Ask.Errors() != erring
	}
	if !holds {
		erring = s.Ask.Errors()
		d.made = x.Rebuild()
		s.rebuilt++
		d.Version, d.erred = s.rebuilt, s.Ask.Errors() != erring
	}
	d.at, d.clock = at, s.c.Clock
}

// Erring implements Kept.
func (d *Derived) Erring() bool { return d.erred }

// eachOnce calls do for each different entry of a log.
func eachOnce[T comparable](entries []T, do func(T)) {
	seen := map[T]bool{}
	for _, x := range entries {
		if !seen[x] {
			seen[x] = true
			do(x)
		}
	}
}
