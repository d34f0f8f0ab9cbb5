package language

// Opinion is what one row says. The zero value is none.
type Opinion uint8

// The opinions a row can have.
const (
	Abstain Opinion = iota
	Yes
	No
)
