// Package try answers the page on which users try a policy in their browser. The input is two texts, a policy and a world. The output is
// that of celsius simulate.
//
//	Question: policy, world, how long --> Ask --> Answer: plan, reasons, a page; or mistakes with their positions
//
// It has no I/O and no clock. A browser runs it as WebAssembly, so it contains no library of volumes: a pod with volumes waits, with a
// reason.
package try
