// Package follow has what is kept beside objects be brought up to date with them: by a Log of what was touched, which each reader goes
// through with a Cursor of its own, and by Slots, the small numbers of objects, by which what is known of each fits a slice.
package follow
