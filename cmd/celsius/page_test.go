package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/celsius-scheduler/celsius/engine/sim"
)

// pageWorld contains everything that could break a page: many pods on a node, GPUs, a failure, a pod of another scheduler, and a pod that
// waits forever. It also contains long names without a place to break the line, and texts that are HTML.
const pageWorld = `apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes:
- {name: "cpu-[1-2]", cpu: 16, memory: 64Gi}
- {name: gpu-1, cpu: 32, memory: 256Gi, gpus: 4}
- {name: a-node-with-quite-a-long-name-in-eu-central-1b.compute.internal, ready: false}
queues:
- {name: batch, weight: 1}
- {name: research, weight: 3}
jobs:
- {name: etl, queue: batch, replicas: 4, min: 1, cpu: 6, run: 10m}
- {name: train, queue: research, replicas: 2, cpu: 12, gpus: 2, run: 20m}
- {name: sweep, queue: research, replicas: 14, min: 1, cpu: 1, run: 4m, comes: 2m}
- {name: fails, queue: batch, cpu: 1, run: 3m, exitCode: 1, comes: 12m}
- {name: too-big, queue: research, cpu: 64}
pods:
- {name: web, scheduler: other, node: cpu-1, cpu: 2}
`

// hostilePolicy contains messages that would be HTML and scripts if the page did not escape them. The same holds for the condition of a
// queue.
const hostilePolicy = `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: hostile}
spec:
  pipeline: [enqueue, allocate]
  tiers:
  - name: first
    tables:
    - {name: gang}
    - name: house
      inline:
        predicates:
        - name: never
          when: job.name == 'too-big'
          expression: "false"
          message: "</script><script>window.harmed = 1</script><img src=x onerror='window.harmed = 1'> {{job.annotations['x']}}"
    - {name: predicates}
    - {name: proportion}
    - {name: nodeorder}
`

// browser starts a headless browser. It skips the test if there is no browser.
func browser(t *testing.T) context.Context {
	t.Helper()
	return started(t, browserPath(t), time.Minute)
}

// browserPath returns the path of a browser. It skips the test if there is no browser.
func browserPath(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless-shell"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	t.Skip("SKIPPED: there is no chromium in PATH; make browser installs one")
	return ""
}

// started starts a browser. The browser stops when the test ends or when the time within is over.
func started(t *testing.T, path string, within time.Duration) context.Context {
	t.Helper()
	o := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), o...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, within)
	t.Cleanup(cancel)
	return ctx
}

// look is a page in a browser.
type look struct {
	t   *testing.T
	ctx context.Context
}

func (l look) do(steps ...chromedp.Action[chromedp.Void]) {
	l.t.Helper()
	if err := chromedp.Do(l.ctx, steps...); err != nil {
		l.t.Fatal(err)
	}
}

// evaluated returns the value of a JavaScript expression.
func evaluated[T any](l look, js string) T {
	l.t.Helper()
	value, err := chromedp.Run(l.ctx, chromedp.Evaluate[T](js))
	if err != nil {
		l.t.Fatalf("%s: %v", js, err)
	}
	return value
}

func script(js string) chromedp.Action[chromedp.Void] { return chromedp.Evaluate[chromedp.Void](js) }

func (l look) number(js string) float64 {
	l.t.Helper()
	return evaluated[float64](l, js)
}

func (l look) text(js string) string {
	l.t.Helper()
	return evaluated[string](l, js)
}

