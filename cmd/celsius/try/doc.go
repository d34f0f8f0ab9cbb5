// Package try is the page on which people try a policy in their browser, and the making of it.
//
//	try/wasm (engine/try, engine/sim ...) --go build, brotli, gzip--> celsius.wasm.br, celsius.wasm.gz --+
//	page, engine/page -------------------------------------------> index.html, try.js, worker.js ... ----+--> a folder --> Handler, or any
//	README.md, docs, samples ------------------------------------> examples.json ------------------------+                server of files
//
// The page asks a worker, and the worker the program; nothing is sent anywhere.
package try
