package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/celsius-scheduler/celsius/engine/page"
)

// hostile is a text that is HTML with a script. A page must show it as text.
const hostile = `<img src=x onerror='window.harmed = 1'>`

// componentsPage uses every component with texts that are HTML.
const componentsPage = `
const hostile = "<img src=x onerror='window.harmed = 1'>";
window.refused = [];
document.addEventListener("securitypolicyviolation", (e) => refused.push(e.violatedDirective));
const { make, bar, curve, heat, tree, list, state } = celsius;
const show = (id, e) => { document.body.append(make("section", { id }, e)); return e; };
show("bar", bar({ part: .4, label: "cpu 40 % " + hostile, mark: .5, colour: "q1" }));
show("states", make("p", {}, state("good", "Succeeded"), " ", state("bad", "Failed")));
window.theCurve = show("curve", curve({
  title: "cpu " + hostile, note: "mean 5, peak 10", from: 0, to: 100,
  lines: [{ name: "allocated", kind: "allocated", points: [[0, 0], [20, 10], [60, 4]] },
    { name: "deserved", kind: "deserved", points: [[0, 8]] }],
  time: (t) => Math.round(t) + "s", amount: (a) => a + " cores",
}));
const nodes = Array.from({ length: 3000 }, (_, i) =>
  ({ name: "n" + i, value: i % 7 ? (i % 11) / 10 : null, text: i + " % " + hostile, mark: i === 1 }));
window.chosen = [];
window.theHeat = show("heat", heat({ title: "cpu of nodes", cells: nodes, choose: (c) => chosen.push(c.name) }));
const rows = [{ key: "root" }, { key: "a", parent: "root" }, { key: "b" + hostile, parent: "root" }, { key: "a1", parent: "a" }];
const columns = [{ title: "Queue", cell: (r) => r.key }, { title: "Pods", number: true, cell: () => 7 }];
window.queues = { title: "queues", columns, rows };
window.theTree = show("tree", tree(queues));
const pods = Array.from({ length: 500 }, (_, i) => ({ name: "pod-" + i, job: "job-" + Math.floor(i / 50), node: hostile }));
pods.push({ name: "alone", job: "alone", node: "n1" });
window.listed = {
  title: "pods", rows: pods, columns: [{ title: "Pod", cell: (r) => r.name }, { title: "Node", cell: (r) => r.node }],
  text: (r) => r.name + " " + r.job, group: (r) => r.job, key: (r) => r.name, whole: (rs) => ({ name: rs[0].job, node: rs[0].node }),
  below: (r) => r.name === "alone" ? make("p", {}, "more of " + r.name) : null, page: 6,
};
window.theList = show("list", list(listed));`

// openComponents serves the components as separate files. The security policy of the page allows nothing inline.
func openComponents(t *testing.T) look {
	t.Helper()
	files := map[string][2]string{
		"/": {"text/html", `<!doctype html><meta name=viewport content="width=device-width"><link rel=stylesheet href=style.css>` +
			`<body><script src=components.js></script><script src=page.js></script>`},
		"/style.css":     {"text/css", page.Style()},
		"/components.js": {"text/javascript", page.Components()},
		"/page.js":       {"text/javascript", componentsPage},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'")
		w.Header().Set("Content-Type", files[r.URL.Path][0])
		_, _ = w.Write([]byte(files[r.URL.Path][1]))
	}))
	t.Cleanup(server.Close)
	l := look{t, browser(t)}
	l.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL))
	return l
}

// TestComponents checks that each component shows HTML texts as text, and that a reader can use it with the keyboard.
func TestComponents(t *testing.T) {
	t.Parallel()
	l := openComponents(t)
	if got := l.text(`JSON.stringify(refused)`); got != "[]" {
		t.Errorf("the policy of the page refused %s", got)
	}
	if n := l.number(`document.querySelectorAll("img").length + (window.harmed ? 1 : 0)`); n != 0 {
		t.Error("elements were made of data")
	}
	if got := l.text(`document.body.textContent`); strings.Count(got, hostile) < 4 {
		t.Errorf("%d texts are shown as they are", strings.Count(got, hostile))
	}
	t.Run("curve", func(t *testing.T) { curveReads(look{t, l.ctx}) })
	t.Run("heat", func(t *testing.T) { heatReads(look{t, l.ctx}) })
	t.Run("tree", func(t *testing.T) { treeOpens(look{t, l.ctx}) })
	t.Run("list", func(t *testing.T) { listOpens(look{t, l.ctx}) })
	t.Run("width", func(t *testing.T) {
		for _, width := range []int64{360, 1280} {
			l.do(chromedp.EmulateViewport(width, 900))
			if n := l.number(`document.documentElement.scrollWidth`); n > float64(width) {
				t.Errorf("at %d the components are %v wide", width, n)
			}
		}
	})
}

// keys presses the keys one after the other.
func (l look) keys(keys ...string) {
	l.t.Helper()
	for _, key := range keys {
		l.do(chromedp.KeyEvent(key))
	}
}

func (l look) want(js, want string) {
	l.t.Helper()
	if got := l.text(js); got != want {
		l.t.Errorf("%s is %q, want %q", js, got, want)
	}
}

