package live

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// waitsTold is the number of retries of a request if the API server tells the client when to retry.
	waitsTold = 10
	// mostAnswer is the number of bytes of a response that are read.
	mostAnswer = 1 << 20
)

// poster sends Bindings over the connection and within the rate limit of a client. Bindings are the most frequent requests, and they are
// all alike. The general code of client-go to build a request and to read a response takes half of the CPU time of a Binding in the
// scheduler.
type poster struct {
	client  http.Client
	limiter flowcontrol.RateLimiter // nil: no limit
	encoder runtime.Encoder
	base    *url.URL // the URL of core/v1
	query   string
	timeout time.Duration // limit for one request, from the time when it is sent
}

func newPoster(client *corev1client.CoreV1Client) (*poster, error) {
	r, ok := client.RESTClient().(*rest.RESTClient)
	if !ok {
		return nil, fmt.Errorf("a client of %T cannot post", client.RESTClient())
	}
	p := &poster{limiter: r.GetRateLimiter(), timeout: writeTimeout}
	base := r.Get().URL()
	query := base.Query() // the time limit of a request on the API server, if the client sets one
	query.Set("fieldManager", FieldManager)
	base.RawQuery, p.query = "", query.Encode()
	p.base = base
	if r.Client != nil {
		p.client = *r.Client
	}
	if p.client.Timeout > 0 {
		p.timeout, p.client.Timeout = min(p.client.Timeout, writeTimeout), 0
	}
	p.encoder = protobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme)
	return p, nil
}

// bind sends a binding. ctx limits the wait until the request may be sent, not the request. Its errors are those of client-go: an
// apierrors.APIStatus if the API server responded.
func (p *poster) bind(ctx context.Context, b *corev1.Binding) error {
	var body bytes.Buffer
	b.APIVersion, b.Kind = "v1", "Binding"
	if err := p.encoder.Encode(b, &body); err != nil {
		return fmt.Errorf("encode a binding: %w", err)
	}
	to := p.base.JoinPath("namespaces", b.Namespace, "pods", b.Name, "binding")
	to.RawQuery = p.query
	address := to.String()
	for try := 0; ; try++ {
		if p.limiter != nil {
			if err := p.limiter.Wait(ctx); err != nil {
				return fmt.Errorf("bind: %w", err)
			}
		}
		wait, err := p.post(ctx, address, body.Bytes(), b)
		if wait < 0 || try >= waitsTold {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// post sends one request. If the API server refused to look at the request, post returns the wait before a retry; otherwise a negative
// value.
func (p *poster) post(ctx context.Context, address string, body []byte, b *corev1.Binding) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return -1, fmt.Errorf("bind: %w", err)
	}
	request.Header["Content-Type"] = []string{runtime.ContentTypeProtobuf}
	request.Header["Accept"] = []string{runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON}
	response, err := p.client.Do(request)
	if err != nil {
		return -1, fmt.Errorf("bind: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		// The body must be read to its end, or the connection could not be used again.
		if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, mostAnswer)); err != nil {
			return -1, fmt.Errorf("bind: read the answer: %w", err)
		}
		return -1, nil
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	if err != nil {
		return -1, fmt.Errorf("bind: read the answer: %w", err)
	}
	seconds, told := strconv.Atoi(response.Header.Get("Retry-After"))
	wait := time.Duration(-1)
	if response.StatusCode == http.StatusTooManyRequests && told == nil && seconds >= 0 {
		wait = time.Duration(seconds) * time.Second
	}
	return wait, answered(response.StatusCode, answer, b, max(seconds, 0))
}

// answered returns the error that corresponds to a response.
func answered(code int, answer []byte, b *corev1.Binding, retryAfter int) error {
	if o, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(answer, nil, nil); err == nil {
		if status, ok := o.(*metav1.Status); ok && status.Status != metav1.StatusSuccess {
			return &apierrors.StatusError{ErrStatus: *status}
		}
	}
	return apierrors.NewGenericServerResponse(code, "post", corev1.Resource("pods"), b.Name, string(answer[:min(len(answer), 2048)]),
		retryAfter, true)
}
