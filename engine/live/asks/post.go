package asks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/celsius-scheduler/celsius/engine/extender"
)

// reply is what came of one request.
type reply struct {
	body []byte
	err  string // why there is none; "": there is one
	// nobody says that the service was not reached, or did not answer.
	nobody bool
}

// post sends one request, when its turn has come.
func (a *Asker) post(ctx context.Context, q *question, p post) reply {
	select {
	case <-ctx.Done():
		return reply{err: "the scheduler ends"}
	case a.requests <- struct{}{}:
	}
	defer func() { <-a.requests }()
	to, err := url.Parse(q.URL)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		wrong := fmt.Sprintf("%q is no address: write http://HOST/... or https://HOST/... as the table's urlPrefix", q.URL)
		return reply{err: wrong, nobody: true}
	}
	ctx, stop := context.WithTimeout(ctx, q.Timeout)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, q.URL, bytes.NewReader(p.body))
	if err != nil {
		return reply{err: err.Error(), nobody: true}
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		return reply{err: notReached(err, q.Timeout), nobody: true}
	}
	defer func() { _ = response.Body.Close() }() // nothing is written to it
	if response.StatusCode != http.StatusOK {
		return reply{err: "answered " + response.Status + ", not 200"}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, mostBytes+1))
	switch {
	case err != nil:
		return reply{err: notReached(err, q.Timeout), nobody: true}
	case len(body) > mostBytes:
		return reply{err: fmt.Sprintf("answered with more than %d bytes", mostBytes)}
	}
	return reply{body: body}
}

// notReached says how a request failed, without the address, which stands beside it.
func notReached(err error, timeout time.Duration) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("did not answer within %s", timeout)
	}
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err
	}
	return "could not be reached: " + err.Error()
}

// The forms of answers, as Volcano's extenders give them.
type (
	predicateReply struct {
		Status string `json:"status"`
		Code   int    `json:"code"`
	}
	prioritizeReply struct {
		NodeScore    map[string]float64 `json:"nodeScore"`
		ErrorMessage string             `json:"errorMessage"`
	}
	voteReply struct {
		Status int `json:"status"`
	}
	readyReply struct {
		Status bool `json:"status"`
	}
	overusedReply struct {
		Overused bool `json:"overused"`
	}
)

// read fills in an answer from what came of the requests.
func (q *question) read(x *extender.Answer, replies []reply) {
	if len(replies) > 0 && replies[0].nobody {
		x.Error = replies[0].err
		return
	}
	switch q.As {
	case extender.Predicate:
		for i, r := range replies {
			x.Nodes = append(x.Nodes, q.verdict(q.posts[i].node, r))
		}
		return
	case extender.Prioritize:
		q.ratings(x, replies[0])
		return
	}
	r := replies[0]
	switch q.As {
	case extender.JobEnqueueable:
		var said voteReply
		if r.decode(&said); r.err == "" {
			x.Says = vote(said.Status)
		}
	case extender.JobReady:
		var said readyReply
		if r.decode(&said); r.err == "" {
			x.Says = yesOrNo(said.Status)
		}
	default:
		var said overusedReply
		if r.decode(&said); r.err == "" {
			x.Says = yesOrNo(said.Overused)
		}
	}
	x.Error = r.err
}

// verdict is what was said of one node.
func (q *question) verdict(node string, r reply) extender.NodeAnswer {
	var said predicateReply
	r.decode(&said)
	out := extender.NodeAnswer{Name: node, Version: q.versions[node], Error: r.err}
	switch {
	case r.err != "":
	case said.Status != "":
		out.Refused = said.Status
	case said.Code != 0:
		out.Refused = fmt.Sprintf("code %d", said.Code)
	}
	return out
}

// ratings are what was said of all nodes at once; one that is not named has no score.
func (q *question) ratings(x *extender.Answer, r reply) {
	var said prioritizeReply
	if r.decode(&said); r.err == "" && said.ErrorMessage != "" {
		r.err = "answered: " + said.ErrorMessage
	}
	for _, node := range q.Nodes {
		x.Nodes = append(x.Nodes, extender.NodeAnswer{Name: node, Version: q.versions[node], Error: r.err, Score: said.NodeScore[node]})
	}
}

// decode reads the body; what is no JSON of the form is an error of the reply.
func (r *reply) decode(into any) {
	if r.err != "" {
		return
	}
	if err := json.Unmarshal(r.body, into); err != nil {
		r.err = "answered what cannot be read: " + err.Error()
	}
}

func vote(status int) string {
	switch {
	case status > 0:
		return extender.Permit
	case status < 0:
		return extender.Reject
	}
	return extender.Abstain
}

func yesOrNo(yes bool) string {
	if yes {
		return extender.Yes
	}
	return extender.No
}
