package asks

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/celsius-scheduler/celsius/engine/extender"
)

// reply is the result of one request.
type reply struct {
	body []byte
	err  string // why body is missing; "": it is not
	// nobody is true if the server was not reached or did not respond.
	nobody bool
	// outcome is how the request ended, and took how long it took; "": it was not sent.
	outcome string
	took    time.Duration
}

// post sends one request when a slot of its server is free.
func (a *Asker) post(ctx context.Context, q *question, p *post) (r reply) {
	select {
	case <-ctx.Done():
		return reply{err: "the scheduler ends"}
	case q.line.requests <- struct{}{}:
	}
	defer func() { <-q.line.requests }()
	if wrong := cmp.Or(extender.CheckAddress(q.URL), a.trust.mayBeAsked(q.URL)); wrong != "" {
		return reply{err: wrong, nobody: true}
	}
	began := time.Now()
	defer func() { r.took = time.Since(began) }()
	timeout := min(q.Timeout, mostTime)
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, q.URL, bytes.NewReader(p.text()))
	if err != nil {
		return reply{err: "cannot be asked", nobody: true}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header["Idempotency-Key"] = nil // a nil header is not sent, and allows a retry if the connection was being closed
	response, err := a.client.Do(request)
	if err != nil {
		return a.notReached(ctx, q.line.server, err, timeout)
	}
	defer func() { _ = response.Body.Close() }() // only read, so the error does not matter
	if code := response.StatusCode; code != http.StatusOK {
		return reply{err: fmt.Sprintf("answered %s, not 200", strings.TrimSpace(fmt.Sprint(code, " ", http.StatusText(code)))), outcome: Wrong}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, mostBytes+1))
	switch {
	case err != nil:
		return a.notReached(ctx, q.line.server, err, timeout)
	case len(body) > mostBytes:
		return reply{err: fmt.Sprintf("answered with more than %d MiB", mostBytes>>20), outcome: Wrong}
	}
	return reply{body: body, outcome: Answered}
}

// notReached returns how a request failed, without the address, which is reported separately.
func (a *Asker) notReached(ctx context.Context, server string, err error, timeout time.Duration) reply {
	if ctx.Err() != nil {
		return reply{err: fmt.Sprintf("did not answer within %s", timeout), nobody: true, outcome: Late}
	}
	out := reply{nobody: true, outcome: Unreached}
	var files untold
	var doubted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &files):
		a.filesFail(server, files.error)
		out.err = "the scheduler cannot use the files for its TLS"
	case errors.As(err, &doubted):
		out.err = oneLine("could not be reached: "+doubted.Error()) + "; who may vouch for it is said to the scheduler, by --extender-tls"
	default:
		out.err = oneLine("could not be reached: " + withoutPorts(err))
	}
	return out
}

var streamNumber = regexp.MustCompile(`stream ID \d+; |LastStreamID=\d+, `)

// withoutPorts returns the error of a connection without its endpoints and its number. These differ each time, so the owners of waiting
// pods would get a new message each time, and they do not concern these users.
func withoutPorts(err error) string {
	if of, ok := errors.AsType[*net.DNSError](err); ok {
		why := "the name server could not be asked"
		switch {
		case of.IsNotFound:
			why = "no such host"
		case of.IsTimeout:
			why = "no answer in time"
		}
		return fmt.Sprintf("looking up %s: %s", of.Name, why)
	}
	of, ok := errors.AsType[*net.OpError](err)
	switch {
	case ok && of.Op == "dial" && of.Timeout(), !ok && errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no connection within %s", mostDial)
	case ok && of.Err != nil:
		err := of.Err
		if call, ok := errors.AsType[*os.SyscallError](err); ok {
			err = call.Err
		}
		return of.Op + ": " + err.Error()
	}
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err
	}
	return streamNumber.ReplaceAllString(err.Error(), "")
}

// oneLine returns a text from outside for reasons and logs: on one line, without invisible characters, and cut to mostText characters.
func oneLine(s string) string {
	unseen := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, " "), unseen), " ")
	if n := 0; len(s) > mostText {
		for i := range s {
			if n++; n > mostText {
				return s[:i] + "…"
			}
		}
	}
	return s
}

// Responses of extenders, as Volcano defines them.
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

// read fills an answer from the results of its requests.
func (q *question) read(x *extender.Answer, replies []reply) {
	if len(replies) > 0 && replies[0].nobody {
		x.Error = replies[0].err
		return
	}
	switch q.As {
	case extender.Predicate:
		for i := range replies {
			x.Nodes = append(x.Nodes, q.verdict(q.posts[i].node, &replies[i]))
		}
		return
	case extender.Prioritize:
		q.ratings(x, &replies[0])
		return
	}
	r := &replies[0]
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

// verdict returns the answer for one node.
func (q *question) verdict(node string, r *reply) extender.NodeAnswer {
	var said predicateReply
	r.decode(&said)
	out := extender.NodeAnswer{Name: node, Version: q.versions[node], Error: r.err}
	switch {
	case r.err != "":
	case said.Status != "":
		out.Refused = cmp.Or(oneLine(said.Status), "without a word")
	case said.Code != 0:
		out.Refused = fmt.Sprintf("code %d", said.Code)
	}
	return out
}

// ratings fills in the scores of all nodes. A node that the response does not name has no score.
func (q *question) ratings(x *extender.Answer, r *reply) {
	var said prioritizeReply
	if r.decode(&said); r.err == "" && said.ErrorMessage != "" {
		r.err, r.outcome = oneLine("answered: "+said.ErrorMessage), Wrong
	}
	for _, node := range q.Nodes {
		one := extender.NodeAnswer{Name: node, Version: q.versions[node], Error: r.err}
		switch score := said.NodeScore[node]; {
		case r.err != "":
		case !extender.Comparable(score):
			one.Error, r.outcome = fmt.Sprintf("answered the score %g: it must be from %g to %g",
				score, -extender.MostScore, extender.MostScore), Wrong
		default:
			one.Score = score
		}
		x.Nodes = append(x.Nodes, one)
	}
}

// decode decodes the body. If the body is not valid JSON of this form, the reply gets an error.
func (r *reply) decode(into any) {
	if r.err != "" {
		return
	}
	err := json.Unmarshal(r.body, into)
	if err == nil {
		return
	}
	r.err, r.outcome = oneLine("answered what cannot be read: "+err.Error()), Wrong
	if of, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what, _, _ := strings.Cut(of.Value, " ") // the value of a number follows its type
		what = cmp.Or(map[string]string{"array": "an array", "object": "an object", "bool": "true or false"}[what], "a "+what)
		r.err = oneLine(fmt.Sprintf("answered what cannot be read: at %s stands %s, where %s belongs", cmp.Or(of.Field, "its top"), what,
			kindOf(of.Type)))
	}
}

// kindOf returns the name of the expected JSON type.
func kindOf(t reflect.Type) string {
	known := map[reflect.Kind]string{
		reflect.Bool: "true or false", reflect.String: "a string", reflect.Int: "a whole number", reflect.Float64: "a number within bounds",
	}
	return cmp.Or(known[t.Kind()], "an object")
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
