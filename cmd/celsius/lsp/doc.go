// Package lsp helps authors of our rules in their editors, by the Language Server Protocol over two streams.
//
//	stdin --wire--> server: open texts --Core--> answers --wire--> stdout
//	                  |
//	                  +-- a while after the last change: Core.Check --> publishDiagnostics
//
//	wire.go        JSON-RPC with the protocol's framing
//	protocol.go    of the protocol's types what is used
//	server.go      the loop: which texts are open, who is answered; checks run beside it, so that nobody waits for them
//	text.go        a text in lines, and its places in UTF-16
//	core.go        what texts say: the languages, tables and schemas; Check
//	place.go       where in the structure of YAML the cursor is, though what is being written there is not YAML yet
//	expression.go  where in an expression, though it does not parse yet
//	complete.go, hover.go, define.go, symbols.go  the answers
//
// Core is pure: a text and a place in, an answer out.
package lsp
