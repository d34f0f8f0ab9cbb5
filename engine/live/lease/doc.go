// Package lease has instances of a program take turns, so that what one of them asks the API server for is never carried out beside
// the next one's turn.
//
//	elector (client-go) --Get, Update--> lock --> API server           the Lease, as any other client writes it
//	                                      | renewed, or another's
//	                                      v
//	writes --> http client --> fence: may this leave now? --> connection: may it still? --> API server
//
// # Who writes when
//
// A lease holds for its duration D, which is written in it. All times below are told by each process from its own clock, from a moment
// that both have seen: that of the renewal. What clocks say, and whether they agree, does not matter;
// how fast they go may differ by an eighth.
//
//	0                     the holder sends a renewal, which succeeds
//	5/6 D                 nothing of the holder's leaves any more, unless a later renewal succeeded: 12.5 s of 15
//	5/6 D + 1/3 D = 7/6 D nothing of the holder's is carried out any more: the API server gives each request 1/3 D (Client)
//	4/3 D                 another may take the lease, not before: 20 s of 15
//
// A lease that was given back is free at once. It is given back when nothing of the holder's is on its way any more.
//
// # What ends a turn
//
// A renewal that succeeds late opens the fence again: the Lease is written with the version that was
// read, so nobody else had it in between. A Lease that is found to be another's, or nobody's, ends the
// turn for good, and Start with it: what was decided in one turn is never sent in the next.
package lease