// openPage simulates the world and opens the page. It also returns the report of the same run.
func openPage(t *testing.T) (look, sim.Report) {
	t.Helper()
	world := strings.Replace(pageWorld, "name: too-big,", `name: too-big, annotations: {x: "<b>&\"'</b>"},`, 1)
	dir := files(t, map[string]string{"world.yaml": world, "policy.yaml": hostilePolicy})
	page := filepath.Join(dir, "page.html")
	common := []string{
		"simulate", "--now", "2026-03-02T10:00:00Z", "--until", "30m", filepath.Join(dir, "world.yaml"),
		filepath.Join(dir, "policy.yaml"),
	}
	var out, errs bytes.Buffer
	if code := run(append(common, "-o", "html", "--to", page), nil, &out, &errs); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	if code := run(append(common, "-o", "json"), nil, &out, &errs); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	var report sim.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	l := look{t, browser(t)}
	l.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate("file://"+page))
	if n := l.number(`performance.getEntriesByType("resource").length`); n != 0 {
		t.Errorf("the page loads %v other things", n)
	}
	return l, report
}

// visible returns JavaScript that counts the visible elements of a selector.
func visible(selector string) string {
	return `[...document.querySelectorAll(` + "`" + selector + "`" + `)].filter(e => e.offsetParent !== null).length`
}

// TestPage loads the page in a browser. It searches, filters, uses the keyboard, and measures the chart.
func TestPage(t *testing.T) {
	t.Parallel()
	l, report := openPage(t)
	t.Run("user data is text", func(t *testing.T) {
		l := look{t, l.ctx}
		if l.number(`window.harmed ? 1 : 0`) != 0 {
			t.Error("a message of a policy ran as a script")
		}
		if n := l.number(`document.querySelectorAll("main img, main b, main script").length`); n != 0 {
			t.Errorf("%v elements were made of user data", n)
		}
		const asWritten = `<img src=x onerror='window.harmed = 1'> <b>&"'</b>`
		if got := l.text(`document.querySelector("#decisions").textContent`); !strings.Contains(got, asWritten) {
			t.Error("the message is not shown as it is")
		}
	})
	t.Run("bars stand where the plan says", func(t *testing.T) { barsStand(look{t, l.ctx}, report) })
	t.Run("bars tell how pods fared", func(t *testing.T) { barsTell(look{t, l.ctx}) })
	t.Run("search and filters", func(t *testing.T) { searchAndFilter(look{t, l.ctx}, report) })
	t.Run("use over time", func(t *testing.T) { useRead(look{t, l.ctx}, report) })
	t.Run("what became of jobs", func(t *testing.T) {
		const kinds = `[...document.querySelectorAll("#jobs tr[data-job]")].map(r => r.dataset.job + " " + r.cells[1].textContent).join("; ")`
		look{t, l.ctx}.want(kinds, "default/etl succeeded; default/too-big waiting; default/train succeeded; default/sweep succeeded; "+
			"default/fails failed, 1 of 1 pod")
	})
	t.Run("keyboard", func(t *testing.T) { byKeyboard(look{t, l.ctx}) })
	t.Run("width and themes", func(t *testing.T) { fits(look{t, l.ctx}) })
}

// barsStand compares the positions of the bars with the times in the report. A bar stands for one or more pods.
func barsStand(l look, report sim.Report) {
	const measure = `Object.fromEntries([...document.querySelectorAll(".lanes:not([hidden]) button.bar:not(.queued)")].flatMap(b => {
		const t = b.parentElement.getBoundingClientRect(), r = b.getBoundingClientRect();
		const box = [(r.left - t.left) / t.width, (r.right - t.left) / t.width, (r.top - t.top) / t.height];
		return b.of.pods.map(p => [p.pod, box]);
	}))`
	for _, view := range []string{"nodes", "jobs"} {
		l.do(chromedp.Click(chromedp.CSS(`[data-view=` + view + `]`)))
		bars := evaluated[map[string][3]float64](l, measure) // by pod: left, right, top as fractions of the track
		want, span := 0, report.Timeline.To.Sub(report.Timeline.From).Seconds()
		for _, p := range report.Timeline.Pods {
			if p.Bound == nil || view == "jobs" && p.Job == "" {
				continue
			}
			want++
			end := report.Timeline.To
			if p.Ended != nil {
				end = *p.Ended
			}
			left, right := p.Bound.Sub(report.Timeline.From).Seconds()/span, end.Sub(report.Timeline.From).Seconds()/span
			got, ok := bars[p.Pod]
			if !ok || math.Abs(got[0]-left) > .005 || math.Abs(got[1]-right) > .005 || got[2] < 0 || got[2] > 1 {
				l.t.Errorf("by %s: the bar of %s is from %.3f to %.3f, want %.3f to %.3f", view, p.Pod, got[0], got[1], left, right)
			}
		}
		if len(bars) != want || want < 20 {
			l.t.Errorf("by %s: %d bars, want %d", view, len(bars), want)
		}
		noneCovered(l, view)
	}
	l.do(chromedp.Click(chromedp.CSS(`[data-view=nodes]`)))
}

