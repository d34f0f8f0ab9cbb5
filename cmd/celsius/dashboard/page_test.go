package dashboard

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// look is a page in a headless browser.
type look struct {
	testing.TB
	ctx context.Context
	url string
	s   *state
}

// opened serves a state and opens its page. It skips the test if there is no browser.
func opened(t testing.TB, s *state, c cluster) look {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless-shell"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("SKIPPED: there is no chromium in PATH; make browser installs one")
	}
	h, p := here(t, s, c)
	drawing, stop := context.WithCancel(context.Background())
	go p.run(drawing)
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		stop()
		server.CloseClientConnections()
		server.Close()
	})
	o := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), o...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	l := look{t, ctx, server.URL, s}
	l.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/#key=secret"))
	l.await(`document.querySelectorAll("#queue-tree tbody tr").length > 0 && document.querySelector("#live").textContent === "live"`)
	return l
}

func (l look) do(steps ...chromedp.Action[chromedp.Void]) {
	l.Helper()
	if err := chromedp.Do(l.ctx, steps...); err != nil {
		l.Fatal(err)
	}
}

func (l look) script(js string) {
	l.Helper()
	l.do(chromedp.Evaluate[chromedp.Void](js))
}

// evaluated returns the value of a JavaScript expression.
func evaluated[T any](l look, js string) T {
	l.Helper()
	value, err := chromedp.Run(l.ctx, chromedp.Evaluate[T](js))
	if err != nil {
		l.Fatalf("%s: %v", js, err)
	}
	return value
}

func (l look) number(js string) float64 { l.Helper(); return evaluated[float64](l, js) }
func (l look) text(js string) string    { l.Helper(); return evaluated[string](l, js) }

// await waits until a condition is true in the page.
func (l look) await(js string) {
	l.Helper()
	for range 1200 {
		if evaluated[bool](l, `!!(`+js+`)`) {
			return
		}
		time.Sleep(50 * time.Millisecond) // the browser has its own clock
	}
	l.Fatalf("it does not come to hold: %s\n%s", js, l.text(`document.body.innerText.slice(0, 4000)`))
}

// shot writes a picture to the folder DASHBOARD_SHOTS. The extension of its name decides the format.
func (l look) shot(name string) {
	l.Helper()
	dir := os.Getenv("DASHBOARD_SHOTS")
	if dir == "" {
		return
	}
	as := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormat(strings.TrimPrefix(filepath.Ext(name), "."))}
	if quality := int64(60); as.Format == page.CaptureScreenshotFormatWebp {
		as.Quality = &quality
	}
	l.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		picture, err := cdp.Call(ctx, t, page.CaptureScreenshot, as)
		if err != nil {
			return chromedp.Void{}, err
		}
		return chromedp.Void{}, os.WriteFile(filepath.Join(dir, name), picture.Data, 0o644)
	})
}

func (l look) theme(name string) {
	l.Helper()
	feature := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}
	l.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: feature})
		return chromedp.Void{}, err
	})
}

func someEvents() asked {
	return asked{
		events: map[string][]corev1.Event{"team/sweep-0f3a": {{
			ObjectMeta: metav1.ObjectMeta{UID: "1"}, Reason: "Unschedulable", Message: hostile, Type: corev1.EventTypeWarning,
			LastTimestamp: metav1.NewTime(noon().Add(-time.Minute)), InvolvedObject: corev1.ObjectReference{Kind: "PodGroup", Name: "sweep-0f3a"},
		}}},
		raw: map[string]string{
			"/apis/explain.celsius.dev/v1alpha1/namespaces/team/jobs/sweep": "job team/sweep\n  waits in allocate " + hostile + "\n",
		},
	}
}

