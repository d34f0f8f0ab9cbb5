package asks

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// For a server that hangs, the number of waiting questions is limited, and other servers are not delayed.
func TestHangs(t *testing.T) {
	done := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer hangs.Close()
	defer close(done)
	works := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply200(w, `{"status": true}`) }))
	defer works.Close()
	r := newRig(t)
	var asks []extender.Ask
	for i := range 1000 {
		ask := about(fmt.Sprint(hangs.URL, "/", i), extender.JobReady)
		ask.Timeout = time.Minute
		asks = append(asks, ask)
	}
	asks = append(asks, about(works.URL, extender.JobReady))
	for range 20 {
		r.Ask(r.c, asks, time.Now())
		time.Sleep(2 * time.Millisecond)
		r.Asker.mu.Lock()
		if n := len(r.under); n > mostQuestions+1 {
			t.Errorf("%d questions wait, want at most %d", n, mostQuestions+1)
		}
		r.Asker.mu.Unlock()
	}
	select {
	case a := <-r.told:
		if a.URL != works.URL {
			t.Errorf("%s answered", a.URL)
		}
	case <-time.After(20 * time.Second):
		t.Error("who answers is not asked, as another hangs")
	}
}

// If there is no capacity for all questions, questions that were never asked, or longest ago, come first.
func TestRoomGoesRound(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply200(w, `{"status": true}`) }))
	defer server.Close()
	r := newRig(t)
	var asks []extender.Ask
	for i := range 3 * mostQuestions {
		asks = append(asks, about(fmt.Sprint(server.URL, "/", i), extender.JobReady))
	}
	answered := map[string]int{}
	for range 3 {
		r.Ask(r.c, asks, time.Now())
		for waiting := 1; waiting > 0; time.Sleep(time.Millisecond) {
			r.Asker.mu.Lock()
			waiting = len(r.under)
			r.Asker.mu.Unlock()
		}
		for len(r.told) > 0 {
			answered[(<-r.told).URL]++
		}
	}
	if len(answered) != len(asks) {
		t.Errorf("%d of %d questions were asked", len(answered), len(asks))
	}
}

// A server that responds about one node and hangs for the others is not waited for again and again.
func TestRestIsGivenUp(t *testing.T) {
	r := newRig(t)
	names := r.nodes(200)
	done := make(chan struct{})
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > 1 {
			<-done
			return
		}
		reply200(w, `{}`)
	}))
	defer server.Close()
	defer close(done)
	ask := about(server.URL, extender.Predicate)
	ask.Nodes, ask.Timeout = names, 50*time.Millisecond
	got := r.one(ask)
	if n := asked.Load(); n > 2*mostRequests+1 {
		t.Errorf("asked %d times", n)
	}
	if first, last := got.Nodes[0].Error, got.Nodes[199].Error; first != "" || last != "left 4 requests about other nodes unanswered" {
		t.Errorf("of the first node %q, of the last %q", first, last)
	}
}

// nodes adds nodes to the cluster.
func (r *rig) nodes(count int) (names []string) {
	for i := range count {
		names = append(names, fmt.Sprintf("m%03d", i))
		if errs := r.c.Apply(model.Delta{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: names[i]}}}); errs != nil {
			r.t.Fatal(errs)
		}
	}
	return names
}

