// Package informers watches our kinds object by object: one that cannot be decoded is left out, and all others are seen.
//
//	list  --> decoded as a whole; if that fails, item by item  --+--> informer
//	watch --> decoded event by event                             |
//	                                                             +--> left out: a log line, a gauge, an event
//
// The API server stores whatever a manifest lets pass, and keeps what an older manifest let pass. client-go decodes a
// list as a whole: one object that cannot be decoded keeps all others of its kind from whoever watches.
//
// To those who watch, an object that is left out is not there; one that becomes so is deleted, and added when it is mended.
// The same holds after a restart, of which what was before is not known.
package informers
