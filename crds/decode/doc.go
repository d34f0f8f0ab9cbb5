// Package decode reads what somebody else wrote into Go types, and says which field cannot be read.
//
//	JSON --JSON--> Go value, or the path of the first field that its type cannot hold
//	text --Quantity--> quantity, in a time that does not depend on what the text says
//
// Kubernetes' own decoders tell what is wrong with a value, but not whose it is; and a quantity of a dozen
// characters (1e-99999999) keeps them busy for hours.
package decode
