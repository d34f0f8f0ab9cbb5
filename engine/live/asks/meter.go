package asks

import "time"

// Meter is told what is asked, for metrics. server is a HOST:PORT, and form one of extender.Forms.
type Meter interface {
	// Asked is told how one request ended, and after what time.
	Asked(server, form, outcome string, took time.Duration)
	// Replaced is told how old an answer was when another took its place.
	Replaced(server, form string, age time.Duration)
	// NoRoom is told of a question that is left to the next plan, as too many wait.
	NoRoom(server, form string)
}

// How requests end.
const (
	Answered  = "answered"
	Wrong     = "wrong"     // with another status than 200, or with what cannot be read
	Late      = "late"      // it was waited for in vain
	Unreached = "unreached" // there was no connection, or it broke
)

// silence tells nobody.
type silence struct{}

// Asked implements Meter.
func (silence) Asked(string, string, string, time.Duration) {}

// Replaced implements Meter.
func (silence) Replaced(string, string, time.Duration) {}

// NoRoom implements Meter.
func (silence) NoRoom(string, string) {}