// barsTell checks a bar that failed, the heights of bars, and the bar of a pod that has no node.
func barsTell(l look) {
	failed := l.text(`(b => b.className + b.textContent)(document.querySelector(".bar[data-pod='default/fails-0']:not(.queued)"))`)
	if !strings.Contains(failed, "Failed") || !strings.Contains(failed, "\u2715") {
		l.t.Errorf("the pod that failed looks like any other: %s", failed)
	}
	// A pod of train asks for 12 cores and 2 GPUs, which is half of the devices of the largest node. A pod of sweep asks for 1 of 32 cores.
	const height = `(b => b.height / b.pods.length)` +
		`(document.querySelector(".lanes:not([hidden]) .bar[data-pod^='default/%s-']:not(.queued)").of)`
	if train, sweep := l.number(fmt.Sprintf(height, "train")), l.number(fmt.Sprintf(height, "sweep")); train < 4*sweep {
		l.t.Errorf("the bar of a pod of train is %v high, that of one of sweep %v", train, sweep)
	}
	l.do(chromedp.Click(chromedp.CSS(`[data-lane="nowhere yet"] .bar[data-pod='default/too-big-0']`)))
	if got := l.text(`document.querySelector("#detail").textContent`); !strings.Contains(got, "too-big-0, queue research, cpu 64") ||
		!strings.Contains(got, "waits since 0s, nowhere yet") {
		l.t.Errorf("of the pod that is nowhere yet is told %q", got)
	}
}

// noneCovered fails if a bar covers another bar.
func noneCovered(l look, view string) {
	l.t.Helper()
	const overlaps = `[...document.querySelectorAll(".lanes:not([hidden]) .track")].reduce((n, t) => {
		const r = [...t.querySelectorAll("button.bar")].map(b => b.getBoundingClientRect());
		return n + r.filter((a, i) => r.some((b, j) =>
			j > i && a.left < b.right - 4 && b.left < a.right - 4 && a.top < b.bottom && b.top < a.bottom)).length;
	}, 0)`
	if n := l.number(overlaps); n != 0 {
		l.t.Errorf("by %s: %v bars cover others", view, n)
	}
}

// shownLanes is JavaScript that returns the names of the visible lanes.
const shownLanes = `[...document.querySelectorAll(".lanes:not([hidden]) .lane:not([hidden])")].map(e => e.dataset.lane).join()`