// If there are more nodes than a question may contain, all are asked about in turn. Earlier answers remain until then. The answer is as old
// as its oldest part.
func TestManyNodes(t *testing.T) {
	for _, as := range []string{extender.Predicate, extender.Prioritize} {
		r := newRig(t)
		names := r.nodes(2*mostNodes + 10)
		var asked sync.Map
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			body, _ := io.ReadAll(q.Body)
			for _, name := range names {
				if strings.Contains(string(body), `"Name":"`+name+`"`) {
					n, _ := asked.LoadOrStore(name, new(atomic.Int32))
					n.(*atomic.Int32).Add(1)
				}
			}
			reply200(w, `{}`)
		}))
		ask := about(server.URL, as)
		ask.Nodes = names
		var answers []*extender.Answer
		for range 6 {
			answers = append(answers, r.one(ask))
		}
		server.Close()
		for i, want := range []int{mostNodes, 2 * mostNodes, len(names), len(names), len(names), len(names)} {
			if got := len(answers[i].Nodes); got != want {
				t.Errorf("%s: after %d questions it says something of %d nodes, want %d", as, i+1, got, want)
			}
		}
		if !answers[2].At.Equal(&answers[0].At) || !answers[3].At.After(answers[0].At.Time) || !answers[5].At.After(answers[3].At.Time) {
			t.Errorf("%s: answers are of %v", as, answers)
		}
		few, many := len(names), 0
		asked.Range(func(_, n any) bool {
			few, many = min(few, int(n.(*atomic.Int32).Load())), max(many, int(n.(*atomic.Int32).Load()))
			return true
		})
		if few < 2 || many > 3 {
			t.Errorf("%s: nodes were asked about from %d to %d times", as, few, many)
		}
		ask.Nodes = names[:3]
		if got := len(r.one(withURL(t, ask)).Nodes); got != 3 {
			t.Errorf("%s: of %d nodes it says something, want those 3 that are there", as, got)
		}
	}
}

// withURL returns a question for a server that works.
func withURL(t *testing.T, ask extender.Ask) extender.Ask {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply200(w, `{}`) }))
	t.Cleanup(server.Close)
	ask.URL = server.URL
	return ask
}

// Hostile answers are accepted only if plausible, and their texts are short, because reasons, conditions and logs show them.
func TestHostileAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/endless":
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				w.(http.Flusher).Flush()
				time.Sleep(time.Millisecond)
			}
		case "/header":
			w.Header().Set("X", strings.Repeat("x", 2*mostHeader))
		case "/status":
			w.WriteHeader(599)
		default:
			reply200(w, map[string]string{
				"/wordy":  `{"status": "no\n\u001b[31m ` + strings.Repeat("ü", 100_000) + `"}`,
				"/mute":   `{"status": " \n "}`,
				"/loud":   `{"errorMessage": "` + strings.Repeat("x", 100_000) + `"}`,
				"/scores": `{"nodeScore": {"n1": 1e300, "n2": -3}}`,
				"/inf":    `{"nodeScore": {"n1": 1e999}}`,
				"/nan":    `{"nodeScore": {"n1": NaN}}`,
				"/long":   `{"nodeScore": {"n1": ` + strings.Repeat("9", 100_000) + `}}`,
				"/text":   `{"status": "yes"}`,
				"/list":   `[` + strings.Repeat("[", 50_000),
				"/array":  `[1]`,
				"/empty":  ``,
				"/null":   `null`,
				"/two":    `{}{}`,
			}[r.URL.Path])
		}
	}))
	defer server.Close()
	r := newRig(t)
	for _, c := range []struct{ path, as, want string }{
		{"/wordy", extender.Predicate, "n1@7:no [31m üüü"},
		{"/mute", extender.Predicate, "n1@7:without a word0"},
		{"/loud", extender.Prioritize, "n1@7:answered: xxx"},
		{"/scores", extender.Prioritize, "n1@7:answered the score 1e+300: it must be from -1e+15 to 1e+150 n2@7:-3"},
		{"/inf", extender.Prioritize, "n1@7:answered what cannot be read: at nodeScore stands a number, where a number within bounds belongs"},
		{"/long", extender.Prioritize, "n1@7:answered what cannot be read: at nodeScore stands a number, where a number within"},
		{"/nan", extender.Prioritize, "n1@7:answered what cannot be read: invalid character 'N'"},
		{"/text", extender.JobReady, "answered what cannot be read: at status stands a string, where true or false belongs"},
		{"/text", extender.JobEnqueueable, "answered what cannot be read: at status stands a string, where a whole number belongs"},
		{"/list", extender.JobReady, "answered what cannot be read: "},
		{"/array", extender.JobReady, "answered what cannot be read: at its top stands an array, where an object belongs"},
		{"/empty", extender.JobReady, "answered what cannot be read: unexpected end of JSON input"},
		{"/null", extender.JobReady, "no"},
		{"/two", extender.JobReady, "answered what cannot be read: invalid character '{' after"},
		{"/endless", extender.JobReady, "did not answer within 100ms"},
		{"/header", extender.JobReady, "could not be reached: "},
		{"/status", extender.JobReady, "answered 599, not 200"},
	} {
		ask := about(server.URL+c.path, c.as)
		if c.path == "/endless" {
			ask.Timeout = 100 * time.Millisecond
		}
		a := r.one(ask)
		if got := said(a); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %.300q, want %q", c.path, got, c.want)
		}
		long := len(a.Error)
		for _, n := range a.Nodes {
			long = max(long, len(n.Error), len(n.Refused))
		}
		if long > 4*mostText {
			t.Errorf("%s: a text of %d bytes is kept", c.path, long)
		}
	}
}

