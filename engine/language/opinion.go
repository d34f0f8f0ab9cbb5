package language

// Opinion is the answer of one row. The zero value is Abstain.
type Opinion uint8

// The possible opinions.
const (
	Abstain Opinion = iota
	Yes
	No
)