// TestPage opens the page in a browser. It checks the content, the escaping of texts, the keyboard, the widths and the themes.
func TestPage(t *testing.T) {
	t.Parallel()
	l := opened(t, aCluster(t), someEvents())
	sub := func(name string, do func(l look)) {
		t.Run(name, func(t *testing.T) { do(look{t, l.ctx, l.url, l.s}) })
	}
	sub("the key leaves the address", func(l look) {
		if got := l.text(`location.href`); strings.Contains(got, "secret") {
			l.Errorf("the address is %s", got)
		}
	})
	sub("sections", sectionsShown)
	sub("what changes arrives", changesArrive)
	sub("a job's story", jobStory)
	sub("by keyboard alone", byKeyboard)
	sub("the reader stays where they are", staysThere)
	sub("two of one name", twins)
	sub("slow answers arrive", slowAnswers)
	sub("search", searches)
	sub("user data is text", func(l look) {
		if l.number(`window.harmed ? 1 : 0`) != 0 {
			l.Error("a text of an object ran as a script")
		}
		if n := l.number(`document.querySelectorAll("main img, aside img, main script, aside script").length`); n != 0 {
			l.Errorf("%v elements were made of user data", n)
		}
	})
	sub("width and themes", fits)
	sub("a link to where policies are tried", func(l look) {
		const shown = `(a => a.offsetParent ? a.innerText + " " + new URL(a.href).pathname : "hidden")(document.querySelector("#try"))`
		if got := l.text(shown); got != "Try a policy /try/" {
			l.Errorf("the link is %s", got)
		}
	})
	sub("who brings no key is asked", asksForToken)
}

// asksForToken opens the page again without the key in the address.
func asksForToken(l look) {
	l.script(`sessionStorage.clear()`)
	l.do(chromedp.Navigate(l.url + "/?anew"))
	asked := `document.querySelector("#login").open && document.querySelector("#login-why").textContent.includes("the key is missing")`
	l.await(asked)
	l.do(chromedp.SendKeys(chromedp.CSS("#token"), "guessed"+kb.Enter))
	l.await(asked + ` && document.querySelector("#token").value === ""`)
	if n := l.number(`document.querySelectorAll("#queue-tree tr").length`); n != 0 {
		l.Errorf("%v queues are shown to who has no key", n)
	}
	l.do(chromedp.SendKeys(chromedp.CSS("#token"), "secret"+kb.Enter))
	l.await(`document.querySelectorAll("#queue-tree tbody tr").length > 0`)
	if kept := l.text(`JSON.stringify(sessionStorage) + document.cookie`); strings.Contains(kept, "secret") {
		l.Errorf("what was written is kept in %s", kept)
	}
	// The user opens the address of a restarted celsius dashboard in the same tab.
	l.do(chromedp.Navigate(l.url + "/?again"))
	l.await(asked)
	l.do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Escape))
	l.await(asked)
	l.script(`location.hash = "#key=secret"`)
	l.await(`document.querySelectorAll("#queue-tree tbody tr").length > 0 && !document.querySelector("#login").open`)
	if got := l.text(`location.href`); strings.Contains(got, "secret") {
		l.Errorf("the address is %s", got)
	}
}

