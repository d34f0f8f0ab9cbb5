// Package lsp is a language server for the rules of Celsius. It uses the Language Server Protocol over two streams.
//
//	stdin --wire--> server: open texts --Core--> answers --wire--> stdout
//	                  |
//	                  +-- some time after the last change: Core.Check --> publishDiagnostics
//
//	wire.go        JSON-RPC with the protocol's framing
//	protocol.go    the types of the protocol that are used
//	server.go      the loop over open texts and requests; checks run in the background, so that requests do not wait
//	text.go        a text in lines, and its positions in UTF-16
//	core.go        the languages, tables and schemas; Check
//	place.go       the position of the cursor in the structure of YAML, even while the text is not valid YAML
//	expression.go  the position in an expression, even while it does not parse
//	complete.go, hover.go, define.go, symbols.go  the answers
//
// Core has no state: it gets a text and a position, and returns an answer.
package lsp
