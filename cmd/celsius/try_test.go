package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	site "github.com/celsius-scheduler/celsius/cmd/celsius/try"
	"github.com/celsius-scheduler/celsius/engine/try"
)

// trialNow is the start time of examples that do not state one.
const trialNow = "2026-03-02T10:00:00Z"

// quickly is the compression quality for tests. With site.Best, the program is 15 % smaller, but the compression takes ten times as long.
const quickly = 9

// mostCompressed is the largest allowed size of the program with this quality. A browser loads at most 6 MB of the published page.
const mostCompressed = 7_050_000

func examples(t *testing.T) []site.Example {
	t.Helper()
	out, err := site.Examples(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// questionOf returns the question that the page asks about an example.
func questionOf(e site.Example) try.Question {
	q := try.Question{Policy: e.Policy, World: e.World, Cycles: e.Cycles, Until: e.Until, Now: e.Now}
	if q.Now == "" {
		q.Now = trialNow
	}
	return q
}

// TestTryExamples asks the question of the page for every example. It compares the answers with the output of celsius simulate, and with
// the documents.
func TestTryExamples(t *testing.T) {
	shown, scenarios := 0, 0
	all := examples(t)
	for _, e := range all {
		t.Run(e.Group+"/"+e.Name, func(t *testing.T) {
			q := questionOf(e)
			a := try.Ask(q, time.Time{})
			if a.Error != "" || len(a.Issues) > 0 || a.Differs != "" {
				t.Fatalf("error %q, issues %v, differs %s", a.Error, a.Issues, a.Differs)
			}
			if a.Scenario {
				scenarios++
				return // the scenario itself contains the expected output
			}
			t.Chdir(t.TempDir())
			args := argumentsOf(t, &q)
			if diff := cmp.Diff(simulated(t, args), a.Plan); diff != "" {
				t.Errorf("the plan is another (- celsius simulate, + the page)\n%s", diff)
			}
			if diff := cmp.Diff(simulated(t, append(args, "--explain", "all")), a.Reasons); diff != "" {
				t.Errorf("the reasons are others (- celsius simulate, + the page)\n%s", diff)
			}
			if e.Shown == "" {
				return
			}
			shown++
			want, got := e.Shown, a.Plan
			if strings.HasPrefix(want, "policy ") { // the first line names the policy and its file, which differs here
				_, want, _ = strings.Cut(want, "\n")
				_, got, _ = strings.Cut(got, "\n")
			}
			if !prints(strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")) {
				t.Errorf("%s shows otherwise (-)\n%s", e.Group, cmp.Diff(want, got))
			}
		})
	}
	if shown < 10 || scenarios < 5 || len(all) < 25 {
		t.Errorf("%d examples, %d with what a document shows, %d scenarios: they are no longer found", len(all), shown, scenarios)
	}
}

// argumentsOf returns the arguments of celsius simulate for the same question, with files in the working directory.
func argumentsOf(t *testing.T, q *try.Question) []string {
	t.Helper()
	args := []string{"simulate", "--now", q.Now}
	if q.Until != "" {
		args = append(args, "--until", q.Until)
	}
	if q.Cycles > 0 {
		args = append(args, "--cycles", strconv.Itoa(q.Cycles))
	}
	for name, text := range map[string]string{try.PolicyFile: q.Policy, try.WorldFile: q.World} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, name)
	}
	return args
}

func simulated(t *testing.T, args []string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(args, nil, &out, &errs); code != exitOK || errs.Len() > 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, &errs)
	}
	return out.String()
}

// tryFolder returns the folder of the page. It stays between runs, because it would take minutes to compress an unchanged program again.
func tryFolder(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "celsius-tests", "web")
	if err := site.Build(t.Context(), "../..", dir, quickly); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "celsius.wasm.br"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the program is %.2f MB compressed", float64(info.Size())/1e6)
	if info.Size() > mostCompressed {
		t.Errorf("the program is %d bytes compressed, more than %d", info.Size(), mostCompressed)
	}
	return dir
}