// A server that fails with another text each time does not fill the log. Neither does a server that fails every other time.
func TestLogIsBounded(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := asked.Add(1); n%2 == 0 {
			reply200(w, fmt.Sprintf(`{"errorMessage": "request %d"}`, n))
			return
		}
		reply200(w, `{}`)
	}))
	defer server.Close()
	r := newRig(t)
	for range 50 {
		r.one(about(server.URL, extender.Prioritize))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.logged); n == 0 || n > mostLines {
		t.Errorf("the log has %d lines, want some, and at most %d", n, mostLines)
	}
}

// An address with a password is not asked, and neither an answer nor the log contains the password.
func TestPasswordsAreNotShown(t *testing.T) {
	r := newRig(t)
	for _, url := range []string{"http://me:secret@127.0.0.1:1/x", "me:secret@x/y"} {
		got := said(r.one(about(url, extender.JobReady)))
		if !strings.Contains(got, "has a user before its host") || strings.Contains(got, "secret") {
			t.Errorf("%q", got)
		}
	}
}

// counts is a Meter that counts.
type counts struct {
	mu    sync.Mutex
	asked map[string]int
	ages  int
}

func (c *counts) Asked(server, form, outcome string, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if server == "" || took <= 0 {
		outcome = fmt.Sprintf("of %q within %s", server, took)
	}
	c.asked[form+" "+outcome]++
}

func (c *counts) Replaced(_, _ string, age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if age > 0 {
		c.ages++
	}
}

func (c *counts) NoRoom(_, form string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[form+" no room"]++
}

// Each request is counted by its outcome.
func TestMeter(t *testing.T) {
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-done
		case "/wrong":
			w.WriteHeader(http.StatusTeapot)
		case "/garbled":
			reply200(w, "?")
		default:
			reply200(w, `{"status": true}`)
		}
	}))
	defer server.Close()
	defer close(done)
	m := &counts{asked: map[string]int{}}
	r := newRigOf(t, Options{}, m)
	slow := about(server.URL+"/slow", extender.JobReady)
	slow.Timeout = 50 * time.Millisecond
	garbled := about(server.URL+"/garbled", extender.Predicate)
	for _, ask := range []extender.Ask{
		about(server.URL, extender.JobReady), about(server.URL, extender.JobReady), slow, about(server.URL+"/wrong", extender.JobReady),
		garbled, about("http://127.0.0.1:1", extender.JobReady),
	} {
		r.one(ask)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	want := map[string]int{"jobReady answered": 2, "jobReady late": 1, "jobReady wrong": 1, "predicate wrong": 2, "jobReady unreached": 1}
	if fmt.Sprint(m.asked) != fmt.Sprint(want) || m.ages != 1 {
		t.Errorf("counted %v, and %d ages; want %v, and 1", m.asked, m.ages, want)
	}
}
