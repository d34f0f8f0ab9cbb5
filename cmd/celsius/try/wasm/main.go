//go:build js && wasm

// Command wasm is the core of celsius simulate as WebAssembly. It provides a function to the worker of the page. The function takes a
// try.Question as JSON, and returns a try.Answer as JSON.
package main

import (
	"encoding/json"
	"syscall/js"
	"time"
	_ "time/tzdata" // a browser has no time zone files

	"github.com/celsius-scheduler/celsius/engine/try"
)

func main() {
	js.Global().Set("celsiusAsk", js.FuncOf(func(_ js.Value, args []js.Value) any {
		var q try.Question
		if err := json.Unmarshal([]byte(args[0].String()), &q); err != nil {
			return written(try.Answer{Issues: []try.Issue{}, Error: "the page asked something else than this program answers: " + err.Error()})
		}
		return written(try.Ask(q, time.Now()))
	}))
	js.Global().Call("celsiusReady")
	select {} // from now on the page calls the function
}

// written returns an answer as JSON.
func written(a try.Answer) string {
	out, err := json.Marshal(a)
	if err != nil {
		return `{"issues": [], "error": "the answer could not be written"}`
	}
	return string(out)
}