// curveReads checks the drawn line of a curve. Then it moves from change to change of the curve with the keyboard.
func curveReads(l look) {
	const told = `document.querySelector("#curve .plot").getAttribute("aria-valuetext")`
	l.want(`document.querySelector("#curve path.allocated").getAttribute("d")`, "M0.0 100.00H200.0V0.00H600.0V60.00H1000.0")
	l.do(chromedp.Focus(chromedp.CSS("#curve .plot")))
	l.want(told, "0s, allocated 0 cores, deserved 8 cores")
	l.keys(kb.ArrowRight, kb.ArrowRight)
	l.want(told, "60s, allocated 4 cores, deserved 8 cores")
	l.keys(kb.ArrowLeft)
	l.want(told, "20s, allocated 10 cores, deserved 8 cores")
	l.want(`document.querySelector("#curve output").textContent`, "20sallocated 10 coresdeserved 8 cores")
	l.keys(kb.End)
	l.want(told, "100s, allocated 4 cores, deserved 8 cores")
}

// heatReads moves through the cells of a heat map. It checks that their colors show their values, in the light and the dark theme.
func heatReads(l look) {
	const said = `document.querySelector("#heat output").textContent`
	l.do(chromedp.Focus(chromedp.CSS("#heat canvas")))
	l.keys(kb.ArrowRight, kb.ArrowRight, kb.Enter)
	l.want(said, "n2: 2 % "+hostile)
	l.want(`chosen.join()`, "n2")
	columns := l.number(`Math.floor(document.querySelector("#heat canvas").clientWidth / 8)`)
	l.keys(kb.ArrowDown)
	if got := l.text(said); !strings.HasPrefix(got, fmt.Sprintf("n%v: ", columns+2)) {
		l.t.Errorf("down of the third of %v columns is %q", columns, got)
	}
	l.keys(kb.End)
	l.want(said, "n2999: 2999 % "+hostile)
	// The fourth cell has the value .3, the ninth has .8. These are two different steps of the scale.
	const pixels = `[3, 8].map(i => [...document.querySelector("#heat canvas").getContext("2d").getImageData(i * 8 + 3, 3, 1, 1).data]` +
		`.join()).join(" ")`
	const repainted = `new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))`
	seen := map[string]bool{}
	for _, theme := range []string{"light", "dark"} {
		l.theme(theme)
		if _, err := chromedp.Run(l.ctx, chromedp.Poll[bool](repainted)); err != nil {
			l.t.Fatal(err)
		}
		got := l.text(pixels)
		if first, second, _ := strings.Cut(got, " "); first == second || seen[got] {
			l.t.Errorf("%s: cells of .3 and .8 are drawn %s", theme, got)
		}
		seen[got] = true
	}
}

// theme sets the color scheme that the reader's system prefers.
func (l look) theme(name string) {
	l.t.Helper()
	feature := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}
	l.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: feature})
		return chromedp.Void{}, err
	})
}

// treeOpens closes and opens a queue and searches for one. A closed queue must stay closed when the data changes.
func treeOpens(l look) {
	const keys = `[...document.querySelectorAll("#tree tbody tr")].map(r => r.dataset.key[0] + r.ariaLevel).join()`
	l.want(keys, "r1,a2,a3,b2")
	l.do(chromedp.Focus(chromedp.CSS("#tree tbody tr")))
	l.keys(kb.ArrowDown, kb.ArrowLeft)
	l.want(keys, "r1,a2,b2")
	l.want(`document.activeElement.dataset.key`, "a")
	l.do(script(`theTree.update({ ...queues, rows: [...queues.rows, { key: "c", parent: "root" }] })`))
	l.want(keys, "r1,a2,b2,c2")
	l.want(`document.activeElement.dataset.key`, "a")
	l.do(script(`theTree.search("A1")`))
	l.want(keys, "r1,a2,a3")
	l.do(script(`theTree.search("")`))
	l.keys(kb.ArrowRight)
	l.want(keys, "r1,a2,a3,b2,c2")
}

// listOpens checks the counts of groups and opens one. Then it searches, filters, and shows more lines.
func listOpens(l look) {
	const lines = `[...document.querySelectorAll("#list tbody tr")].map(r => r.cells[0].textContent).join("|")`
	l.want(lines, "job-0 ×50|job-1 ×50|job-2 ×50|job-3 ×50|job-4 ×50|job-5 ×50")
	l.do(chromedp.Focus(chromedp.CSS("#list .more-lines")))
	l.keys(kb.Enter)
	l.want(lines, "job-0 ×50|job-1 ×50|job-2 ×50|job-3 ×50|job-4 ×50|job-5 ×50|job-6 ×50|job-7 ×50|job-8 ×50|job-9 ×50|alone")
	l.do(script(`theList.search("POD-12 job-0")`))
	l.want(lines, "pod-12")
	l.do(script(`theList.search("pod-1 job-0")`), chromedp.Focus(chromedp.CSS("#list .fold")))
	l.keys(kb.Enter)
	l.want(lines, "job-0 ×11|pod-1|pod-10|pod-11|pod-12|pod-13|pod-14|pod-15|pod-16|pod-17|pod-18|pod-19")
	l.keys(kb.Enter)
	l.want(lines, "job-0 ×11")
	l.do(script(`theList.search("alone")`), chromedp.Focus(chromedp.CSS("#list .fold")))
	l.keys(kb.Enter)
	l.want(lines, "alone|more of alone")
	l.do(script(`theList.update({ ...listed, title: "pods of today" })`))
	l.want(lines, "alone|more of alone")
	l.want(`document.activeElement.opens`, "alone")
	l.do(script(`theList.filter(r => false)`))
	l.want(`document.querySelector("#list .none").hidden ? "" : "told"`, "told")
}
