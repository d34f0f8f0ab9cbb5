package asks

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/live/recovery"
	"github.com/celsius-scheduler/celsius/engine/model"
)

const (
	mostQuestions  = 64  // questions to one server that wait or are being sent
	mostOfAll      = 512 // questions to all servers that wait or are being sent
	mostNodes      = 256 // nodes in one question; the next questions contain the others
	mostRequests   = 16  // concurrent requests to one server
	mostUnanswered = 4   // requests of one question, before the rest of the question is dropped
	mostTime       = time.Minute
	mostDial       = 5 * time.Second // time limit to establish a connection
	mostQuiet      = 5 * time.Second // time without data on a connection until a ping, and from the ping to its answer
	mostBytes      = 1 << 20         // maximum size of a response body
	mostHeader     = 64 << 10        // maximum size of the response headers
	mostText       = 300             // characters of a text from a server
	mostLines      = 6               // lines of the log about one address, per sweep
	forgetAfter    = 10 * time.Minute
	sweepEvery     = time.Minute
)

// Asker asks extenders. Only the owner of the cluster may call Ask; Run sends the requests.
type Asker struct {
	tell   func(op model.Op, a *extender.Answer)
	client *http.Client
	trust  trust
	meter  Meter
	log    logr.Logger

	questions chan *question

	mu    sync.Mutex
	lines map[string]*line   // the questions to each server
	all   int                // number of questions in all lines
	under map[key]bool       // questions that wait or are being sent
	known map[key]*known     // the last answers
	wrong map[string]trouble // by address; by server if the files for its TLS cannot be used
	swept time.Time
}

// line contains the questions for one server, so that a slow server delays no other.
type line struct {
	server    string
	questions int
	requests  chan struct{} // a token for each request under way
}

type key struct {
	url, as string
	of      extender.Subject
}

// known is an answer, and the time at which each node was asked about.
type known struct {
	*extender.Answer
	asked map[string]time.Time
}

// trouble is the failure of an address.
type trouble struct {
	text  string // of the last failure; "": the address responds
	lines int    // log lines since the last sweep
}

// New creates an Asker. It passes answers to tell, and requests with their outcomes to meter, which may be nil.
func New(o Options, tell func(op model.Op, a *extender.Answer), meter Meter, log logr.Logger) *Asker {
	if meter == nil {
		meter = silence{}
	}
	t := o.trust()
	return &Asker{
		tell: tell, log: log, meter: meter, trust: t, client: t.client(),
		questions: make(chan *question, mostOfAll),
		lines:     map[string]*line{}, under: map[key]bool{}, known: map[key]*known{}, wrong: map[string]trouble{},
	}
}

// Ask queues the questions of a plan, except those that are being asked already. It reads the cluster, and does not block. If there is no
// capacity for all, questions that were never asked come first, then those that were asked longest ago.
func (a *Asker) Ask(c *model.Cluster, asks []extender.Ask, now time.Time) {
	a.sweep(c, now)
	nodes := map[string]*nodeInfo{} // shared by several questions
	for _, ask := range a.longestAgoFirst(asks) {
		l := a.enter(ask)
		if l == nil {
			continue // it is being asked, or there is no capacity: the next plan asks again
		}
		q := write(c, ask, nodes)
		if q == nil { // the subject no longer exists
			a.leave(key{ask.URL, ask.As, ask.Of}, l)
			continue
		}
		q.line = l
		a.questions <- q // never blocks: enter admits no more questions than the channel can hold
	}
}

// longestAgoFirst returns the questions in the order of their last answers, oldest first. Each contains at most mostNodes nodes.
func (a *Asker) longestAgoFirst(asks []extender.Ask) []extender.Ask {
	a.mu.Lock()
	defer a.mu.Unlock()
	type dated struct {
		extender.Ask
		at time.Time
	}
	list := make([]dated, len(asks))
	for i, ask := range asks {
		list[i].Ask = ask
		k := a.known[key{ask.URL, ask.As, ask.Of}]
		if k == nil {
			k = &known{}
		} else {
			list[i].at = k.At.Time
		}
		if len(ask.Nodes) > mostNodes {
			list[i].Nodes = slices.Clone(ask.Nodes)
			slices.SortStableFunc(list[i].Nodes, func(a, b string) int { return k.asked[a].Compare(k.asked[b]) })
		}
	}
	slices.SortStableFunc(list, func(a, b dated) int { return a.at.Compare(b.at) })
	out := make([]extender.Ask, len(list))
	for i := range list {
		out[i] = list[i].Ask
	}
	return out
}

// enter admits a question; nil: it is already being asked, or there is no capacity for it.
func (a *Asker) enter(ask extender.Ask) *line {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, server := key{ask.URL, ask.As, ask.Of}, serverOf(ask.URL)
	if a.under[k] {
		return nil
	}
	l := a.lines[server]
	if l == nil {
		l = &line{server: server, requests: make(chan struct{}, mostRequests)}
	}
	if l.questions == mostQuestions || a.all == mostOfAll {
		a.meter.NoRoom(server, ask.As)
		return nil
	}
	a.lines[server], a.under[k] = l, true
	l.questions++
	a.all++
	return l
}

// leave undoes enter.
func (a *Asker) leave(k key, l *line) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left(k, l)
}

func (a *Asker) left(k key, l *line) {
	delete(a.under, k)
	a.all--
	if l.questions--; l.questions == 0 {
		delete(a.lines, l.server)
	}
}