// TestTryPage loads the page in a browser, edits a policy, makes a mistake, and runs some of the examples.
func TestTryPage(t *testing.T) {
	t.Parallel()
	found := browserPath(t)
	dir := tryFolder(t)
	server := httptest.NewServer(site.Handler(os.DirFS(dir)))
	t.Cleanup(server.Close)
	l := look{t, started(t, found, 4*time.Minute)}
	began := time.Now()
	l.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL))
	l.answered("done")
	t.Logf("the first answer was there after %s", time.Since(began).Round(10*time.Millisecond))
	if got := l.text(`document.querySelector("#out").textContent`); !strings.Contains(got, "DECISION") || !strings.Contains(got, "bind") {
		t.Errorf("the first answer is %q", got)
	}
	t.Run("a policy is edited", func(t *testing.T) { editPolicy(look{t, l.ctx}) })
	t.Run("a mistake has its place", func(t *testing.T) { mistakeHasPlace(look{t, l.ctx}) })
	t.Run("the same bytes", func(t *testing.T) { sameInBrowser(look{t, l.ctx}, examples(t)) })
	t.Run("user data is text", func(t *testing.T) { tryIsText(look{t, l.ctx}) })
	t.Run("a link holds it all", func(t *testing.T) { linkHolds(look{t, l.ctx}) })
	t.Run("a link in the same tab", func(t *testing.T) { linkInTab(look{t, l.ctx}) })
	t.Run("numbers that are none", func(t *testing.T) { noNumbers(look{t, l.ctx}) })
	t.Run("a program that broke", func(t *testing.T) { breaks(look{t, l.ctx}) })
	t.Run("width and themes", func(t *testing.T) { tryFits(look{t, l.ctx}) })
}

// linkInTab opens a link in a tab that already shows the page. Then it opens a link that is cut off.
func linkInTab(l look) {
	hash := l.text(`location.hash`)
	l.write("world", strings.Replace(trialWorld, "small", "other", 1))
	l.answered("done")
	l.do(script(`location.hash = ""; document.querySelector("#state").textContent = "opened"; location.hash = ` + strconv.Quote(hash)))
	l.answered("done")
	l.want(`document.querySelector("#world").value`, trialWorld)
	l.do(script(`location.hash = ` + strconv.Quote(hash[:len(hash)-20])))
	l.awaits(`document.querySelector("#about").textContent`, "The link is not whole, so what was there is shown.")
	l.want(`document.querySelector("#world").value`, trialWorld)
}

// noNumbers enters invalid numbers of cycles, and then a valid one.
func noNumbers(l look) {
	const issues = `document.querySelector("#issues").textContent`
	for number, want := range map[string]string{
		"1.5": "Cycles: 1.5 is no whole number; write one from 1 to 10000", "1e30": "Cycles: 1e30 is no whole number",
		"20000": "20000 cycles are not between", "-1": "-1 cycles are not between",
	} {
		l.write("cycles", number)
		l.answered("mistakes")
		if got := l.text(issues); !strings.Contains(got, want) {
			l.t.Errorf("%s cycles: %q, want %q", number, got, want)
		}
	}
	l.write("cycles", "2")
	l.answered("done")
	// The program also answers questions that the page never asks. The answer has the same form.
	if got := l.askedInWorker(`{ cycles: 1.5 }`); got.Issues == nil || !strings.Contains(got.Error, "cycles") {
		l.t.Errorf("to 1.5 cycles the program says %+v", got)
	}
}

// breaks makes the page send a question that the worker cannot send to the program. Then it sends a correct question.
func breaks(l look) {
	l.do(script(`{
		const whole = Worker.prototype.postMessage;
		Worker.prototype.postMessage = function (m) { whole.call(this, { ...m, question: 1n }); };
		window.mend = () => { Worker.prototype.postMessage = whole; };
	}`))
	l.write("cycles", "3")
	l.answered("mistakes")
	if got := l.text(`document.querySelector("#issues").textContent`); !strings.Contains(got, "The simulator broke, and was started again") {
		l.t.Errorf("it is told as %q", got)
	}
	l.do(script(`mend()`))
	l.write("cycles", "1")
	l.answered("done")
}

// awaits waits until a text has the wanted value.
func (l look) awaits(js, want string) {
	l.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && l.text(js) != want; time.Sleep(50 * time.Millisecond) {
	}
	l.want(js, want)
}

// answered waits until the page shows its answer.
func (l look) answered(state string) {
	l.t.Helper()
	got := ""
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if got = l.text(`document.querySelector("#state")?.textContent ?? ""`); got == state &&
			l.number(`document.querySelector("#out").classList.contains("old") ? 1 : 0`) == 0 {
			return
		}
		if got == "mistakes" && state == "mistakes" {
			return
		}
	}
	l.t.Fatalf("the page says %q, want %q: %s", got, state, l.text(`document.querySelector("main").innerText`))
}

