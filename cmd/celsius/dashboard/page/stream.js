// What the server tells: by fetch and not by EventSource, which can send no token.

let key = sessionStorage.getItem("key") || "";

/** Takes the key out of the address that celsius dashboard printed; false: there is none in it. */
export function takeKey() {
  const given = /^#key=(\w+)$/.exec(location.hash);
  if (!given) return false;
  key = given[1];
  sessionStorage.setItem("key", key); // so that the page can be loaded anew; it dies with celsius dashboard
  history.replaceState(null, "", location.pathname);
  return true;
}

/** Takes the token that somebody wrote, which is kept nowhere else. */
export function setToken(token) { key = token.trim(); }

/** Why one may not look. */
export class Refused extends Error {}

async function ask(path, signal) {
  const response = await fetch("dashboard/" + path, {headers: {Authorization: "Bearer " + key}, cache: "no-store", signal});
  if (response.ok) return response;
  const why = (await response.text()).trim().slice(0, 2000);
  if (response.status === 401) throw new Refused(why);
  if (response.status === 403) throw new Refused(why || "Whose token this is may not get /dashboard.");
  if (response.status === 500 && /authentication/i.test(why)) throw new Refused("The cluster does not know this token, or it is too old.");
  throw new Error(why || response.statusText);
}

export async function json(path, values, signal) { return (await ask(path + "?" + new URLSearchParams(values), signal)).json(); }
export async function words(path, values, signal) { return (await ask(path + "?" + new URLSearchParams(values), signal)).text(); }

/** Calls on(name, data) for each event, for ever; state(word) says how it stands, and refused(why) that a token is asked for. */
export async function follow(on, state, refused) {
  for (let wait = 500; ;) {
    const began = Date.now();
    const quiet = new AbortController();
    let timer;
    try {
      const response = await ask("stream", quiet.signal);
      state("live");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        clearTimeout(timer);
        timer = setTimeout(() => quiet.abort(), 45000); // a comment comes every 15 s
        const {value, done} = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) {
          const event = /^event: (\w+)\ndata: ([^]*)$/.exec(part);
          if (event) on(event[1], JSON.parse(event[2]));
        }
      }
    } catch (error) {
      if (error instanceof Refused) {
        state("locked");
        await refused(error.message);
        continue;
      }
    } finally {
      clearTimeout(timer);
    }
    if (Date.now() - began > 10000) wait = 500;
    else state("lost");
    await new Promise(done => setTimeout(done, wait));
    wait = Math.min(wait * 2, 10000);
  }
}