// staysThere checks that the focus and the scroll position stay when the content changes, and when the reader closes something.
func staysThere(l look) {
	l.do(chromedp.EmulateViewport(1280, 400))
	defer l.do(chromedp.EmulateViewport(1280, 900))
	cores := 50
	changed := func() {
		l.Helper()
		cores++
		fill(l, l.s, aQueue("batch", "", "", fmt.Sprintf("cpu=%d", cores)))
		l.await(fmt.Sprintf(`document.querySelector("[data-key=batch] .allocated").textContent === "%d"`, cores))
	}
	there := func(what, want string) {
		l.Helper()
		const is = `[scrollY, document.activeElement.dataset.key || document.activeElement.textContent].join(" ")`
		if got := l.text(is); got != want {
			l.Errorf("%s: the reader is at %q, want %q", what, got, want)
		}
	}
	scrollTo := func(to int) string { return fmt.Sprintf(`scrollTo({top: %d, behavior: "instant"});`, to) }
	// scrolled waits for the end of a scroll, which Chromium may animate.
	scrolled := func(to int) {
		l.Helper()
		l.await(fmt.Sprint("scrollY === ", to))
	}
	fold := `{ const f = document.querySelector("[data-key=research] .fold"); f.focus({preventScroll: true}); f.click(); ` +
		scrollTo(300) + ` }`
	l.script(fold)
	scrolled(300)
	changed()
	there("a fold was clicked", "300 research")
	l.script(fold)
	l.script(`document.querySelector("[data-key=batch] a").focus({preventScroll: true}); ` + scrollTo(250) + ` location.hash = "#queue/batch"`)
	l.await(`document.querySelector("#detail-body .commands")`)
	changed()
	l.do(chromedp.KeyEvent(kb.Escape))
	l.await(`document.querySelector("#detail").hidden`)
	at := l.number(`scrollY`) // the visible part stays, although the page was this long only then
	there("a queue was closed", fmt.Sprint(at, " batch"))
	if at < 50 {
		l.Errorf("the page was scrolled to %v", at)
	}
	old := aGroup("team", "oldest", "batch", schedulingv1beta1.PodGroupPending, "", 100*time.Hour)
	fill(l, l.s, old)
	l.await(`document.querySelector("#line-table tbody a").textContent === "oldest"`)
	l.script(`document.querySelector("#line-table tbody tr:nth-child(2) a").focus({preventScroll: true}); ` + scrollTo(200))
	scrolled(200)
	l.s.drop(groupOf(old))
	l.await(`document.querySelector("#line-table tbody a").textContent === "sweep"`)
	there("a row above one went", "200 sweep")
}

// twins checks that two PodGroups of one Job stay two rows, even if the page is drawn often.
func twins(l look) {
	other := aGroup("team", "twin", "batch", schedulingv1beta1.PodGroupPending, "", 20*time.Minute)
	other.Name = "twin-2"
	fill(l, l.s, aGroup("team", "twin", "batch", schedulingv1beta1.PodGroupPending, "", 20*time.Minute), other)
	const waiting = `document.querySelector("#line-title").textContent === "Waiting jobs: %d"`
	rows := func() float64 { return l.number(`document.querySelectorAll("#line-table tbody tr").length`) }
	l.await(fmt.Sprintf(waiting, 5))
	for i := range 3 {
		more := aGroup("team", fmt.Sprint("more-", i), "batch", schedulingv1beta1.PodGroupPending, "", time.Minute)
		fill(l, l.s, more)
		l.await(fmt.Sprintf(waiting, 6))
		l.s.drop(groupOf(more))
		l.await(fmt.Sprintf(waiting, 5))
		if n := rows(); n != 5 {
			l.Errorf("5 jobs are %v rows", n)
		}
	}
	l.s.drop(groupOf(other))
	l.await(fmt.Sprintf(waiting, 4))
	if n := rows(); n != 4 {
		l.Errorf("4 jobs are %v rows", n)
	}
}

// slowAnswers checks an answer that takes longer than the time between two requests. The page must wait for it.
func slowAnswers(l look) {
	l.script(`location.hash = "#job/team/sweep"`)
	l.await(`document.querySelectorAll("#story li").length >= 5`)
	l.script(`{
		const quick = fetch;
		window.given = 0;
		window.fetch = (path, o) => path.startsWith("dashboard/job") ? new Promise((done, failed) => {
			o.signal.addEventListener("abort", () => { given++; failed(new DOMException("", "AbortError")); });
			setTimeout(() => quick(path, o).then(done, failed), 4500);
		}) : quick(path, o);
		window.quickly = () => { window.fetch = quick; };
	}`)
	for i := range 8 {
		fill(l, l.s, aPod("sweep-1", "sweep", fmt.Sprint("cpu-", i+1), "cpu=40", corev1.PodRunning, time.Hour))
		time.Sleep(time.Second) // the page asks every two seconds
	}
	shown := l.text(`document.querySelector("#pods").textContent`)
	l.script(`quickly()`)
	if n := l.number(`given`); n != 0 || !strings.Contains(shown, "cpu-") {
		l.Errorf("%v questions were given up, and the pods are %s", n, shown)
	}
	l.script(`location.hash = "#"`)
	l.await(`document.querySelector("#detail").hidden`)
}