// write enters text into a field as if a user typed it.
func (l look) write(field, text string) {
	l.t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		l.t.Fatal(err)
	}
	l.do(script(`(() => { const f = document.getElementById("` + field + `"); f.value = ` + string(quoted) +
		`; f.dispatchEvent(new Event("input")); document.querySelector("#state").textContent = "typed"; })()`))
}

const trialWorld = `apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 4}, {name: n2, cpu: 8}]
jobs: [{name: small, cpu: 1}]
`

const trialPolicy = `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: mine}
spec:
  pipeline: [enqueue, allocate]
  tiers:
  - name: only
    tables:
    - name: house
      inline:
        scores:
        - name: wanted
          expression: "node.name == 'n1' ? 100.0 : 0.0"
`

const planText = `document.querySelector("#out").textContent`

func editPolicy(l look) {
	l.write("world", trialWorld)
	l.write("policy", trialPolicy)
	l.answered("done")
	if got := l.text(planText); !strings.Contains(got, "policy mine") || !strings.Contains(got, "default/small-0  n1") {
		l.t.Errorf("by the policy the pod goes to n1: %s", got)
	}
	l.write("policy", strings.Replace(trialPolicy, "'n1'", "'n2'", 1))
	l.answered("done")
	if got := l.text(planText); !strings.Contains(got, "default/small-0  n2") {
		l.t.Errorf("by the edited policy the pod goes to n2: %s", got)
	}
	l.do(chromedp.Click(chromedp.CSS("[data-shows=reasons]")))
	if got := l.text(planText); !strings.Contains(got, "small") || strings.Contains(got, "DECISION") {
		l.t.Errorf("the reasons are %s", got)
	}
	l.do(chromedp.Click(chromedp.CSS("[data-shows=plan]")))
}

func mistakeHasPlace(l look) {
	l.write("policy", strings.Replace(trialPolicy, "node.name", "node.nam", 1))
	l.answered("mistakes")
	got := l.text(`document.querySelector("#issues").textContent`)
	if !strings.Contains(got, "policy.yaml:13:") || !strings.Contains(got, "nam") {
		l.t.Errorf("the mistake is told as %q", got)
	}
	l.want(`document.querySelector(".lines .bad").textContent`, "13")
	l.do(chromedp.Click(chromedp.CSS("#issues button")))
	l.want(`document.activeElement.id`, "policy")
	const line = `(() => {
		const f = document.querySelector("#policy");
		return f.value.slice(0, f.selectionStart).split("\n").length + "";
	})()`
	l.want(line, "13")
	l.write("policy", trialPolicy)
	l.answered("done")
	if n := l.number(visible("#issues")); n != 0 {
		l.t.Error("the mistake is still told when it is mended")
	}
}

// sameInBrowser compares the answers of the program in the browser with the answers of the same code here.
func sameInBrowser(l look, all []site.Example) {
	asked, groups := 0, map[string]int{}
	for _, e := range all {
		if groups[e.Group]++; groups[e.Group] > 1 {
			continue
		}
		asked++
		q := questionOf(e)
		question, err := json.Marshal(q)
		if err != nil {
			l.t.Fatal(err)
		}
		if diff := cmp.Diff(try.Ask(q, time.Time{}), l.askedInWorker(string(question))); diff != "" {
			l.t.Errorf("%s %s: (- here, + in the browser)\n%s", e.Group, e.Name, diff)
		}
	}
	l.t.Logf("%d examples were asked in the browser", asked)
}

// askedInWorker returns the program's answer to a question. The question is JavaScript, and a separate worker asks it.
func (l look) askedInWorker(question string) (answer try.Answer) {
	l.t.Helper()
	value, err := chromedp.Run(l.ctx, chromedp.Evaluate[string](`(async () => {
		window.asking ??= await new Promise((ready) => {
			const w = new Worker("worker.js");
			w.onmessage = () => ready(w);
		});
		return new Promise((done) => {
			asking.onmessage = (m) => done(JSON.stringify(m.data.answer));
			asking.postMessage({ number: 1, question: `+question+` });
		});
	})()`, chromedp.EvalAwaitPromise))
	if err != nil {
		l.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(value), &answer); err != nil {
		l.t.Fatal(err)
	}
	return answer
}

