// Package lease makes instances of a program take turns. A request of one instance to the API server is never executed during the turn of
// the next instance.
//
//	elector (client-go) --Get, Update--> lock --> API server           the Lease, as any other client writes it
//	                                      | renewed, or held by another instance
//	                                      v
//	writes --> http client --> fence: may this be sent now? --> connection: may it still? --> API server
//
// # Who writes when
//
// A lease is valid for its duration D, which it contains. Each process measures all times below with its own clock, from a moment that both
// processes have seen: the renewal. The clocks need not agree. Their speeds may differ by an eighth.
//
//	0                     the holder sends a renewal, which succeeds
//	5/6 D                 the holder sends nothing more, unless a later renewal succeeded: 12.5 s of 15
//	5/6 D + 1/3 D = 7/6 D no request of the holder is executed any more: the API server gives each request 1/3 D (Client)
//	4/3 D                 another instance may take the lease, not before: 20 s of 15
//
// A released lease is free at once. The holder releases it when none of its requests is under way any more.
//
// # What ends a turn
//
// A late renewal that succeeds opens the fence again. The Lease is written with the version that was read, so no other instance had it in
// between. A Lease that has another holder or none ends the turn permanently, and Start returns. So a decision of one turn is never sent in
// the next.
package lease
