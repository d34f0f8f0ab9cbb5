package policy

import "github.com/celsius-scheduler/celsius/engine/language"

// Derived is what all values have in common that are made of many objects and kept: of sums, of what is shared out, of trees of quotas and
// of shares. Such a value holds at one moment. It is brought to another one by what the logs name, where what it reads lets it, and is
// made anew else.
type Derived struct {
	Accounts *Accounts
	// What follows from what it reads: byAction says that the action is; follows, that within a cycle nothing moves of it but what
	// the logs name; lasts, that it can be taken over from cycle to cycle, and past changes of objects.
	byAction, Follows, Lasts bool
	// settles says that it stays for a cycle as it was first found in it.
	settles bool

	made    bool
	at      language.Stamp // when it was last brought up to date, with the clock of the objects
	clock   uint64         // of the cluster, then
	Version uint64         // another where it was made anew
	erred   bool           // something of it erred since it was made anew: each cycle is told of it
}

// Deriver is a value with what is its own of that.
type Deriver interface {
	// Carry reports whether the value, except for what the logs name, equals the value that Rebuild would compute at this moment of another
	// cycle, or after a change of objects. The value still has its old moment then.
	Carry(to language.Stamp) bool
	// Replay takes in what the logs name; false: it must be made anew.
	Replay(to language.Stamp) bool
	// Rebuild makes it anew; false: there is no value.
	Rebuild() bool
}

// Bring brings a value to the present moment.
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

// eachOnce does something for each entry of a log, however often it stands there.
func eachOnce[T comparable](entries []T, do func(T)) {
	seen := map[T]bool{}
	for _, x := range entries {
		if !seen[x] {
			seen[x] = true
			do(x)
		}
	}
}
