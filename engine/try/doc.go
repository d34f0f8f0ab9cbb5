// Package try answers what the page asks on which people try a policy in their browser: two texts in, a policy and a world, and out what
// celsius simulate says of them.
//
//	Question: policy, world, how long --> Ask --> Answer: plan, reasons, a page; or mistakes with their places
//
// It has no I/O and no clock. A browser runs it as WebAssembly, so it brings no library of volumes: a pod with volumes waits, and is told
// why.
package try