func sectionsShown(l look) {
	const cells = `(selector, skip) => [...document.querySelectorAll(selector)].map(r => [...r.cells].filter(c => !c.matches(skip))` +
		`.map(c => c.innerText.trim()).join(" ")).join("|")`
	for _, x := range []struct{ js, want string }{
		{`document.querySelector("#cluster").textContent`, "test"},
		{`(` + cells + `)("#queue-tree tbody tr", ".bar-column")`, "root 30 –   |batch 2 40   1|research 28 24 4  1|vision 8 –   "},
		{`[...document.querySelectorAll("#line-table tbody a:not(.plain)")].map(a => a.textContent).join()`, "sweep,big"},
		{`document.querySelector("#policy-list tbody th").firstChild.textContent`, "house/no-night"},
		{`(` + cells + `)("#policy-list tbody tr:first-child", "th, [data-label=cost]")`, "predicates 3  4 1,200  9"},
		{`document.querySelector("#heat-sum").textContent`, "4 nodes have cpu: 0 at least 95 % taken, 2 idle; 1 node not ready, 1 cordoned"},
	} {
		if got := l.text(x.js); got != x.want {
			l.Errorf("%s\n is %q\nwant %q", x.js, got, x.want)
		}
	}
	const width = `(s => document.querySelector("[data-key=research] " + s).getBoundingClientRect().width)`
	held := l.number(width + `(".meter i") / ` + width + `(".meter")`)
	if want := 24.0 / 40; held < want-.01 || held > want+.01 {
		l.Errorf("what research holds of its own is %.3f of its bar, want %.3f", held, want)
	}
	l.script(`document.querySelector("#resources input[value='nvidia.com/gpu']").click()`)
	l.await(`document.querySelector("[data-key=research] .borrowed").textContent === "2"`)
	l.script(`document.querySelector("#resources input[value=cpu]").click()`)
}

// changesArrive changes the cluster while the page is open. The page must show the changes.
func changesArrive(l look) {
	fill(l, l.s, aQueue("batch", "", "", "cpu=44"), aNode("new-1", "cpu=16,memory=64Gi,pods=110"),
		aGroup("team", "late", "batch", schedulingv1beta1.PodGroupPending, "", 10*time.Minute))
	l.await(`document.querySelector("[data-key=batch] .borrowed").textContent === "4"`)
	l.await(`document.querySelector("#line-title").textContent === "Waiting jobs: 3"`)
	l.await(`document.querySelector("#heat-sum").textContent.startsWith("5 nodes")`)
	l.s.lack(kindPods, "you may not list and watch pods", time.Now())
	l.await(`document.querySelector("#gaps").innerText.includes("pods you may not list and watch pods")`)
	l.s.lack(kindPods, "", time.Now())
	l.await(`document.querySelector("#gaps").children.length === 0`)
}

// jobStory opens the address of a job and checks its story.
func jobStory(l look) {
	l.script(`location.hash = "#job/team/sweep"`)
	l.await(`document.querySelectorAll("#story li").length >= 5`)
	for _, want := range []string{
		"PodGroup made", "cannot be scheduled", "Job made", "pods made", "event Unschedulable of PodGroup sweep-0f3a", hostile,
	} {
		if got := l.text(`document.querySelector("#story").textContent`); !strings.Contains(got, want) {
			l.Errorf("%q is not in the story %q", want, got)
		}
	}
	if got := l.text(`document.querySelector(".commands").textContent`); !strings.Contains(got, "celsius explain job sweep -n team") {
		l.Errorf("commands are %q", got)
	}
	l.script(`[...document.querySelectorAll("#detail button")].find(b => b.textContent.startsWith("Why")).click()`)
	l.await(`document.querySelector(".explain").textContent.includes("waits in allocate </script>")`)
	fill(l, l.s, aPod("sweep-1", "sweep", "cpu-1", "cpu=40", corev1.PodRunning, time.Hour))
	l.await(`document.querySelector("#pods").textContent.includes("cpu-1")`)
	l.script(`location.hash = "#job/team/none"`)
	l.await(`document.querySelector("#detail-body").textContent.includes("there is no job of that name")`)
	l.script(`location.hash = "#"`)
	l.await(`document.querySelector("#detail").hidden`)
}

