// The worker holds the simulator, so that typing never waits for it. Messages to it are questions, messages from it answers; the shapes of
// both are engine/try's. All are JSON.
"use strict";
importScripts("wasm_exec.js");

// decoded gives the program's bytes from a file that the page itself decompresses; null where there is no such file.
async function decoded(name, format) {
  const answer = await fetch(name);
  if (!answer.ok) return null;
  return new Response(answer.body.pipeThrough(new DecompressionStream(format)), { headers: { "Content-Type": "application/wasm" } });
}

// program is the simulator as the server has it: decompressed by the browser where the server says that it is compressed, else here.
async function program() {
  const answer = await fetch("celsius.wasm");
  if (answer.ok) return answer;
  try {
    new DecompressionStream("brotli"); // not all browsers have it
    const small = await decoded("celsius.wasm.br", "brotli");
    if (small) return small;
  } catch { /* the larger file does */ }
  const large = await decoded("celsius.wasm.gz", "gzip");
  if (large) return large;
  throw new Error("the simulator is not there: run make web");
}

const ready = (async () => {
  const go = new Go();
  const loaded = await WebAssembly.instantiateStreaming(program(), go.importObject);
  await new Promise((resolve, reject) => {
    self.celsiusReady = resolve;
    go.run(loaded.instance).catch(reject);
  });
})();
ready.then(() => postMessage({ ready: true }), (e) => postMessage({ failed: String(e.message || e) }));

onmessage = async (message) => {
  await ready;
  const number = message.data.number, began = performance.now();
  try {
    const answer = self.celsiusAsk(JSON.stringify(message.data.question));
    if (typeof answer !== "string") throw new Error("the program ended; its last words are in the console of the browser");
    postMessage({ number, answer: JSON.parse(answer), took: performance.now() - began });
  } catch (e) {
    postMessage({ number, broke: String(e.message || e) }); // it cannot be asked again
  }
};
