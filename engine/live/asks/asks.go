package asks

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/model"
)

const (
	mostQuestions = 64       // that wait
	mostNodes     = 256      // that one question is about; the next plan asks about the others
	mostRequests  = 16       // under way at once
	mostBytes     = 10 << 20 // of an answer
	forgetAfter   = 10 * time.Minute
	sweepEvery    = time.Minute
)

// Asker asks. Ask is for who owns the cluster; Run does the work.
type Asker struct {
	tell   func(op model.Op, a *extender.Answer)
	client *http.Client
	log    logr.Logger

	questions chan *question
	requests  chan struct{} // a token for each that is under way

	mu    sync.Mutex
	under map[key]bool             // waits, or is being asked
	known map[key]*extender.Answer // what was told
	wrong map[string]string        // by address: how it failed last
	swept time.Time
}

type key struct {
	url string
	of  extender.Subject
}

// question is an ask with the bodies of its requests, by node; one without a node where it is asked about all at once.
type question struct {
	extender.Ask
	posts    []post
	versions map[string]string // of nodes
}

type post struct {
	node string
	body []byte
}

// New makes an asker that tells what it hears.
func New(tell func(op model.Op, a *extender.Answer), log logr.Logger) *Asker {
	return &Asker{
		tell: tell, log: log,
		client: &http.Client{
			Transport: &http.Transport{ // without a proxy: what is asked goes where the policy says
				TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: mostRequests, IdleConnTimeout: time.Minute,
				ForceAttemptHTTP2: true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		questions: make(chan *question, mostQuestions), requests: make(chan struct{}, mostRequests),
		under: map[key]bool{}, known: map[key]*extender.Answer{}, wrong: map[string]string{},
	}
}

// Ask takes in what a plan asks, but for what is being asked already. It reads the cluster, and waits for nobody.
func (a *Asker) Ask(c *model.Cluster, asks []extender.Ask, now time.Time) {
	a.sweep(now)
	objects := map[string][]byte{} // nodes, as they are written for several questions
	for i := range asks {
		ask := asks[i]
		k := key{ask.URL, ask.Of}
		a.mu.Lock()
		busy := a.under[k]
		a.mu.Unlock()
		if busy || len(a.questions) == cap(a.questions) {
			continue
		}
		ask.Nodes = slices.Clone(ask.Nodes[:min(len(ask.Nodes), mostNodes)])
		q := write(c, ask, objects)
		if q == nil {
			continue // what it is about is gone
		}
		a.mu.Lock()
		a.under[k] = true
		a.mu.Unlock()
		a.questions <- q // there is room: nobody else puts anything in
	}
}

// sweep forgets what nobody has asked about for long.
func (a *Asker) sweep(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.swept) < sweepEvery {
		return
	}
	a.swept = now
	for k, x := range a.known {
		if now.Sub(x.At.Time) > forgetAfter && !a.under[k] {
			delete(a.known, k)
			a.tell(model.Delete, x)
		}
	}
}

// Run asks until ctx ends; when it returns nothing is under way any more.
func (a *Asker) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer a.client.CloseIdleConnections()
	defer all.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-a.questions:
			all.Go(func() { a.answer(ctx, q) })
		}
	}
}

// answer asks one question, and tells the answer.
func (a *Asker) answer(ctx context.Context, q *question) {
	began := time.Now()
	x := &extender.Answer{URL: q.URL, Of: q.Of, At: metav1.NewTime(began)}
	x.Name = nameOf(q.URL, q.Of)
	replies := a.all(ctx, q)
	if ctx.Err() != nil {
		return
	}
	q.read(x, replies)
	k := key{q.URL, q.Of}
	a.mu.Lock()
	if old := a.known[k]; old != nil && !q.All && old.Error == "" && x.Error == "" {
		x = merged(old, x)
	}
	a.known[k] = x
	a.report(x)
	delete(a.under, k)
	a.tell(model.Upsert, x)
	a.mu.Unlock()
}

// all sends the requests of a question. The first goes alone: where nobody is there, the others need not wait for that as well.
func (a *Asker) all(ctx context.Context, q *question) []reply {
	replies := make([]reply, len(q.posts))
	if len(q.posts) == 0 {
		return replies
	}
	if replies[0] = a.post(ctx, q, q.posts[0]); replies[0].nobody {
		return replies[:1]
	}
	var rest sync.WaitGroup
	for i := range q.posts[1:] {
		rest.Go(func() { replies[i+1] = a.post(ctx, q, q.posts[i+1]) })
	}
	rest.Wait()
	return replies
}

// merged is an older answer with what was said of some nodes since.
func merged(old, x *extender.Answer) *extender.Answer {
	out := *x
	out.At = old.At
	again := map[string]bool{}
	for i := range x.Nodes {
		again[x.Nodes[i].Name] = true
	}
	out.Nodes = slices.Clone(x.Nodes)
	for i := range old.Nodes {
		if !again[old.Nodes[i].Name] {
			out.Nodes = append(out.Nodes, old.Nodes[i])
		}
	}
	slices.SortFunc(out.Nodes, func(a, b extender.NodeAnswer) int { return strings.Compare(a.Name, b.Name) })
	return &out
}

// report logs how an address fails, once, and that it answers again.
func (a *Asker) report(x *extender.Answer) {
	wrong := x.Error
	for i := range x.Nodes {
		if wrong == "" {
			wrong = x.Nodes[i].Error
		}
	}
	switch was, failed := a.wrong[x.URL]; {
	case wrong == "" && failed:
		delete(a.wrong, x.URL)
		a.log.Info("an extender answers again", "url", x.URL)
	case wrong != "" && wrong != was:
		a.wrong[x.URL] = wrong
		a.log.Info("an extender could not be asked; unless the policy ignores that, who it was asked about waits", "url", x.URL,
			"about", x.Of.String(), "error", wrong)
	}
}

// nameOf is the name of an answer's object: of an address and a subject there is one.
func nameOf(url string, of extender.Subject) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %+q", url, []string{of.Kind, of.Job, of.Queue, of.Role, of.Like}))
	return fmt.Sprintf("%x", sum[:16])
}
