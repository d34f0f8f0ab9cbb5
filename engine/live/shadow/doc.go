// Package shadow has policies decide beside the one that is obeyed, on the same state, with no consequences, and for a bounded part of the
// time, and counts where they decide otherwise.
//
//	Before: for each shadow, a cycle in a trial that ends          After: what was decided --> differences --> Tell
package shadow