// byKeyboard uses the page without a mouse.
func byKeyboard(l look) {
	press := func(keys ...string) {
		for _, key := range keys {
			l.do(chromedp.KeyEvent(key))
		}
	}
	focused := func(want string) {
		l.Helper()
		if got := l.text(`(e => e.id || e.dataset.key || e.parentElement.className)(document.activeElement)`); got != want {
			l.Errorf("the focus is on %q, want %q", got, want)
		}
	}
	l.script(`document.activeElement.blur()`)
	press("/")
	focused("search")
	press(kb.Escape)
	l.script(`document.querySelector("#queue-tree tbody tr[tabindex='0']").focus()`)
	press(kb.ArrowDown, kb.ArrowDown, kb.ArrowUp)
	focused("batch")
	press(kb.Enter)
	l.await(`document.querySelector("#detail-title").textContent === "Queue batch" && document.activeElement.id === "detail-title"`)
	press(kb.Escape)
	l.await(`document.querySelector("#detail").hidden`)
	focused("batch")
	l.script(`document.querySelector("#heat canvas").focus()`)
	press(kb.Home)
	if got := l.text(`document.querySelector("#heat output").textContent`); !strings.HasPrefix(got, "cpu-1: ready; taken are cpu ") {
		l.Errorf("told is %q", got)
	}
	press(kb.ArrowRight, kb.ArrowRight)
	if got := l.text(`document.querySelector("#heat output").textContent`); !strings.HasPrefix(got, "cpu-3: not ready") {
		l.Errorf("told is %q", got)
	}
	press(kb.Enter)
	l.await(`document.querySelector("#node-says")?.textContent.startsWith("Not ready: kubelet stopped </script>")`)
	press(kb.Escape)
	l.await(`document.querySelector("#detail").hidden`)
	focused("heat")
	// The Tab key reaches everything. It takes one step to pass each list.
	l.script(`document.activeElement.blur(); window.scrollTo(0, 0)`)
	var way []string
	for range 40 {
		press(kb.Tab)
		way = append(way, l.text(`(e => e.id || e.className || e.tagName)(document.activeElement)`))
	}
	joined := strings.Join(way, " ")
	for _, id := range []string{"search", "TR", "CANVAS", "node-order", "rows-all"} {
		if strings.Count(" "+joined+" ", " "+id+" ") < 1 {
			l.Errorf("by Tab one does not come to %s: %s", id, joined)
		}
	}
}

// searches finds a pod and opens its job.
func searches(l look) {
	l.script(`document.activeElement.blur()`)
	l.do(chromedp.KeyEvent("/"), chromedp.SendKeys(chromedp.CSS("#search"), "train-1"))
	l.await(`document.querySelector("#results a")?.textContent.startsWith("pod team/train-1")`)
	l.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	l.await(`document.querySelector("#detail-title").textContent === "Job team/train"`)
	l.do(chromedp.KeyEvent(kb.Escape))
	l.await(`document.querySelector("#detail").hidden`)
}

// fits measures the page at the width of a phone and of a desktop, in both themes. It does so with nothing open, and with an open object of
// each kind.
func fits(l look) {
	for _, width := range []int64{360, 1280} {
		for _, theme := range []string{"light", "dark"} {
			l.theme(theme)
			l.do(chromedp.EmulateViewport(width, 900))
			for _, hash := range []string{"", "job/team/sweep", "queue/research", "node/gpu-1"} {
				l.script(`location.hash = "#` + hash + `"`)
				if hash != "" {
					l.await(`document.querySelector("#detail-body .commands")`)
				}
				if n := l.number(`Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)`); n > float64(width) {
					l.Errorf("%s at %d: the page is %v wide with %q open", theme, width, n, hash)
				}
				out := l.text(`[...document.querySelectorAll("body *")].filter(e => e.offsetParent && !e.closest(".wide, .skip, .out, #resources") ` +
					`&& e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 90)).slice(0, 3).join("\n")`)
				if out != "" {
					l.Errorf("%s at %d: beyond the edge with %q open:\n%s", theme, width, hash, out)
				}
				l.shot(theme + "-" + map[int64]string{360: "phone", 1280: "desk"}[width] + "-" + strings.ReplaceAll(hash, "/", "-") + ".png")
			}
			if contrast := l.number(contrastOfText); contrast < 4.5 {
				l.Errorf("%s: the contrast of the text is %.1f, want 4.5", theme, contrast)
			}
		}
	}
}