// sweep forgets answers that were not needed for a long time, and answers about subjects that are gone or no longer wait.
func (a *Asker) sweep(c *model.Cluster, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.swept) < sweepEvery {
		return
	}
	a.swept = now
	for k, x := range a.known {
		if (now.Sub(x.At.Time) > forgetAfter || gone(c, k.of)) && !a.under[k] {
			delete(a.known, k)
			a.tell(model.Delete, x.Answer)
		}
	}
	for url, t := range a.wrong {
		if t.lines = 0; t.text == "" {
			delete(a.wrong, url)
		} else {
			a.wrong[url] = t
		}
	}
}

// gone reports whether a subject has no more questions.
func gone(c *model.Cluster, of extender.Subject) bool {
	if of.Kind == extender.Queue {
		return c.Queues[of.Queue] == nil
	}
	j := c.Jobs[of.Job]
	return j == nil || of.Kind == extender.Task && j.Counts[model.Pending] == 0
}

// Run sends requests until ctx ends. When it returns, no request is under way.
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

// answer asks one question and passes on the answer.
func (a *Asker) answer(ctx context.Context, q *question) {
	k := key{q.URL, q.As, q.Of}
	x := &extender.Answer{URL: q.URL, As: q.As, Of: q.Of, At: metav1.NewTime(time.Now())}
	x.Name = nameOf(k)
	var replies []reply
	p := recovery.Catch(recovery.Worker, func() {
		replies = a.allOf(ctx, q)
		q.read(x, replies)
	})
	if ctx.Err() != nil {
		return
	}
	if p != nil {
		x.Error, x.Nodes = "the scheduler failed at the answer: "+p.Error(), nil
		a.log.Error(nil, "a panic was recovered", "place", p.Place, "extender", q.URL, "cause", p.Cause, "stack", p.Stack)
	}
	for i := range replies {
		if r := &replies[i]; r.outcome != "" {
			a.meter.Asked(q.line.server, q.As, r.outcome, r.took)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.known[k]
	if old != nil {
		a.meter.Replaced(q.line.server, q.As, time.Since(old.At.Time))
	}
	next := q.joined(old, x)
	a.known[k] = next
	a.report(next.Answer)
	a.left(k, q.line)
	a.tell(model.Upsert, next.Answer)
}

// allOf sends the requests of a question. It sends the first request alone: if no server responds, the others need not wait as well. After
// too many unanswered requests it drops the rest.
func (a *Asker) allOf(ctx context.Context, q *question) []reply {
	replies := make([]reply, len(q.posts))
	if replies[0] = a.post(ctx, q, &q.posts[0]); replies[0].nobody {
		return replies[:1]
	}
	var next, unanswered atomic.Int32
	var rest sync.WaitGroup
	var failed atomic.Pointer[recovery.Panic]
	for range min(mostRequests, len(q.posts)-1) {
		rest.Go(func() {
			failed.CompareAndSwap(nil, recovery.Catch(recovery.Worker, func() {
				for i := int(next.Add(1)); i < len(q.posts); i = int(next.Add(1)) {
					if unanswered.Load() >= mostUnanswered {
						replies[i] = reply{err: fmt.Sprintf("left %d requests about other nodes unanswered", mostUnanswered)}
						continue
					}
					if replies[i] = a.post(ctx, q, &q.posts[i]); replies[i].nobody {
						unanswered.Add(1)
					}
				}
			}))
		})
	}
	rest.Wait()
	failed.Load().Again()
	return replies
}

// joined returns an answer that also contains earlier answers for nodes that it does not cover. If the question begins again with all
// nodes, it keeps only the answers for nodes that this round has not reached. The result is as old as its oldest part.
func (q *question) joined(old *known, x *extender.Answer) *known {
	out := &known{x, map[string]time.Time{}}
	for i := range x.Nodes {
		out.asked[x.Nodes[i].Name] = x.At.Time
	}
	if old == nil || x.Error != "" {
		return out
	}
	for i := range old.Nodes {
		name := old.Nodes[i].Name
		if _, again := out.asked[name]; again || q.All && !q.later[name] {
			continue
		}
		x.Nodes = append(x.Nodes, old.Nodes[i])
		out.asked[name] = old.asked[name]
		if at := old.asked[name]; at.Before(x.At.Time) {
			x.At = metav1.NewTime(at)
		}
	}
	slices.SortFunc(x.Nodes, func(a, b extender.NodeAnswer) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// report logs the failure of an address, and its recovery. It logs each once, and only a few lines per sweep.
func (a *Asker) report(x *extender.Answer) {
	wrong := x.Error
	for i := range x.Nodes {
		wrong = cmp.Or(wrong, x.Nodes[i].Error)
	}
	t := a.wrong[x.URL]
	if t.text == wrong {
		return
	}
	t.text = wrong
	t.lines++
	a.wrong[x.URL] = t
	switch {
	case t.lines > mostLines:
	case wrong == "":
		a.log.Info("an extender answers again", "url", x.URL)
	default:
		a.log.Info("an extender could not be asked; unless the policy ignores that, who it was asked about waits", "url", x.URL,
			"about", x.Of.String(), "error", wrong)
	}
}

// filesFail logs that files cannot be used, once per sweep.
func (a *Asker) filesFail(server string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.wrong[server]
	if t.lines++; t.lines == 1 {
		a.log.Error(err, "an extender could not be asked, as the files for its TLS cannot be used", "server", server)
	}
	a.wrong[server] = t
}

// nameOf returns the name of an answer's object. The name is unique for an address, a form and a subject.
func nameOf(k key) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %+q", k.url, k.as, []string{k.of.Kind, k.of.Job, k.of.Queue, k.of.Role, k.of.Like}))
	return fmt.Sprintf("%x", sum[:16])
}