// searchAndFilter searches for one pod and for a row, and filters by one kind of decision.
func searchAndFilter(l look, report sim.Report) {
	lines := visible("#decisions tr[data-verb]")
	all := l.number(lines)
	if all < 15 {
		l.t.Errorf("only %v lines are shown", all)
	}
	l.do(chromedp.SendKeys(chromedp.CSS("#search"), "etl-3"))
	if n := l.number(lines); n < 1 || n >= all {
		l.t.Errorf("%v of %v lines are about etl-3", n, all)
	}
	if got := strings.TrimPrefix(l.text(shownLanes), "nowhere yet,"); strings.Contains(got, ",") || !strings.HasPrefix(got, "cpu-") {
		l.t.Errorf("etl-3 is in the lanes %s", got)
	}
	if n := l.number(visible("#nodes tr[data-node]")); n != 0 {
		l.t.Errorf("%v nodes are called etl-3", n)
	}
	l.do(chromedp.SendKeys(chromedp.CSS("#search"), "-none"))
	if l.number(lines) != 0 || l.number(visible("#decisions .none")) != 1 {
		l.t.Error("that nothing is found is not told")
	}
	l.do(chromedp.SendKeys(chromedp.CSS("#search"), kb.Escape))
	if n := l.number(lines); n != all {
		l.t.Errorf("%v of %v lines are back after Esc", n, all)
	}
	l.do(chromedp.SendKeys(chromedp.CSS("#search"), "house/never"))
	if n := l.number(lines); n < 1 || n != l.number(visible("#decisions tr[data-verb=wait]")) {
		l.t.Errorf("%v lines are of the row house/never, all of them waits", n)
	}
	l.do(chromedp.SendKeys(chromedp.CSS("#search"), kb.Escape))
	l.do(chromedp.SendKeys(chromedp.CSS("#search"), "too-big nowhere"))
	l.want(shownLanes, "nowhere yet")
	l.do(chromedp.SendKeys(chromedp.CSS("#search"), kb.Escape))
	filters(l, lines)
	for _, q := range report.Summary.Queues {
		if q.Queue == "research" && q.Computed["deserved"] == "" {
			l.t.Error("what research deserves is not in the report")
		}
	}
}

// filters shows one kind of decision, and one queue. Then it opens the details below a line.
func filters(l look, lines string) {
	l.do(chromedp.Click(chromedp.CSS(".chip[data-verb=bind]")))
	if n := l.number(lines); n < 1 || n != l.number(visible("#decisions tr[data-verb=bind]")) {
		l.t.Errorf("%v lines, want binds alone", n)
	}
	l.do(chromedp.SetValue(chromedp.CSS("#queue"), "batch"), script(`document.querySelector("#queue").dispatchEvent(new Event("change"))`))
	if n := l.number(lines); n < 1 || n != l.number(visible("#decisions tr[data-verb=bind][data-queue=batch]")) {
		l.t.Errorf("%v lines, want binds of batch alone", n)
	}
	l.do(chromedp.SetValue(chromedp.CSS("#queue"), ""), chromedp.Click(chromedp.CSS(".chip[data-verb=bind]")))
	l.do(script(`document.querySelector("#queue").dispatchEvent(new Event("change"))`))
	l.do(script(`[...document.querySelectorAll("#decisions tr[data-verb=wait]")].filter(r => r.textContent.includes("never")).pop()` +
		`.querySelector(".fold").focus()`))
	l.keys(kb.Enter)
	if got := l.text(`document.querySelector("#decisions .below .more").innerText`); !strings.Contains(got, "house/never") ||
		!strings.Contains(got, "3") {
		l.t.Errorf("below a wait are the rows, and on how many nodes: %q", got)
	}
	groups(l)
}

// groups opens a line that stands for several pods of a job with the same result.
func groups(l look) {
	const sweep = `[...document.querySelectorAll("#decisions tr[data-verb=bind]")].filter(r => r.dataset.what.startsWith("default/sweep-"))`
	closed := l.number(sweep + `.length`)
	if got := l.text(sweep + `.map(r => r.querySelector(".count")?.textContent).join()`); !strings.Contains(got, "×") {
		l.t.Errorf("none of the %v lines of sweep has a count", closed)
	}
	l.do(script(`window.first = ` + sweep + `.find(r => r.querySelector(".count")); first.querySelector(".fold").click()`))
	opened, counted := l.number(sweep+`.length`), l.number(`Number(first.querySelector(".count").textContent.slice(1))`)
	if opened != closed+counted || counted < 2 {
		l.t.Errorf("a line that counts %v opens %v more", counted, opened-closed)
	}
}

