// Package shadow lets policies decide alongside the serving one, on the same state and without effect. It counts where their decisions
// differ, and uses only a bounded part of the time.
//
//	Before: for each shadow, a cycle in a trial that ends          After: the real plan --> differences --> Tell
package shadow