// TestManyInABrowser shows 10,000 nodes and 50,000 pods while 500 pods change each second. It limits the number of elements in the page. It
// only prints how long the page is busy, because this depends on the machine.
func TestManyInABrowser(t *testing.T) {
	const nodes, pods, seconds = 10000, 50000, 8
	s := many(t, nodes, pods)
	past := &picture{}
	for i := range 120 { // the last ten minutes
		fill(t, s, manyQueue(9, 400+5*i+90*(i/17%3)))
		past, _ = drawn(t, s, past, time.Now().Add(-time.Duration(120-i)*sampleEvery))
	}
	l := opened(t, s, asked{})
	l.script(`window.busy = []; new PerformanceObserver(l => busy.push(...l.getEntries().map(e => e.duration))).observe({type: "longtask"})`)
	before := l.scripts()
	for i := range seconds {
		for j := range 50 {
			for n := range 10 {
				fill(t, s, manyPod(j, n, nodes, i%2 == 0))
			}
		}
		fill(t, s, manyQueue(9, 1000+20*i))
		l.await(`document.querySelector("[data-key=queue-09] .allocated").textContent === "` + fmtCount(1000+20*i) + `"`)
	}
	work := l.scripts() - before
	if n := l.number(`document.querySelectorAll("*").length`); n > 5000 {
		t.Errorf("the page holds %v elements", n)
	}
	t.Logf("scripts are at work for %.0f ms of an update; tasks of more than 50 ms in %d updates: %s ms", 1000*work/seconds, seconds,
		l.text(`busy.map(Math.round).join(", ") || "none"`))
	if os.Getenv("DASHBOARD_SHOTS") == "" {
		return
	}
	// The jobs wait at noon of another day, so the page gets a clock of that day.
	l.script(fmt.Sprintf(`{ const now = Date.now, ago = now() - %d; Date.now = () => now() - ago; }`, noon().UnixMilli()))
	l.script(`location.hash = "#queue/queue-09"`)
	l.await(`document.querySelector("#curve svg")`)
	l.do(chromedp.EmulateViewport(1700, 1330, chromedp.EmulateScale(.8)))
	time.Sleep(6 * time.Second) // the page writes the ages every five seconds
	l.shot("dashboard.webp")    // the README shows this picture
	l.shot("many.png")
	l.theme("dark")
	l.shot("many-dark.png")
}

// scripts returns for how many seconds the page ran scripts and computed its layout, by the clock of their thread.
func (l look) scripts() (seconds float64) {
	l.Helper()
	l.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		clock := performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}
		if _, err := cdp.Call(ctx, t, performance.Enable, clock); err != nil {
			return chromedp.Void{}, err
		}
		out, err := cdp.Call(ctx, t, performance.GetMetrics, cdp.Empty{})
		for _, m := range out.Metrics {
			if m.Name == "TaskDuration" {
				seconds = m.Value
			}
		}
		return chromedp.Void{}, err
	})
	return seconds
}

func fmtCount(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return strconv.Itoa(n/1000) + "," + fmt.Sprintf("%03d", n%1000)
}

// contrastOfText returns the lowest contrast (WCAG 2.2, 1.4.3) between some texts and the background of the cards.
const contrastOfText = `(() => {
	const channel = v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
	const light = c => {
		const [r, g, b] = c.match(/[\d.]+/g).map(Number);
		return .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
	};
	const ground = light(getComputedStyle(document.querySelector(".card")).backgroundColor);
	return Math.min(...["main", ".soft", "main .bad", "nav a", "td.why"].map(s => {
		const text = light(getComputedStyle(document.querySelector(s)).color);
		return (Math.max(text, ground) + .05) / (Math.min(text, ground) + .05);
	}));
})()`
