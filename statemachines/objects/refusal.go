package objects

// The reasons of the state of a Job whose objects the API server refuses.
const (
	// FailedCreate is the reason while the controllers try again.
	FailedCreate = "FailedCreate"
	// RefusedTooOften is the reason after the Job was terminated because of it.
	RefusedTooOften = "RefusedTooOften"
)