// useRead compares the text of a curve with the report, and the report with the jobs of the world. The world has 64 cores and runs for 30
// minutes: etl uses 24 cores for 10 minutes, train 24 for 20, sweep 14 for 4, fails 1 for 3, and web 2 all the time.
func useRead(l look, report sim.Report) {
	for _, u := range report.Timeline.Use {
		if u.Queue != "" || u.Resource != "cpu" {
			continue
		}
		if mean := 100 * ((24*10+24*20+14*4+1*3)/30. + 2) / 64; math.Abs(u.MeanPercent-mean) > .2 {
			l.t.Errorf("the mean use of cpu is %v %%, want %.1f", u.MeanPercent, mean)
		}
		l.want(`document.querySelector("#use-cluster h3").textContent + document.querySelector("#use-cluster .head-line .soft").textContent`,
			fmt.Sprintf("cpumean %s (%g %%), peak %s (%g %%)", u.Mean, u.MeanPercent, u.Peak, u.PeakPercent))
	}
	l.do(chromedp.Focus(chromedp.CSS("#use-cluster .plot")))
	l.keys(kb.End)
	l.want(`document.querySelector("#use-cluster .plot").getAttribute("aria-valuetext").replace(/, mean.*/, "")`, "+30m, in use 2, total 64")
	l.want(`[...document.querySelectorAll("#use-queues h3")].map(e => e.textContent).join()`, "batch,research")
}

// byKeyboard goes to the search with the key /, and moves through the chart with the arrow keys.
func byKeyboard(l look) {
	l.do(script(`document.activeElement.blur()`), chromedp.KeyEvent("/"))
	if got := l.text(`document.activeElement.id`); got != "search" {
		l.t.Errorf("/ goes to %q", got)
	}
	l.do(chromedp.KeyEvent(kb.Escape), chromedp.Focus(chromedp.CSS(`.lanes:not([hidden]) .bar[tabindex="0"]`)))
	seen := map[string]bool{}
	for _, key := range []string{kb.ArrowRight, kb.ArrowRight, kb.ArrowDown, kb.ArrowUp} {
		l.do(chromedp.KeyEvent(key))
		seen[l.text(`document.activeElement.dataset.pod`)] = true
		if told, title := l.text(`document.querySelector("#detail p").textContent`), l.text(`document.activeElement.title`); told != title ||
			told == "" {
			l.t.Errorf("told is %q of %q", told, title)
		}
	}
	if len(seen) < 3 {
		l.t.Errorf("the arrows went to %v", seen)
	}
}

// fits measures the page at the width of a phone and of a desktop, in both themes. If PAGE_SHOTS is set, it writes pictures to that folder.
func fits(l look) {
	l.do(script(`document.querySelectorAll("details").forEach(d => d.open = true)`))
	for _, width := range []int64{360, 1280} {
		for _, theme := range []string{"light", "dark"} {
			l.do(chromedp.EmulateViewport(width, 900))
			l.theme(theme)
			for _, view := range []string{"nodes", "jobs"} {
				l.do(chromedp.Click(chromedp.CSS(`[data-view=` + view + `]`)))
				if n := l.number(`document.documentElement.scrollWidth`); n > float64(width) {
					l.t.Errorf("%s at %d: the page is %v wide", view, width, n)
				}
				out := l.text(`[...document.querySelectorAll("body *")].filter(e => e.offsetParent && ` +
					`!e.closest(".skip, nav, .axis, .bar, .times") && e.getBoundingClientRect().right > innerWidth + 1)` +
					`.map(e => e.outerHTML.slice(0, 90)).slice(0, 3).join("\n")`)
				if out != "" {
					l.t.Errorf("%s at %d: beyond the edge:\n%s", view, width, out)
				}
			}
			if contrast := l.number(contrastOfText); contrast < 4.5 {
				l.t.Errorf("%s: the contrast of the text is %.1f, want 4.5", theme, contrast)
			}
			if dir := os.Getenv("PAGE_SHOTS"); dir != "" {
				picture, err := chromedp.Run(l.ctx, chromedp.FullScreenshot(100))
				if err != nil {
					l.t.Fatal(err)
				}
				name := theme + "-" + map[int64]string{360: "phone", 1280: "desk"}[width] + ".png"
				if err := os.WriteFile(filepath.Join(dir, name), picture, 0o644); err != nil {
					l.t.Fatal(err)
				}
			}
		}
	}
}

