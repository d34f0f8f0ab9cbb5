// Package follow keeps derived data up to date with its objects. A Log lists what was touched, and each reader follows it with its own
// Cursor. Slots are the small numbers of objects, so that data about objects fits in a slice.
package follow
