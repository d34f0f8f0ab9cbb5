// Package try builds and serves the page on which users try a policy in their browser.
//
//	try/wasm (engine/try, engine/sim ...) --go build, brotli, gzip--> celsius.wasm.br, celsius.wasm.gz --+
//	page, engine/page -------------------------------------------> index.html, try.js, worker.js ... ----+--> a folder --> Handler, or any
//	README.md, docs, samples ------------------------------------> examples.json ------------------------+                server of files
//
// The page calls a worker, and the worker calls the program. No data leaves the browser.
package try