// contrastOfText returns the lowest contrast (WCAG 2.2, 1.4.3) between some texts and the background of the cards.
const contrastOfText = `(() => {
	const channel = v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
	const light = c => {
		const [r, g, b] = c.match(/[\d.]+/g).map(Number);
		return .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
	};
	const ground = light(getComputedStyle(document.querySelector("#decisions .card")).backgroundColor);
	return Math.min(...["main", ".soft", ".state.good", ".state.wait", ".state.bad", "nav a"].map(s => {
		const text = light(getComputedStyle(document.querySelector(s)).color);
		return (Math.max(text, ground) + .05) / (Math.min(text, ground) + .05);
	}));
})()`

// TestPageOfManyJobs makes the page of 300 jobs with 3,000 pods, which is more than the world has room for. The page must be smaller than 3
// MB, and a browser must show it quickly.
func TestPageOfManyJobs(t *testing.T) {
	t.Parallel()
	var world strings.Builder
	world.WriteString(`apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes:
- {name: "cpu-[1-40]", cpu: 64, memory: 256Gi}
- {name: "gpu-[1-20]", cpu: 96, memory: 512Gi, gpus: 8}
queues: [{name: batch}, {name: research, weight: 3}, {name: prod, weight: 4}, {name: adhoc}]
jobs:
`)
	pods := 0
	for i := range 300 {
		replicas, gpus := []int{1, 1, 2, 4, 4, 8, 8, 8, 16, 48}[i*7%10], []int{0, 0, 0, 1, 1, 2, 4, 8}[i*5%8]
		pods += replicas
		fmt.Fprintf(&world, "- {name: job-%d, queue: %s, replicas: %d, min: %d, cpu: %d, memory: %dGi, gpus: %d, run: %dm, comes: %ds, "+
			"exitCode: %d}\n", i, []string{"batch", "research", "prod", "adhoc"}[i%4], replicas, []int{1, replicas}[i%2], 2+4*gpus, 4+8*gpus, gpus,
			[]int{5, 10, 20, 30, 60}[i*3%5], i*13%60*60, map[bool]int{true: 1}[i%20 == 0])
	}
	dir := files(t, map[string]string{"world.yaml": world.String()})
	page := filepath.Join(dir, "page.html")
	var out, errs bytes.Buffer
	if code := run([]string{
		"simulate", "--now", "2026-03-02T10:00:00Z", "--until", "2h", "-o", "html", "--to", page, filepath.Join(dir, "world.yaml"),
	}, nil, &out, &errs); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	info, err := os.Stat(page)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d pods: %d bytes", pods, info.Size())
	if info.Size() >= 3e6 || pods < 2500 {
		t.Errorf("the page of %d pods has %d bytes, want less than 3 MB", pods, info.Size())
	}
	l := look{t, browser(t)}
	l.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate("file://"+page))
	const loaded = `performance.getEntriesByType("navigation")[0].domComplete`
	if took := l.number(loaded); took > 15_000 {
		t.Errorf("the page is there after %.0f ms", took)
	}
	if n := l.number(`document.querySelectorAll("*").length`); n > 30_000 {
		t.Errorf("the page has %v elements", n)
	}
	l.want(`String(document.querySelectorAll("#jobs tr[data-job]").length)`, "50") // Show more shows the others
	if got := l.text(`document.querySelector("#jobs .more-lines").textContent`); got != "Show more (250 of 300 lines)" {
		t.Errorf("of the other jobs is told %q", got)
	}
}