func tryIsText(l look) {
	l.write("policy", strings.Replace(trialPolicy, "        scores:\n", `        predicates:
        - {name: never, expression: "false", message: "`+hostile+`"}
        scores:
`, 1))
	l.answered("done")
	if got := l.text(planText); !strings.Contains(got, hostile) {
		l.t.Errorf("the message is not shown as it is: %s", got)
	}
	l.write("policy", "apiVersion: v1\nkind: \""+hostile+"\"\n")
	l.answered("mistakes")
	if got := l.text(`document.querySelector("#issues").textContent`); !strings.Contains(got, hostile) {
		l.t.Errorf("the mistake is not shown as it is: %s", got)
	}
	if n := l.number(`document.querySelectorAll("main img, main script").length + (window.harmed ? 1 : 0)`); n != 0 {
		l.t.Error("user data became elements")
	}
}

func linkHolds(l look) {
	l.write("policy", trialPolicy)
	l.write("world", trialWorld)
	l.answered("done")
	l.do(chromedp.Click(chromedp.CSS("#share")))
	hash := ""
	for range 100 {
		if hash = l.text(`location.hash`); hash != "" {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	l.do(chromedp.Reload())
	l.answered("done")
	if l.text(`document.querySelector("#policy").value`) != trialPolicy || l.text(`document.querySelector("#world").value`) != trialWorld {
		l.t.Errorf("the link %q gives other texts", hash)
	}
}

// tryFits measures the page at the width of a phone and of a desktop, in both themes. If PAGE_SHOTS is set, it writes pictures to that
// folder.
func tryFits(l look) {
	for _, width := range []int64{360, 1280} {
		for _, theme := range []string{"light", "dark"} {
			l.do(chromedp.EmulateViewport(width, 900))
			l.theme(theme)
			if n := l.number(`document.documentElement.scrollWidth`); n > float64(width) {
				l.t.Errorf("at %d the page is %v wide", width, n)
			}
			if dir := os.Getenv("PAGE_SHOTS"); dir != "" {
				picture, err := chromedp.Run(l.ctx, chromedp.FullScreenshot(100))
				if err != nil {
					l.t.Fatal(err)
				}
				name := filepath.Join(dir, "try-"+theme+"-"+strconv.FormatInt(width, 10)+".png")
				if err := os.WriteFile(name, picture, 0o644); err != nil {
					l.t.Fatal(err)
				}
			}
		}
	}
}

// TestTryFolderIsNamed checks the message about a given folder that does not contain the page. The message also tells how to make the page.
func TestTryFolderIsNamed(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"try", "--dir", dir}, {"dashboard", "--try", dir}} {
		var out, errs bytes.Buffer
		code := run(args, nil, &out, &errs)
		if want := dir + " does not hold the page: make web"; code == exitOK || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: exit code %d, %s; want %q", args, code, &errs, want)
		}
	}
}

// TestTryProgramIsCompressed requests the program like a browser, and like a client that accepts no compressed answer.
func TestTryProgramIsCompressed(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"celsius.wasm.br": "B", "celsius.wasm.gz": "G", "index.html": "<p>page"})
	h := site.Handler(os.DirFS(dir))
	for _, c := range []struct{ accept, encoding, body string }{
		{"gzip, deflate, br, zstd", "br", "B"},
		{"gzip;q=1.0, br;q=0", "gzip", "G"},
		{"", "", "the program is only sent compressed, by br or gzip\n"},
	} {
		r := httptest.NewRequestWithContext(context.Background(), "GET", "/celsius.wasm", nil)
		r.Header.Set("Accept-Encoding", c.accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Encoding"); got != c.encoding || w.Body.String() != c.body {
			t.Errorf("%q: %q %q, want %q %q", c.accept, got, w.Body, c.encoding, c.body)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), "POST", "/", nil))
	if w.Code != 405 {
		t.Errorf("POST gives %d", w.Code)
	}
}

// TestTryCommand serves a folder until the user stops the command.
func TestTryCommand(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"index.html": "<p>page"})
	var out, errs bytes.Buffer
	if code := run([]string{"try", "--dir", filepath.Join(dir, "nowhere")}, nil, &out, &errs); code != exitUsage ||
		!strings.Contains(errs.String(), "does not hold the page") || out.Len() > 0 {
		t.Errorf("without a page: exit code %d, %q, %q", code, &out, &errs)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read, write := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := with(newRootCommand(), []string{"try", "--dir", dir, "--listen", "127.0.0.1:0"}, nil, write, write).ExecuteContext(ctx)
		_ = write.Close() // so that nobody waits for a line that never comes
		done <- err
	}()
	said, err := bufio.NewReader(read).ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSpace(said), "open ")
	if err != nil || !found {
		t.Fatalf("it says %q: %v", said, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusOK || string(page) != "<p>page" {
		t.Errorf("%s: %s %q, %v", address, answer.Status, page, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("it ends with %v", err)
	}
}
