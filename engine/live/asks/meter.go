package asks

import "time"

// Meter receives the outcomes of requests, for metrics. server is a HOST:PORT, and form one of extender.Forms.
type Meter interface {
	// Asked reports the outcome and the duration of one request.
	Asked(server, form, outcome string, took time.Duration)
	// Replaced reports the age of an answer when another answer replaced it.
	Replaced(server, form string, age time.Duration)
	// NoRoom reports a question that was dropped because too many wait.
	NoRoom(server, form string)
}

// Outcomes of requests.
const (
	Answered  = "answered"
	Wrong     = "wrong"     // a status other than 200, or a body that cannot be read
	Late      = "late"      // no response within the timeout
	Unreached = "unreached" // no connection, or it broke
)

// silence is a Meter that does nothing.
type silence struct{}

// Asked implements Meter.
func (silence) Asked(string, string, string, time.Duration) {}

// Replaced implements Meter.
func (silence) Replaced(string, string, time.Duration) {}

// NoRoom implements Meter.
func (silence) NoRoom(string, string) {}
